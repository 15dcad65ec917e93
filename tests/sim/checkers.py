"""The rules that must hold after every step, one function each. Each yields a sentence for what it finds broken.

They look at the raw bucket and at what was seen, not through the code under test, except where a reader is what is
judged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from stado_like.bucket.bucket import Bucket
from stado_like.errors import NotFound
from stado_like.job import budget, codec, keys
from stado_like.job.budget import Ended, Gang
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.states import TERMINAL_JOB, TERMINAL_TASK
from stado_like.reading.view import read_job
from tests.sim.block_rules import ON_CHANGE as ABOUT_BLOCKS
from tests.sim.day_rules import AT_REST as DAYS_AT_REST
from tests.sim.day_rules import ON_CHANGE as ABOUT_DAYS
from tests.sim.fault_store import Change, SharedBucket
from tests.sim.gang_rules import AT_REST as GANGS_AT_REST
from tests.sim.gang_rules import ON_CHANGE as ABOUT_GANGS
from tests.sim.gang_rules import ON_START as ABOUT_MEMBERS
from tests.sim.group_rules import groups_wait_for_those_they_depend_on, held_jobs_are_claimed_by_order_only
from tests.sim.order_rules import ON_CHANGE as ABOUT_ORDERS
from tests.sim.room_rules import ON_CHANGE as ABOUT_ROOM
from tests.sim.seen import Seen, Start
from tests.sim.waiting_rules import ON_CHANGE as ABOUT_WAITING
from tests.sim.waiting_rules import ON_START as ABOUT_CHILDREN

ChangeRule = Callable[[Seen, Change], Iterator[str]]
StartRule = Callable[[Seen, Start], Iterator[str]]
RestRule = Callable[[Seen], Iterator[str]]


# ---- after every change of a key


def one_end_per_attempt(seen: Seen, change: Change) -> Iterator[str]:
    """An attempt ends by exactly one record, whose bytes never change while its job lives."""
    if "/end." not in change.key or change.before is None or change.before == change.after:
        return
    j = _job_of_status(change.key)
    if change.after is None and j in seen.buried:
        return
    yield f"{change.actor} {change.kind} changed {change.key}, an end that stood"


def one_claim_at_a_time(seen: Seen, change: Change) -> Iterator[str]:
    """A claim that stands is never overwritten."""
    if change.key.startswith(keys.RUNNING) and change.before is not None and change.after is not None:
        yield f"{change.actor} overwrote the claim {change.key}"


def nothing_decided_is_overwritten(seen: Seen, change: Change) -> Iterator[str]:
    """jobs/, verdicts, stops, finals and tombstones are created once."""
    decided = change.key.startswith((keys.JOBS, keys.DELETED)) or change.key.endswith(
        ("/verdict.json", "/final.json", "/stop.json")
    )
    if decided and change.before is not None and change.after is not None and change.before != change.after:
        yield f"{change.actor} overwrote {change.key}"


def attempts_follow_each_other(seen: Seen, change: Change) -> Iterator[str]:
    """Attempt n + 1 ends only after attempt n asked for another; nothing ends after a final end."""
    a = _end_created(seen, change)
    if a is None or a.n == 1:
        return
    before = seen.end_records.get(keys.AttemptId(a.job, a.rank, a.n - 1))
    if before is None or before.is_final:
        yield f"{change.actor} ended {a}, though the attempt before it {'was final' if before else 'never ended'}"


def budgets_are_spent_once(seen: Seen, change: Change) -> Iterator[str]:
    """An end's budgets are those of the end before it, plus what its own cause spends, once."""
    for a in _ended_by(seen, change):
        yield from _spent_once(seen, a) if a.job in seen.terms else ()


def _spent_once(seen: Seen, a: AttemptId) -> Iterator[str]:
    end = seen.end_records[a]
    previous = seen.end_records.get(keys.AttemptId(a.job, a.rank, a.n - 1))
    before = previous.budgets if previous else Budgets()
    running_s = end.ended_at - end.running_at if end.running_at else 0.0
    possible = []
    for over in (False, True):
        # How long it ran is the word of whoever ended it: a tick counts to the last heartbeat, and clocks jump.
        terms = seen.terms[a.job].for_rank(a.rank)
        gangs = (None, *Gang) if terms.gang else (None,)
        for told_s, died_on, gang in itertools.product((running_s, 0.0), ("", end.worker), gangs):
            found = budget.decide(Ended(end.cause, end.reason, told_s, died_on), terms, before, over=over, gang=gang)
            possible.append((found.decision, found.budgets))
    if (end.decision, end.budgets) not in possible:
        yield f"{a} ended for {end.cause.value or 'exit 0'}: {end.decision} {end.budgets}, from {before}"


