"""One action of a plan -> the transition that carries it out. Nothing here decides but what has to be asked at the last
moment.

The plan is made of reads that may be seconds old. Most actions do not mind: they end in an idempotent transition that
looks by itself. A death does mind: before its end record is sent the reads must be younger than ten seconds, else they
are made again and judged again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from stado_like.bucket import awaited, blocks, cancel, delete, entries, mend, place, settle, watched
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, commit, compose, how_it_was_lost
from stado_like.bucket.load_world import Memory, Mending
from stado_like.bucket.look import look_again
from stado_like.bucket.tick_cache import landed, looked_at, over
from stado_like.errors import BadRecord
from stado_like.job import codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.records import Budgets, Capacity, Change, Claim, Heartbeat, History
from stado_like.job.states import Cause, TaskState
from stado_like.planning import liveness
from stado_like.planning import place_actions as placing
from stado_like.planning.actions import (
    Action,
    BrakePulled,
    Deferred,
    DropOrder,
    DropSpent,
    EndChild,
    EndLate,
    GiveUp,
    MendJob,
    MoveDue,
    Reap,
    ReleaseGroup,
    ReleaseWaiter,
    Remember,
    SettleCancel,
    SettleEnded,
    SweepEntry,
    SweepJob,
)
from stado_like.planning.world import STALE_GRACE_S, Broadcast, Look

MEND_FIRST_S = 60.0
MEND_MOST_S = 600.0
LOOK_AGAIN_S = 30.0
LOOKS_MOST = 3
CANCEL_AGAIN_S = 5.0
CANCEL_AGAIN_MOST_S = 15.0


@dataclass(slots=True)
class Did:
    """What carrying out an action came to: counts for the report, sentences for people, and why it was left for later,
    if it was."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    deferred: str = ""


def apply(bucket: Bucket, action: Action, memory: Memory) -> Did:
    """Carry out one action. Idempotent. Raises `StoreUnavailable` (the next tick does it) and `BadRecord` (set it
    aside)."""
    match action:
        case SettleCancel():
            return _settle_cancel(bucket, action, memory)
        case MoveDue():
            return _counted("moved", 1 if entries.move_due(bucket, action.entry) is not None else 0)
        case DropSpent():
            return _drop_spent(bucket, action)
        case SweepEntry():
            return _sweep_entry(bucket, action, memory)
        case DropOrder():
            return _drop_order(bucket, action)
        case ReleaseGroup() | GiveUp() | ReleaseWaiter() | EndChild() | EndLate():
            counts, said = watched.carry_out(bucket, action, memory.watching)
            return Did(counts, [said] if said else [])
        case Remember():
            return _remember(bucket, action, memory)
        case Reap():
            return _reap(bucket, action)
        case SettleEnded():
            return _settle_ended(bucket, action)
        case MendJob():
            return _mend(bucket, action, memory)
        case SweepJob():
            return _sweep(bucket, action, memory)
        case BrakePulled():
            return Did(deferred=brake_sentence(action))
        case Deferred():
            return Did(deferred=action.why)
        case _:
            counts, said = place.carry_out(bucket, action, memory)
            return Did(counts, [said] if said else [])


def describe(action: Action) -> str:
    """What an action is about, in a word or two: for the report and for `scheduler plan`."""
    match action:
        case SettleCancel():
            return f"settle the cancel of {action.job}" + (f" task {action.rank}" if action.rank is not None else "")
        case MoveDue() | DropSpent():
            return f"{'queue' if isinstance(action, MoveDue) else 'drop the spent entry of'} {action.entry.attempt}"
        case SweepEntry():
            return f"look at the entry of {action.attempt}"
        case DropOrder():
            return f"drop an order for {action.order.attempt}"
        case ReleaseGroup():
            return f"release the group {action.group} of {action.job}"
        case GiveUp():
            return f"give {action.job} up"
        case ReleaseWaiter() | EndChild():
            return f"{'release' if isinstance(action, ReleaseWaiter) else 'cancel the child'} {action.job}"
        case EndLate():
            return f"end {action.attempt}, which waited too long"
        case Remember():
            return f"arm {len(action.armed)}, clear {len(action.cleared)}"
        case Reap():
            return f"reap {action.attempt}"
        case SettleEnded():
            return f"settle {action.attempt}"
        case MendJob() | SweepJob():
            return f"look after {action.job}"
        case BrakePulled():
            return "brake"
        case Deferred():
            return action.what
        case _:
            return placing.describe(action)


