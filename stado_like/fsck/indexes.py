"""Rules about what points at a job: entries, claims, orders, the indexes of cancels and of open jobs, and its final.

Everything here can be rebuilt from the job and its ends, so nearly every finding has a remedy: the transition that was
cut short is carried on.
"""

from __future__ import annotations

from stado_like.bucket.mend import ORPHAN_S
from stado_like.fsck.finding import Findings, found
from stado_like.fsck.picture import JobPicture, entry_names
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.terms import Terms
from stado_like.planning import lanes


def entries_are_of_open_attempts(p: JobPicture) -> Findings:
    """An entry names an attempt that is open and not claimed, under the name that its job gives it."""
    for key, a in sorted(p.traces.entries.items()):
        if not p.is_there:
            yield found("entry-without-job", key, f"an entry of {a}, and there is no such job")
        elif p.job is not None and p.terms is not None and not p.is_dying and a.rank not in p.moving:
            yield from _entry(p, p.terms, key, a)


def _entry(p: JobPicture, terms: Terms, key: str, a: AttemptId) -> Findings:
    assert p.job is not None
    if a.rank >= terms.units:
        yield found("entry-beyond-job", key, f"an entry of {a}; the job has {terms.tasks} tasks")
    elif _has_ended(p, a):
        yield found("entry-of-ended", key, f"an entry of {a}, which has ended")
    elif a in p.traces.claims:
        yield found("entry-spent", key, f"an entry of {a}, which is claimed")
    elif terms.several and p.is_final:
        yield found("entry-of-final-job", key, f"an entry of {a}, whose job is over")
    elif _is_stray(p, a):
        yield found("entry-stray", key, f"an entry of {a}, which attempt {a.n - 1} did not ask for")
    elif p.ends_read and (a.n == 1 or a.previous in p.ends):
        before = p.ends.get(a.previous) if a.previous is not None else None
        if key not in entry_names(p.job, terms, a, before):
            yield found("entry-misnamed", key, f"an entry of {a} under a name that is not its job's: {key}")
        elif key.startswith(keys.QUEUED_LATER) and a in _at_once(p):
            yield found("entry-twice", key, f"{a} waits in queued/later and in queued/open at once")


def _has_ended(p: JobPicture, a: AttemptId) -> bool:
    return a.n in p.status.ends.get(a.rank, ()) or p.status.units.get(a.rank, False)


def _at_once(p: JobPicture) -> set[AttemptId]:
    return {a for key, a in p.traces.entries.items() if not key.startswith(keys.QUEUED_LATER)}


def _is_stray(p: JobPicture, a: AttemptId) -> bool:
    """Whether the attempt before it did not ask for this one. One whose end could not be read may have."""
    if a.previous is None:
        return False
    if a.previous.n not in p.status.ends.get(a.rank, ()):
        return True
    before = p.ends.get(a.previous)
    return before is not None and before.is_final


def claims_are_of_open_attempts(p: JobPicture) -> Findings:
    """A claim stands for an attempt that is open: settling deletes it last."""
    for a in sorted(p.traces.claims):
        key = keys.running(a)
        if p.is_dying:
            continue  # it goes with the deletion
        if not p.is_there:
            yield found("claim-without-job", key, f"a claim of {a}, and there is no such job")
        elif p.terms is None or a.rank in p.moving:
            continue
        elif a.rank >= p.terms.units:
            yield found("claim-beyond-job", key, f"a claim of {a}; the job has {p.terms.tasks} tasks")
        elif _has_ended(p, a):
            yield found("claim-of-ended", key, f"a claim of {a}, which has ended: it was not settled to the last step")
        elif _is_stray(p, a):
            yield found("claim-stray", key, f"a claim of {a}, which attempt {a.n - 1} did not ask for")
        elif p.terms.several and p.is_final:
            yield found("final-with-open-attempt", keys.final(p.id), f"{p.id} is over, and {a} is claimed and open")


def orders_are_of_open_attempts(p: JobPicture) -> Findings:
    for key, a in sorted(p.traces.orders.items()):
        if not p.is_there or _has_ended(p, a):
            what = "has ended" if p.is_there else "has no job"
            yield found("order-spent", key, f"an order about {a}, which {what}")


def decisions_are_carried_out(p: JobPicture) -> Findings:
    """Under an early verdict or a person's stop nothing waits: queued attempts are ended, and the index leads there."""
    if p.terms is None or p.is_dying or p.is_final:
        return
    if p.has_verdict:
        yield from _verdict(p, p.terms)
        return
    for rank in sorted(p.status.stops):
        here = p.rank(rank)
        if here.open is None or rank >= p.terms.tasks:
            continue
        if rank not in p.traces.cancels:
            yield found("stop-without-index", keys.cancel_index(p.id, rank), f"task {rank} of {p.id} was stopped")
        elif here.open.rank == rank and rank not in p.claimed and p.is_released(rank, p.terms):
            sentence = f"task {rank} of {p.id} was stopped, and {here.open} still waits"
            yield found("stop-unfinished", keys.stop(p.id, rank), sentence)