def acknowledged_jobs_are_reachable(seen: Seen, change: Change) -> Iterator[str]:
    """Whoever looks where the protocol looks finds the open attempt of a job that was acknowledged."""
    for j in _jobs_near(seen, change):
        if j not in seen.acknowledged or j in seen.buried:
            continue
        if not seen.holds(keys.job(j)):
            yield f"{change.actor} {change.kind} {change.key}: the job {j} is gone"
        elif seen.terms[j].several:
            if not seen.holds(keys.final(j)) and not seen.holds(keys.open_index(j)):
                yield f"{change.actor} {change.kind} {change.key}: {j} is not over, and is in no index"
        elif not _one_task_reachable(seen, j):
            yield f"{change.actor} {change.kind} {change.key}: nobody will ever look at {j} again"


def _one_task_reachable(seen: Seen, j: JobId) -> bool:
    if 0 in seen.finished[j]:
        return True
    a = keys.AttemptId(j, 0, seen.last_n[j, 0] + 1)
    if seen.entries[a] or seen.holds(keys.running(a)):
        return True
    if a.previous is not None and seen.holds(keys.running(a.previous)):
        return True
    judged = seen.holds(keys.verdict(j)) or seen.holds(keys.stop(j, 0))
    return judged and (seen.holds(keys.cancel_index(j)) or seen.holds(keys.cancel_index(j, 0)))


def indexes_follow_decisions(seen: Seen, change: Change) -> Iterator[str]:
    """cancels/ names a verdict or a stop that stands: whoever finds the index without it drops the index."""
    if not change.key.startswith(keys.CANCELS) or change.after is None or change.late:
        return
    j, rank = keys.parse_cancel_index(change.key)
    decision = keys.verdict(j) if rank is None else keys.stop(j, rank)
    if not seen.holds(decision) and j not in seen.buried:
        yield f"{change.actor} wrote {change.key} before {decision}"


def only_its_holder_ends_what_runs(seen: Seen, change: Change) -> Iterator[str]:
    """Or a tick, which has judged its life. A canceller and another worker leave it to the holder, with grace."""
    for a in _ended_by(seen, change):
        by = seen.end_records[a].by
        holders = {start.who.partition("/")[0] for start in seen.starts[a]}
        if holders and by != "tick" and by not in holders and not change.late:
            yield f"{change.actor} ended {a} as {by}, while {', '.join(sorted(holders))} had started it"


def fenced_attempts_fall_silent(seen: Seen, change: Change) -> Iterator[str]:
    """A supervisor looks before each heartbeat: at most one that was on its way follows the end of its attempt."""
    if "/heartbeat." not in change.key or change.late:
        return
    j = _job_of_status(change.key)
    status = keys.parse_status(j, change.key) if j is not None else None
    if j is not None and status is not None and seen.beats_after_end[AttemptId(j, status.rank, status.n)] > 1:
        yield f"{change.actor} goes on with {change.key} after the end of its attempt"


def lanes_never_exceed_their_width(seen: Seen, change: Change) -> Iterator[str]:
    """At most `max_parallel` ranks of an array are released and not over, counted over everything that may run one."""
    if not change.key.startswith(("queued/", keys.RUNNING)) or change.after is None:
        return
    for j, terms in seen.terms.items():
        if terms.release_by_end and terms.several and j not in seen.buried:  # a late submit may seem to bring one back
            going = seen.released[j] - seen.finished[j]
            if len(going) > terms.lane_width:
                of = f"ranks {sorted(going)} of {j}, at most {terms.lane_width}"
                yield f"{change.actor} {change.kind} {change.key}: {of}"