def brake_sentence(pulled: BrakePulled) -> str:
    names = ", ".join(pulled.machines)
    seen = f"{len(pulled.machines)} of {pulled.of_machines} machines with running work look dead at once: {names}"
    if pulled.released:
        return f"{seen}; {pulled.released} attempts go now, {len(pulled.attempts)} wait for the next minutes"
    return f"{seen}; none of {len(pulled.attempts)} attempts is reaped (`scheduler tick --reap-now` overrides)"


def _counted(name: str, n: int, *notes: str) -> Did:
    return Did(Counter({name: n}) if n else Counter(), list(notes))


def _settle_cancel(bucket: Bucket, action: SettleCancel, memory: Memory) -> Did:
    """Carry out a verdict or a stop. One that waits for running tasks, or for a rank not released yet, is not gone
    through at every tick of a resident."""
    index = keys.cancel_index(action.job, action.rank)
    now_s = bucket.ambient.boot_s()
    next_at, wait_s = memory.cancels.get(index, (now_s, 0.0))
    if now_s < next_at:
        return Did()
    job = bucket.job(action.job)
    if job is None:
        if any(bucket.present(keys.tombstone(action.job))):
            delete.finish_deletion(bucket, action.job, None)  # what a canceller wrote after the deletion goes too
        bucket.drop(index)
        return _counted("orphans", 1)
    terms = bucket.terms(job)
    if action.rank is not None:
        over = cancel.carry_out_stop(bucket, action.job, action.rank, job, terms)
        did = _counted("stops_settled", int(over))
    else:
        done = cancel.carry_out(bucket, action.job, job, terms)
        over = done.over
        did = Did(Counter({"ended": done.ended, "still_running": done.running, "settled": int(over)}))
    wait_s = min(max(2 * wait_s, CANCEL_AGAIN_S), CANCEL_AGAIN_MOST_S)
    memory.cancels[index] = (now_s + wait_s, wait_s)
    if over:
        del memory.cancels[index]
    return did


def _drop_spent(bucket: Bucket, action: DropSpent) -> Did:
    """An index may be old: the claim is looked for by its key before the entry goes."""
    if not any(bucket.present(keys.running(action.entry.attempt))):
        return Did()
    bucket.drop(action.entry.key)
    return _counted("spent", 1)


def _sweep_entry(bucket: Bucket, action: SweepEntry, memory: Memory) -> Did:
    """Whoever claims an entry finds out in its gate that it came too late: a submitter that slept while its job was
    cancelled, a request that arrived after its job was over. Of an entry that only a placement may start, or that no
    worker fits, nobody ever does."""
    a, key = action.attempt, action.key
    ended, over, buried, there = bucket.present(keys.end(a), keys.final(a.job), keys.tombstone(a.job), keys.job(a.job))
    if not (over or buried or not there) and not ended and a.previous is not None:
        before = bucket.end(a.previous)
        over = before is None or before.is_final  # nobody asked for this attempt
    if over or buried or not there:
        bucket.drop(key)
        return _counted("orphans", 1)
    end = bucket.end(a) if ended else None
    if end is None:
        moved = awaited.move_left(bucket, a, key)
        if not moved:
            memory.cache.marks.mark([looked_at(key, bucket.now())])
        return _counted("queued", int(moved))
    settle.settle(bucket, a, end, queue_key=key, mending=True)
    return _counted("spent", 1)


def _drop_order(bucket: Bucket, action: DropOrder) -> Did:
    """The worker that held the attempt would have deleted it: it died first, or never comes back."""
    if any(bucket.present(keys.running(action.order.attempt))):
        return Did()
    bucket.drop(action.order.key)
    return _counted("orders_dropped", 1)


def _remember(bucket: Bucket, action: Remember, memory: Memory) -> Did:
    bucket.put(keys.OBSERVED, action.observed)
    memory.observed = ("", action.observed)  # read again by the next tick: its etag is not known here
    return Did(Counter({"armed": len(action.armed), "cleared": len(action.cleared)}))