def _verdict(p: JobPicture, terms: Terms) -> Findings:
    early = p.verdict is not None and p.verdict.early
    over = all(_has_ended_under_verdict(p, rank, terms) for rank in range(terms.tasks))
    if early and not over and None not in p.traces.cancels:
        yield found("verdict-without-index", keys.cancel_index(p.id), f"{p.id} has a verdict and is not over")
    waiting = [rank for rank in range(terms.tasks) if _still_waits(p, rank, terms)]
    if waiting:
        what = f"{len(waiting)} of its {terms.tasks} tasks still wait, rank {waiting[0]} first"
        yield found("cancel-unfinished", keys.verdict(p.id), f"{p.id} has a verdict, and {what}")


def _still_waits(p: JobPicture, rank: int, terms: Terms) -> bool:
    a = p.rank(rank).open
    return a is not None and a.rank not in p.claimed and not _never_released(p, a.rank, terms)


def _has_ended_under_verdict(p: JobPicture, rank: int, terms: Terms) -> bool:
    """A rank that was never released counts as ended under a verdict."""
    return p.rank(rank).is_over or _never_released(p, rank, terms)


def _never_released(p: JobPicture, rank: int, terms: Terms) -> bool:
    return not lanes.is_first(terms, rank) and not p.has_trace(rank)


def cancel_indexes_have_a_decision(p: JobPicture) -> Findings:
    """An index of cancels leads to a verdict or a stop of something that goes on."""
    for rank in sorted(p.traces.cancels, key=lambda one: -1 if one is None else one):
        key = keys.cancel_index(p.id, rank)
        if not p.is_there:
            if not p.is_dying:
                yield found("cancel-without-verdict", key, f"an index of {p.id}, and there is no such job")
        elif p.terms is None or p.is_dying:
            continue
        elif (rank is None and not p.has_verdict) or (rank is not None and rank not in p.status.stops):
            what = "no verdict" if rank is None else f"no stop of task {rank}"
            yield found("cancel-without-verdict", key, f"an index of {p.id}, which has {what}")
        elif _needs_no_index(p, p.terms, rank):
            what = str(p.id) if rank is None else f"task {rank} of {p.id}"
            yield found("cancel-left", key, f"an index that leads to {what}, which is over")


def _needs_no_index(p: JobPicture, terms: Terms, rank: int | None) -> bool:
    if terms.several and (p.is_final or rank is None):
        return p.is_final
    return p.rank(rank or 0).is_over


def ended_jobs_are_final(p: JobPicture) -> Findings:
    """Where every task of several is over, a verdict and then a final say so; a final never stands without."""
    if p.terms is None or p.is_dying:
        return
    if not p.terms.several:
        if p.is_final:
            yield found("final-of-one-task", keys.final(p.id), f"{p.id} has one task, and a final")
    elif p.is_final:
        if not p.has_verdict:
            yield found("final-without-verdict", keys.verdict(p.id), f"{p.id} has a final and no verdict")
    elif not p.claimed and all(_is_over(p, rank, p.terms) for rank in range(p.terms.tasks)):
        yield found("job-not-final", keys.final(p.id), f"all tasks of {p.id} are over, and it has no final")


def _is_over(p: JobPicture, rank: int, terms: Terms) -> bool:
    return _has_ended_under_verdict(p, rank, terms) if p.has_verdict else p.rank(rank).is_over


def open_index_tells_open_jobs(p: JobPicture) -> Findings:
    """open/ has every watched job that is not over, and deletions under way; others go within a day."""
    key, at = keys.open_index(p.id), p.traces.opened_at
    if p.is_dying:
        return
    aged = at is not None and p.now - at > ORPHAN_S
    if not p.is_there:
        if aged:
            yield found("open-without-job", key, f"an index of {p.id} older than a day, and there is no such job")
    elif p.terms is None:
        return
    elif p.terms.watched and not (p.is_final if p.terms.several else p.rank(0).is_over):
        if at is None and (p.terms.several or not p.rank(0).unknown):
            yield found("open-missing", key, f"{p.id} is not over, and not in the index of open jobs")
    elif aged or (at is not None and p.terms.several and p.open_what != "deletion"):
        yield found("open-left", key, f"{p.id} is over, and still in the index of open jobs")


def deletions_are_finished(p: JobPicture) -> Findings:
    """After the tombstone nothing of an incarnation stays."""
    left = (
        ("its record", p.is_there),
        ("its status", p.has_status),
        ("its index of open jobs", p.traces.opened_at is not None),
        ("an index of cancels", bool(p.traces.cancels)),
        ("claims", bool(p.traces.claims)),
        ("data", bool(p.traces.data)),
    )
    if p.is_dying:
        there = [what for what, is_there in left if is_there]
        if there:
            yield found("deletion-unfinished", keys.tombstone(p.id), f"{p.id} was deleted; left: {', '.join(there)}")
    elif not p.is_there:
        if p.has_status:
            yield found("status-without-job", keys.status_of(p.id), f"a status of {p.id}, and there is no such job")
        for prefix in sorted(p.traces.data):
            yield found("data-without-job", prefix, f"data of {p.id}, and there is no such job")


def records_name_their_job(p: JobPicture) -> Findings:
    if p.job is None:
        return
    named = (p.job.workspace, p.job.name, p.job.incarnation)
    if named != (p.id.workspace, p.id.name, p.id.k):
        said = ".".join(str(part) for part in named)
        yield found("job-misnamed", keys.job(p.id), f"the record of {p.id} says that it is {said}")


def status_keys_are_known(p: JobPicture) -> Findings:
    for key in p.status.strange:
        yield found("foreign-key", key, f"{key!r} is no key of a job's status")