def readers_never_go_back(seen: Seen, change: Change) -> Iterator[str]:
    """A job once reported over is reported over, the same way, for ever; a finished task is never shown as running."""
    room = change.key.split("/", 1)[0]
    if room not in ("status", "jobs", "deleted"):
        return
    for j in _jobs_near(seen, change):
        if room == "status" and j not in seen.reported and not _may_be_over(change):
            continue
        bucket = Bucket(seen.shared.store, ambient=seen.shared.clock)
        try:
            view = read_job(bucket, j)
        except NotFound:
            if j in seen.reported and j not in seen.buried:
                yield f"{j} was reported {seen.reported[j]} and is now reported missing"
            continue
        for task in view.tasks:
            final = seen.final_end(j, task.rank)
            if final is not None and j not in seen.buried and task.state not in TERMINAL_TASK:
                yield f"{final} is final, and task {task.rank} of {j} is shown {task.state}"
        if view.state in TERMINAL_JOB:
            known = seen.reported.setdefault(j, view.state)
            if known != view.state:
                yield f"{j} was reported {known} and is now reported {view.state}"
        elif j in seen.reported and j not in seen.buried:
            yield f"{j} was reported {seen.reported[j]} and is now reported {view.state}"


# ---- after every start of a process


def one_start_per_attempt(seen: Seen, start: Start) -> Iterator[str]:
    """One winner: an attempt is started once, by one worker."""
    if len(seen.starts[start.attempt]) > 1:
        yield f"{start.attempt} was started by {', '.join(one.who for one in seen.starts[start.attempt])}"


def nothing_runs_that_was_not_submitted(seen: Seen, start: Start) -> Iterator[str]:
    if start.attempt.job not in seen.jobs:
        yield f"{start.who} started {start.attempt}, which nobody submitted"


def nothing_starts_after_its_task_is_over(seen: Seen, start: Start) -> Iterator[str]:
    """Except an attempt that was ended after its gate: it is fenced within its TTL."""
    a = start.attempt
    if a in seen.ends and seen.ended_at[a] < start.claimed:
        yield f"{start.who} claimed and started {a} after it had ended"
        return
    if a in seen.ends and seen.machines_may_be_paused:
        seen.doubtful.append(start)
        return
    final = seen.final_end(a.job, a.rank)
    if final is not None and final != a:
        yield f"{start.who} started {a}, though {final} was final"
    if a not in seen.ends and seen.holds(keys.final(a.job)):
        yield f"{start.who} started {a}, though {a.job} was over"


def nothing_starts_after_an_acknowledged_cancel(seen: Seen, start: Start) -> Iterator[str]:
    """No claim made after the cancel was acknowledged is started."""
    a = start.attempt
    for what, at in ((str(a.job), seen.cancelled.get(a.job)), (f"task {a.rank}", seen.stopped.get((a.job, a.rank)))):
        if at is not None and start.claimed > at:
            yield f"{start.who} claimed and started {a} after the cancel of {what} was acknowledged"


def nothing_starts_after_its_job_is_deleted(seen: Seen, start: Start) -> Iterator[str]:
    at = seen.buried.get(start.attempt.job)
    if at is not None and start.claimed > at:
        yield f"{start.who} claimed and started {start.attempt} of a deleted job"


# ---- when everything has come to rest


def every_acknowledged_job_is_over(seen: Seen) -> Iterator[str]:
    for j in sorted(seen.acknowledged - set(seen.buried)):
        over = seen.holds(keys.final(j)) if seen.terms[j].several else 0 in seen.finished[j]
        if not over:
            yield f"{j} never ended"


def acknowledged_cancels_ended_their_jobs(seen: Seen) -> Iterator[str]:
    for j in seen.cancelled:
        if j not in seen.buried and not all(seen.is_ended(j, rank) for rank in seen.released[j]):
            yield f"{j} was cancelled and has ranks that never ended"


def no_index_is_left(seen: Seen) -> Iterator[str]:
    """What is over leaves no index entry, claim or order behind."""
    rooms = ("queued/", "running/", "open/", "cancels/", "inbox/")
    left = [key for key in seen.shared.contents() if key.startswith(rooms)]
    if left:
        yield f"left behind: {left}"


def nothing_deleted_comes_back(seen: Seen) -> Iterator[str]:
    """Except what a late request wrote under its status or data, or an old list hid there: no reader looks there, and
    fsck sweeps it."""
    for j in seen.buried:
        if seen.holds(keys.job(j)):
            yield f"{j} was deleted and its job is there again"
        if seen.lists_may_be_old:
            continue
        rooms = (keys.status_of(j), *keys.data_of(j))
        left = [key for key in seen.shared.contents() if key.startswith(rooms) and key not in seen.late]
        if left:
            yield f"{j} was deleted and left {left}"