def _reap(bucket: Bucket, action: Reap) -> Did:
    """End an attempt as lost, and carry out what that decides. Somebody else's end, if it came first, is carried out
    instead."""
    a = action.attempt
    claim = action.look.held.claim
    job = bucket.job(a.job)
    before = bucket.end(a.previous) if a.previous is not None else None
    stray = a.previous is not None and (before is None or before.is_final)
    is_open = blocks.is_open(bucket, a, bucket.terms(job)) if job is not None and not stray else False
    if job is None or is_open is False:
        settle.drop_orphan(bucket, a, claim.queue_key)  # no such job, or a stray claim: nothing that could end
        return _counted("orphans", 1)
    if is_open is None and any(bucket.present(keys.tombstone(a.job))):
        settle.drop_orphan(bucket, a, claim.queue_key)  # both came late, after a deletion
        return _counted("orphans", 1)
    if is_open is None:  # guard: the block first
        return _counted("carried", 1)  # taken by the holder of its block, which is about to end it, or is reaped
    look = action.look
    for _ in range(LOOKS_MOST):
        beat = look.beat.record if look.beat is not None else None
        record = compose(
            bucket,
            a,
            bucket.terms(job),
            before.budgets if before is not None else Budgets(),
            _how_it_ended(bucket, look),
            _seen(look, beat),
        )
        if bucket.ambient.boot_s() - look.read_at <= liveness.READS_HOLD_S:  # guard: reap reads fresh
            break
        again = look_again(bucket, look.held)
        if again is None:
            return Did(Counter({"gone": 1}))
        if again.ended_at:
            return _settle_ended(bucket, SettleEnded(again.held))
        if not liveness.is_stale(again) or not liveness.is_down(again, action.armed):
            return Did(Counter({"recovered": 1}), [f"{a} gave a sign of life at the last moment"])
        look = again
    else:
        return Did(
            deferred=f"the store is slow: {LOOKS_MOST} looks at {a} were older than ten seconds when they were done"
        )
    end = commit(bucket, a, codec.encode(record), record).end
    settle.settle(bucket, a, end, job=job, queue_key=claim.queue_key, mending=True)
    if end.nonce != record.nonce:
        return Did(Counter({"fenced": 1}), [f"{a} had ended meanwhile: {end.reason}"])
    name = "undelivered" if action.undelivered else "reaped"
    return _counted(name, 1, f"{a} on {claim.worker or 'an unknown worker'}: {end.outcome.value}, {end.reason}")


def _how_it_ended(bucket: Bucket, look: Look) -> Ended:
    if look.beat is None:
        return Ended(Cause.UNDELIVERED, reasons.UNDELIVERED)
    beat, last_seen_at = look.beat.record, look.signature[1]
    running_s = max(0.0, last_seen_at - beat.running_at) if beat is not None and beat.running_at else 0.0
    word = _word_of(bucket, look.held.claim.worker)
    cause, reason = how_it_was_lost(bucket, look.attempt, beat, _why_lost(word))
    lived_on = cause is Cause.MACHINE_LOST and _lives_on(word, look.held.claim)
    return Ended(cause, reason, running_s, look.held.claim.worker if lived_on else "")


def _word_of(bucket: Bucket, worker: str) -> Broadcast | str:
    """A worker's last word of itself; empty where there is none (any more), else why it cannot be read."""
    try:
        said = bucket.read(Capacity, keys.capacity(worker)) if worker else None
    except BadRecord as bad:
        return bad.message
    return Broadcast(worker, said.record, said.last_modified, said.now) if said is not None else ""


def _why_lost(word: Broadcast | str) -> str:
    """The supervisor alone is silent, or its whole machine is, or the machine said good-bye."""
    if isinstance(word, Broadcast):
        return reasons.NO_HEARTBEAT if liveness.is_fresh(word) else reasons.MACHINE_LOST
    return reasons.NO_HEARTBEAT if word else reasons.MACHINE_REMOVED


def _lives_on(word: Broadcast | str, claim: Claim) -> bool:
    """Whether the machine of a lost attempt speaks, and was not started again since the claim: then it was not the
    machine that was lost. What cannot be read is no such word."""
    if not isinstance(word, Broadcast) or not claim.boot_id or word.capacity.boot_id != claim.boot_id:
        return False
    return liveness.is_fresh(word)


