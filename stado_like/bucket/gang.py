"""A gang's placement, its barrier, and what a tick does about a generation: the transitions that concern all members.

    place   create placement.json (all members or nothing)  →  orders  →  ring
    join    create join.<rank>.<n>.json                     →  order   →  ring       one that comes later
    go      create barrier.json {go}      by whoever sees every member of the placement ready, none ended, all alive
    tend    what is left of these and of the ends: orders that are due, an abort after a minute, ends of what nobody
            holds, stops, the next entries

Every one is a create that one of several callers wins, and each may be called again at any time by anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from stado_like.bucket import doorbell, entries, gang_ends, generations, ordered_place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.generations import Standing
from stado_like.bucket.settle import settle
from stado_like.job import gang_keys, keys, reasons, reasons_placement
from stado_like.job.budget import Ended
from stado_like.job.gang_records import Barrier, Join, Placement, Ready, Seat
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, Job
from stado_like.job.states import Cause
from stado_like.job.terms import Terms
from stado_like.planning.world import STALE_GRACE_S
from stado_like.store.conditional import Won

BARRIER_WITHIN_S = 900.0
Devices = Mapping[AttemptId, tuple[str, ...]]
NO_DEVICES: Final[Devices] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Waits:
    """What of a gang waits for a placement. `members` start together, at least `least` of them (`together`), or each by
    itself when there is room; not before `not_before`, and rather not on `avoid`."""

    generation: int
    members: tuple[AttemptId, ...]
    together: bool
    least: int
    not_before: float = 0.0
    avoid: frozenset[str] = frozenset()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """`generation` 0: nothing was placed, for `why`. `orders` are the keys of the orders that stand."""

    generation: int
    orders: tuple[str, ...] = ()
    why: str = ""


@dataclass(slots=True)
class Tended:
    """What a tick did about a gang. `waits`: what of it is to be placed now."""

    ordered: int = 0
    aborted: bool = False
    went: bool = False
    ended: int = 0
    stopping: int = 0
    queued: list[str] = field(default_factory=list)
    waits: Waits | None = None


# ---- what waits


def waits(bucket: Bucket, j: JobId, terms: Terms) -> Waits | None:
    """What of a gang is to be placed now. None: nothing; its members are placed, or have not all ended, or it is over.
    Raises `StoreUnavailable`, `BadRecord`."""
    return _waits(terms, generations.look_at(bucket, j, terms), bucket.now())


def _waits(terms: Terms, standing: Standing, now: float) -> Waits | None:
    if standing.placement is None:
        members = tuple(standing.open.values())
        return _together(terms, 1, members, 0.0, frozenset(), "") if len(members) == terms.tasks else None
    if standing.whole is not None:
        if not standing.whole.restart:
            return None
        members = tuple(one.attempt.next for _, one in sorted(standing.ended.items()))
        blamed = standing.barrier.blamed if standing.barrier is not None else ()
        why = standing.told
        return _together(terms, standing.g + 1, members, standing.not_before, frozenset(blamed), why)
    if standing.doomed or not standing.began:
        return None
    seats = standing.seats
    later = tuple(a for a in standing.open.values() if a not in seats and standing.due.get(a, 0.0) <= now)
    return Waits(standing.g, later, together=False, least=1) if later else None


def _together(
    terms: Terms, g: int, members: tuple[AttemptId, ...], not_before: float, avoid: frozenset[str], why: str
) -> Waits:
    least = (terms.least or terms.tasks) if terms.barrier else 1
    return Waits(g, members, terms.barrier, least, not_before, avoid, why)


# ---- placing


def place(
    bucket: Bucket, j: JobId, generation: int, where: Mapping[AttemptId, str], devices: Devices = NO_DEVICES
) -> Placed:
    """Carry out a decision about a gang: a new `generation` whole, or members of the one that stands who come later.
    `where`: which attempt goes to which worker; `devices`: the only GPUs it may take there. Idempotent; one of two who
    decide differently has its way.

    Raises `StoreUnavailable`, `BadRecord`.
    """
    job = bucket.job(j)
    if job is None or any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return Placed(0, why="the job is over, or is being stopped")
    terms = bucket.terms(job)
    standing = generations.look_at(bucket, j, terms)
    wanted = _waits(terms, standing, bucket.now())
    if wanted is None or wanted.generation != generation:
        return Placed(0, why=f"generation {generation} of {j} is not to be placed now")
    mine = {a: worker for a, worker in sorted(where.items()) if a in wanted.members}
    if standing.g != generation:
        if wanted.together and len(mine) < wanted.least:
            return Placed(0, why=f"{len(mine)} of {j} can be placed, and {wanted.least} must start together")
        why_not = _create(bucket, terms, standing, wanted, mine, devices)
        if why_not:
            return Placed(0, why=why_not)
        if wanted.together:
            return Placed(generation, _order(bucket, job, terms, generation, mine, devices))
    joined = {a: worker for a, worker in mine.items() if _join(bucket, a, generation, worker, devices.get(a, ()))}
    for a in joined:
        entries.enqueue(bucket, job, terms, a)  # its retry may be due, and not moved here yet: the order names it here
    return Placed(generation, _order(bucket, job, terms, generation, joined, devices))


def _create(
    bucket: Bucket,
    terms: Terms,
    standing: Standing,
    wanted: Waits,
    where: Mapping[AttemptId, str],
    devices: Devices = NO_DEVICES,
) -> str:
    """The placement of a generation. Empty: it stands, as we decided it."""
    attempts = {one.attempt.rank: one.attempt.n + 1 for one in standing.ended.values()}
    attempts |= {a.rank: a.n for a in standing.open.values()}
    before = standing.whole.budgets if standing.whole is not None else Budgets()
    ours = Placement(
        nonce=bucket.token(),
        attempts=tuple(attempts[rank] for rank in range(terms.tasks)),
        members=tuple(
            Seat(rank=a.rank, attempt=str(a), worker=to, devices=devices.get(a, ())) for a, to in where.items()
        )
        if wanted.together
        else (),
        barrier=wanted.together,
        budgets=before,
        aborts=standing.aborts,
        decided_at=bucket.now(),
    )
    any_of = next(iter(wanted.members))
    won = bucket.decide(gang_keys.placement(any_of.job, wanted.generation), ours)  # guard: placed whole
    return "" if isinstance(won, Won) else f"another tick placed generation {wanted.generation} of {any_of.job}"


def _join(bucket: Bucket, a: AttemptId, g: int, worker: str, devices: tuple[str, ...]) -> bool:
    ours = Join(nonce=bucket.token(), attempt=str(a), worker=worker, devices=devices, decided_at=bucket.now())
    return isinstance(bucket.decide(gang_keys.join(a, g), ours), Won)


def _order(
    bucket: Bucket, job: Job, terms: Terms, g: int, where: Mapping[AttemptId, str], devices: Devices
) -> tuple[str, ...]:
    given = []
    for a, worker in where.items():
        key, only = entries.open_key(job, terms, a), devices.get(a, ())
        given.append(ordered_place.give(bucket, worker, a, key, generation=g, devices=only, ring=False))
    for worker in sorted(set(where.values())):
        doorbell.ring(bucket, ("order", worker))
    return tuple(given)


def refuse(bucket: Bucket, asked: ordered_place.ToStart, worker: str, why: str) -> None:
    """A worker will not start what it was ordered to. Of a generation that has not begun none starts then."""
    if asked.generation:
        placement = generations.read_placement(bucket, asked.attempt.job, asked.generation)
        if placement is not None and str(asked.attempt) in {one.attempt for one in placement.members}:
            reason = reasons_placement.refused_by(worker, why)
            generations.close(bucket, asked.attempt.job, asked.generation, reason, by=worker, blamed=(worker,))
    ordered_place.refuse(bucket, asked, why)


# ---- the barrier


def try_go(bucket: Bucket, j: JobId, g: int, by: str) -> Barrier | None:
    """Open the barrier if every member of the placement is ready, alive, and none has ended. Returns the verdict that
    stands; None: somebody is still awaited. Raises `StoreUnavailable`, `BadRecord`."""
    placement = generations.read_placement(bucket, j, g)
    standing = generations.read_barrier(bucket, j, g)
    if placement is None or standing is not None or not placement.barrier:
        return standing
    members = [AttemptId.parse(one.attempt) for one in placement.members]
    if not all(bucket.present(*(gang_keys.ready(a, g) for a in members))):  # guard: go needs every member
        return None
    judged, *ended = bucket.present(keys.verdict(j), *(keys.end(a) for a in members))
    if judged or any(ended):  # guard: none ended before go
        return None
    job = bucket.job(j)
    if job is None or not all(_is_alive(bucket, a) for a in members):
        return None
    address, port = _meeting_place(bucket, bucket.terms(job), g, members)
    ours = Barrier(
        nonce=bucket.token(),
        go=True,
        attempts=tuple(str(a) for a in members),
        address=address,
        port=port,
        by=by,
        at=bucket.now(),
    )
    verdict = generations.decide(bucket, j, g, ours)
    doorbell.ring(bucket, ("gang", str(j)))
    return verdict


def _is_alive(bucket: Bucket, a: AttemptId) -> bool:
    """Its heartbeat is fresh; one that has not beaten yet was ready a moment ago."""
    beat = bucket.heartbeat(a)
    return beat is None or beat.age_s <= beat.record.ttl_s + STALE_GRACE_S


def _meeting_place(bucket: Bucket, terms: Terms, g: int, members: list[AttemptId]) -> tuple[str, int]:
    """Where the leader said that it can be met; of a gang that starts without it, the first member."""
    first = next((a for a in members if a.rank == terms.leader), min(members))
    said = bucket.read(Ready, gang_keys.ready(first, g))
    return (said.record.address, said.record.port) if said is not None else ("", 0)


# ---- a tick


def tend(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> Tended:
    """What is due about a gang. Idempotent. Raises `StoreUnavailable`, `BadRecord`."""
    done = Tended()
    standing = generations.look_at(bucket, j, terms)
    if any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return done  # whoever carries the verdict out ends what is queued
    if standing.whole is not None and standing.whole.restart and _next_has_ended(bucket, standing):
        _begin_to_end(bucket, terms, standing)
        standing = generations.look_at(bucket, j, terms)
    if standing.placement is not None and not standing.doomed:
        _bring_together(bucket, job, terms, standing, done)
        if done.aborted:
            standing = generations.look_at(bucket, j, terms)
    if standing.doomed:
        done.stopping = gang_ends.stop_the_rest(bucket, terms, standing)
        done.ended = _end_unclaimed(bucket, job, terms, standing)
        if done.ended:
            standing = generations.look_at(bucket, j, terms)
    done.queued = gang_ends.queue_again(bucket, job, terms, standing)
    done.waits = _waits(terms, standing, bucket.now())
    return done


def _next_has_ended(bucket: Bucket, standing: Standing) -> bool:
    """Whether a member was stopped by a person, or gave up waiting, since all of them had ended."""
    return any(bucket.present(*(keys.end(one.attempt.next) for one in standing.ended.values())))


def _begin_to_end(bucket: Bucket, terms: Terms, standing: Standing) -> None:
    """A generation that places nobody: what has ended already is an end of it, and decides with the others'."""
    members = tuple(one.attempt.next for one in standing.ended.values())
    _create(bucket, terms, standing, Waits(standing.g + 1, members, together=False, least=1), {})