def finals_count_the_ends(seen: Seen) -> Iterator[str]:
    """A job of several tasks that was not ended early counts every task once."""
    for j, terms in seen.terms.items():
        body = seen.shared.peek(keys.final(j))
        if body is None or not terms.several or j in seen.buried:
            continue
        counts = codec.decode_plain(body, keys.final(j))["counts"]
        if not seen.holds(keys.verdict(j)):
            yield f"{j} has a final and no verdict"
        if sum(counts.values()) > terms.tasks:
            yield f"{j} has {terms.tasks} tasks and its final counts {counts}"


ON_CHANGE: tuple[ChangeRule, ...] = (
    one_end_per_attempt,
    one_claim_at_a_time,
    nothing_decided_is_overwritten,
    attempts_follow_each_other,
    budgets_are_spent_once,
    acknowledged_jobs_are_reachable,
    indexes_follow_decisions,
    only_its_holder_ends_what_runs,
    fenced_attempts_fall_silent,
    lanes_never_exceed_their_width,
    groups_wait_for_those_they_depend_on,
    held_jobs_are_claimed_by_order_only,
    readers_never_go_back,
    *ABOUT_ORDERS,
    *ABOUT_WAITING,
    *ABOUT_GANGS,
    *ABOUT_BLOCKS,
    *ABOUT_ROOM,
    *ABOUT_DAYS,
)
ON_START: tuple[StartRule, ...] = (
    one_start_per_attempt,
    nothing_runs_that_was_not_submitted,
    nothing_starts_after_its_task_is_over,
    nothing_starts_after_an_acknowledged_cancel,
    nothing_starts_after_its_job_is_deleted,
    *ABOUT_CHILDREN,
    *ABOUT_MEMBERS,
)
AT_REST: tuple[RestRule, ...] = (
    every_acknowledged_job_is_over,
    acknowledged_cancels_ended_their_jobs,
    no_index_is_left,
    nothing_deleted_comes_back,
    finals_count_the_ends,
    *GANGS_AT_REST,
    *DAYS_AT_REST,
)


class Judge:
    """Watches a bucket and applies every rule. What it finds is in `seen.violations`."""

    def __init__(self, shared: SharedBucket) -> None:
        self.seen = Seen(shared)
        shared.watchers.append(self)

    def changed(self, change: Change) -> None:
        self.seen.note(change)
        for rule in ON_CHANGE:
            for what in rule(self.seen, change):
                self.seen.violate(rule.__name__, what)

    def refused(self, key: str, standing: bytes, sent: bytes) -> None:
        if "/end." in key and standing != sent:
            self.seen.refused_ends += 1

    def started(self, a: AttemptId, who: str, nonce: str) -> None:
        start = self.seen.start(a, who, nonce)
        for rule in ON_START:
            for what in rule(self.seen, start):
                self.seen.violate(rule.__name__, what)

    def at_rest(self) -> None:
        for rule in AT_REST:
            for what in rule(self.seen):
                self.seen.violate(rule.__name__, what)

    def verify(self) -> None:
        """Raises AssertionError with what was broken and how it came to it."""
        if self.seen.violations:
            trace = "\n    ".join(self.seen.shared.world.trace)
            raise AssertionError("\n".join(self.seen.violations) + f"\ntrace:\n    {trace}")


# ---- keys


def _end_created(seen: Seen, change: Change) -> AttemptId | None:
    if "/end." not in change.key or change.before is not None or change.after is None:
        return None
    j = _job_of_status(change.key)
    if j is None or j in seen.removed:
        return None
    status = keys.parse_status(j, change.key)
    a = keys.AttemptId(j, status.rank, status.n)
    return a if seen.ends.get(a) == change.after else None


def _ended_by(seen: Seen, change: Change) -> list[AttemptId]:
    """The attempts of tasks that a change ended: one, or those that a block carried."""
    a = _end_created(seen, change)
    ended = [] if a is None else [AttemptId(a.job, rank, a.n) for rank in seen.ranks_of(a)]
    return [one for one in ended if seen.ends.get(one) == change.after]


def _job_of_status(key: str) -> JobId | None:
    parts = key.split("/")
    return JobId.parse(f"{parts[1]}.{parts[2]}") if parts[0] == "status" and len(parts) > 3 else None


def _may_be_over(change: Change) -> bool:
    if change.key.endswith("/final.json"):
        return True
    return "/end." in change.key and change.after is not None and codec.decode(End, change.after, change.key).is_final


def _jobs_near(seen: Seen, change: Change) -> list[JobId]:
    """The jobs that a change may concern: those whose id is in the key."""
    flat = change.key.replace("/", ".")
    return [j for j in seen.jobs if f".{j}." in flat]
