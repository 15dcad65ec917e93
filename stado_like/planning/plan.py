"""World -> plan: what one tick does, as numbered passes of actions. Pure, so a plan can be printed, compared, and shown
without being carried out.

The order of the passes: whatever a person asked for first; then what gives waiting work its turn; deaths after that,
since a look at them is worth the more the younger it is; then what others left half-way; the slow sweep last, because
nothing waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import JobState
from stado_like.planning import awaited, family, groups, liveness, place_actions, placement
from stado_like.planning.actions import (
    Action,
    Deferred,
    DropOrder,
    DropSpent,
    EndChild,
    EndLate,
    GiveUp,
    MendJob,
    MoveDue,
    ReleaseGroup,
    ReleaseWaiter,
    SettleCancel,
    SettleEnded,
    SweepEntry,
    SweepJob,
)
from stado_like.planning.placing import Placing
from stado_like.planning.world import World

PASSES = ("cancels", "later", "reap", "ends", "groups", "after", "children", "overdue", "jobs", "place", "sweep")
SPENT_A_TICK = 200
NOTHING = Placing()


@dataclass(frozen=True, slots=True)
class Plan:
    """The passes in order. `next_due_at`: when the next waiting retry is due, store time; None when none waits."""

    passes: tuple[tuple[str, tuple[Action, ...]], ...]
    next_due_at: float | None = None
    placing: Placing = NOTHING
    """What the pass `place` is made of, with the reasons of what waits."""

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for _, actions in self.passes for action in actions)


def plan(world: World, *, reap_now: bool = False, settling_s: float = 0.0) -> Plan:
    """What to do about `world`. `settling_s`: ends younger than this are left to those who are settling them right
    now."""
    placing = _placing(world)
    return Plan(
        passes=(
            ("cancels", tuple(_cancels(world))),  # 1. verdicts and stops not carried out yet
            ("later", tuple(_later(world))),  # 2. retries that are due; entries that are spent
            ("reap", tuple(_reap(world, reap_now))),  # 3. who is dead
            ("ends", tuple(_ends(world, settling_s))),  # 4. ends that nobody carried out to the last step
            ("groups", tuple(_groups(world))),  # 5. groups whose time has come, or never will
            ("after", tuple(_after(world))),  # 6. jobs that wait for others
            ("children", tuple(_children(world))),  # 7. jobs whose parent is over
            ("overdue", tuple(_overdue(world))),  # 8. who waited too long to start
            ("jobs", tuple(_jobs(world))),  # 9. lanes, lost attempts, finals, deletions
            ("place", tuple(_place(world, placing))),  # 10. who runs where, of what only a placement may start
            ("sweep", tuple(_sweep(world))),  # 11. a page of all jobs, for what no index shows; of entries left over
        ),
        next_due_at=_next_due(world),
        placing=placing,
    )


def _unread(world: World, *rooms: str) -> Iterator[Deferred]:
    for room in rooms:
        if room in world.unread:
            yield Deferred(room, f"could not be listed: {world.unread[room]}")


def _cancels(world: World) -> Iterator[Action]:
    yield from _unread(world, "cancels")
    whole = {job for job, rank in world.cancels if rank is None}
    for job, rank in world.cancels:
        if rank is None or job not in whole:  # a job's verdict ends the stopped ranks too
            yield SettleCancel(job, rank)


def _later(world: World) -> Iterator[Action]:
    yield from _unread(world, "later", "queued")
    for entry in world.later:
        if entry.due_ms <= world.now * 1000:
            yield MoveDue(entry)
    held = {look.attempt for look in world.looks}
    spent = [entry for entry in world.queued if entry.attempt in held]
    for one in spent[:SPENT_A_TICK]:
        yield DropSpent(one)


def _next_due(world: World) -> float | None:
    waiting = [entry.due_ms / 1000 for entry in world.later if entry.due_ms > world.now * 1000]
    return min(waiting, default=None)


def _reap(world: World, reap_now: bool) -> Iterator[Action]:
    judged = liveness.judge(world, reap_now=reap_now)
    yield from judged.deferred
    if judged.brake is not None:
        yield judged.brake
    if judged.remember is not None:
        yield judged.remember  # before anybody goes: what the brake let through is counted even if this tick dies
    yield from judged.reaps


def _ends(world: World, settling_s: float) -> Iterator[Action]:
    for look in world.looks:
        if look.ended_at and max(0.0, look.now - look.ended_at) >= settling_s:
            yield SettleEnded(look.held)


def _groups(world: World) -> Iterator[Action]:
    yield from _unread(world, "groups")
    for one in world.gatherings:
        doom = groups.doomed(one)
        if doom is not None:
            yield GiveUp(one.job, doom.state, doom.reason)
            continue
        for name in groups.released(one):
            yield ReleaseGroup(one.job, name)


def _after(world: World) -> Iterator[Action]:
    yield from _unread(world, "after")
    for one in world.waiters:
        never = awaited.why_never(one)
        if never:
            yield GiveUp(one.job, JobState.CANCELLED, never, awaited=True)
        elif awaited.may_go(one):
            yield ReleaseWaiter(one.job, again=one.released)


def _children(world: World) -> Iterator[Action]:
    yield from _unread(world, "children")
    for job in family.orphaned(world.children):
        yield EndChild(job)


def _overdue(world: World) -> Iterator[Action]:
    yield from _unread(world, "overdue")
    held = {look.attempt: look for look in world.looks}
    for one in world.late:
        if one.attempt not in held:
            yield EndLate(one.attempt, one.key, one.reason)
    for look in world.looks:
        claim = look.held.claim
        if claim.overdue and not look.ended_at:
            yield EndLate(look.attempt, claim.queue_key, claim.overdue, claim)


def _jobs(world: World) -> Iterator[Action]:
    yield from _unread(world, "open")
    cancelled = {job for job, rank in world.cancels if rank is None}
    claimed = _by_job(look.attempt for look in world.looks)
    waiting = _by_job(entry.attempt for entry in world.later)
    due = []
    for one in world.open_jobs:
        if one.job not in cancelled:  # else the first pass ended what was queued, and writes the final
            held, lying = claimed.get(one.job, {}), {**world.on_queue.get(one.job, {}), **waiting.get(one.job, {})}
            urgent = one.had_claims and not held
            due.append((not urgent, one.looked_at, MendJob(one.job, one.since, held, lying, urgent)))
    # A tick looks after so many: first who may be over, then the others in turns.
    yield from (action for _, _, action in sorted(due, key=lambda one: one[:2]))


def _placing(world: World) -> Placing:
    return placement.place(world.queue.board) if world.queue is not None else NOTHING


def _place(world: World, placing: Placing) -> Iterator[Action]:
    yield from _unread(world, "place")
    if world.queue is not None:
        yield from place_actions.actions_of(world.queue, placing)


def _by_job(attempts: Iterable[AttemptId]) -> defaultdict[JobId, dict[int, int]]:
    found: defaultdict[JobId, dict[int, int]] = defaultdict(dict)
    for attempt in attempts:
        found[attempt.job][attempt.rank] = max(attempt.n, found[attempt.job].get(attempt.rank, 0))
    return found


def _sweep(world: World) -> Iterator[Action]:
    yield from _unread(world, "jobs", "entries", "orders")
    held = {look.attempt.job for look in world.looks}  # a holder's own looks obey every verdict
    for one in world.swept:
        if one.job not in held:
            yield SweepJob(one.job, one.since, one.ended, one.on_queue)
    for entry in world.lying:
        yield SweepEntry(entry.key, entry.attempt)
    if "running" not in world.unread:
        claimed = {look.attempt for look in world.looks}
        for order in world.orders:
            if order.attempt not in claimed:
                yield DropOrder(order)