def _seen(look: Look, beat: Heartbeat | None) -> Seen:
    claim = look.held.claim
    if beat is None:
        return Seen(worker=claim.worker, claimed_at=claim.since, by="tick", generation=claim.generation)
    return Seen(
        worker=claim.worker,
        claimed_at=claim.since,
        started_at=beat.started_at,
        running_at=beat.running_at,
        by="tick",
        generation=claim.generation,
        history=_until_stale(look, beat),
        notes=(f"last heartbeat at {look.signature[1]:.3f} (store time)",),
    )


def _until_stale(look: Look, beat: Heartbeat) -> History:
    """With what no supervisor could write down: since when it was silent for longer than its lease."""
    if beat.state is not TaskState.RUNNING:
        return beat.history
    at = look.signature[1] + look.ttl_s + STALE_GRACE_S
    return beat.history.add(Change(state=TaskState.STALE.value, reason=reasons.LEASE_EXPIRED, at=at))


def _settle_ended(bucket: Bucket, action: SettleEnded) -> Did:
    a, claim = action.attempt, action.held.claim
    end = bucket.end(a)
    if end is None:
        return Did()
    done = settle.settle(bucket, a, end, queue_key=claim.queue_key, mending=True)
    return Did(
        Counter(
            {"settled": 1, "queued": len(done.entries), "jobs_over": int(done.job_over), "orphans": int(done.orphan)}
        )
    )


def _mend(bucket: Bucket, action: MendJob, memory: Memory) -> Did:
    """Look after a job of open/, as often as it is worth the requests.

    The ranks of a large job are gone through once a minute, and less often while nothing is found. In between it is
    only asked whether all tasks are over: when nobody holds any and none waits, at once after the last holder let go,
    else every half minute.
    """
    now_s = bucket.ambient.boot_s()
    last = memory.last_mending(action.job)
    ranks = last is None or now_s - last.ranks_at >= last.ranks_wait_s
    nothing_new = last is not None and not last.had_claims and (action.waiting or now_s - last.looked_at < LOOK_AGAIN_S)
    if last is not None and not ranks and (action.claimed or nothing_new):
        memory.note_mending(action.job, replace(last, had_claims=bool(action.claimed)))
        return Did()
    known = memory.jobs.seen(action.job)
    places = (memory.cursors if memory.cursors is not None else {}).setdefault("ranks", {})
    name = str(action.job)
    done = mend.mend_job(
        bucket,
        action.job,
        since=action.since,
        claimed=action.claimed,
        waiting=action.waiting,
        cursor=int(places.get(name, 0)),
        ranks=ranks,
        known=known.job if known is not None else None,
    )
    places[name] = done.cursor
    if done.over or not done.cursor:
        del places[name]
    if done.over:
        memory.mended.pop(action.job, None)
    else:
        memory.note_mending(action.job, _mended(last, now_s, ranks, done, bool(action.claimed)))
    counts = Counter({"looked": 1, "queued": len(done.queued), "over": int(done.over)})
    return Did(counts, [f"{name}: {note}" for note in done.notes])


def _mended(last: Mending | None, now_s: float, ranks: bool, done: mend.Mended, claimed: bool) -> Mending:
    if last is not None and not ranks:
        return replace(last, looked_at=now_s, had_claims=claimed)
    before_s = last.ranks_wait_s if last is not None and not done.queued else 0.0
    wait_s = 0.0 if done.cursor else min(max(before_s * 2, MEND_FIRST_S), MEND_MOST_S)
    return Mending(now_s, now_s, wait_s, claimed)


def _sweep(bucket: Bucket, action: SweepJob, memory: Memory) -> Did:
    known = memory.jobs.known(bucket, action.job) if action.on_queue else None
    if known is not None and not known.terms.watched:
        return Did(Counter({"looked": 1}))  # one task, which waits where everybody looks
    done = mend.sweep_job(bucket, action.job, action.ended)
    if done.over:
        memory.cache.marks.mark([over(action.job, action.since)])
    elif done.landed is not None:
        memory.cache.marks.mark([landed(done.landed, bucket.now())])
    return Did(Counter({"looked": 1, "queued": len(done.queued)}), [f"{action.job}: {note}" for note in done.notes])