def _bring_together(bucket: Bucket, job: Job, terms: Terms, standing: Standing, done: Tended) -> None:
    """Orders that are due, for a minute; then an abort, or for one that comes later an end that spends nothing."""
    placement = standing.placement
    assert placement is not None
    j, now = next(iter(standing.seats or standing.open.values())).job, bucket.now()
    if placement.barrier and standing.barrier is None and try_go(bucket, j, standing.g, "tick") is not None:
        done.went = True
        return
    late: list[str] = []
    undelivered = Ended(Cause.UNDELIVERED, reasons.UNDELIVERED)
    for a, worker in sorted(standing.seats.items()):
        if standing.open.get(a.rank) != a or any(bucket.present(keys.running(a))):
            continue
        decided_at = placement.decided_at if a not in standing.joined else _joined_at(bucket, a, standing.g)
        refused = a in standing.joined and ordered_place.was_refused(bucket, worker, a)
        if now - decided_at <= ordered_place.CLAIMED_WITHIN_S and not refused:
            done.ordered += len(_order(bucket, job, terms, standing.g, {a: worker}, standing.devices))
        elif a in standing.joined:
            done.ended += _end_unheld(bucket, a, job, terms, undelivered, standing.g, worker)
        else:
            late.append(worker)
    if late:
        total = len(placement.members)
        reason = reasons_placement.gang_cannot_be_placed(total - len(late), total)
        blamed = tuple(sorted(set(late)))
        done.aborted = not generations.close(bucket, j, standing.g, reason, by="tick", blamed=blamed).go


def _joined_at(bucket: Bucket, a: AttemptId, g: int) -> float:
    found = bucket.read(Join, gang_keys.join(a, g))
    return found.record.decided_at if found is not None else 0.0


def _end_unclaimed(bucket: Bucket, job: Job, terms: Terms, standing: Standing) -> int:
    """Members that nobody holds, of a generation that cannot go on: each ends, so that the set is complete."""
    cause, reason = gang_ends.why_stopped(terms, standing)
    ended = Ended(cause, reason)
    seats, open_now = standing.seats, standing.open.values()
    return sum(_end_unheld(bucket, a, job, terms, ended, standing.g, seats.get(a, "")) for a in open_now)


def _end_unheld(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, ended: Ended, g: int, worker: str) -> int:
    """The claim is looked for after the decision that dooms it stood: one made later meets it in its gate."""
    if any(bucket.present(keys.running(a))):  # guard: look for the claim first
        return 0
    end = end_attempt(bucket, a, terms.for_rank(a.rank), ended, Seen(by="tick", generation=g)).end
    settle(bucket, a, end, job=job, mending=True)
    if worker:
        ordered_place.withdraw(bucket, worker, a)
    return 1
