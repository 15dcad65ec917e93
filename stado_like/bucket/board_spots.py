"""Machines for a board: what each said last, set right by what is known since.

A broadcast is up to twenty seconds old, and claims are not. What was claimed since (a claim that the broadcast does not
name) is taken off what is free; so is what was promised to a worker that did not claim it yet. What it names and nobody
claims any more comes back, unless the broadcast may be younger than our listing of the claims.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from stado_like.bucket import generations, holding
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.known_jobs import Known
from stado_like.bucket.queue_memory import QueueMemory
from stado_like.errors import BadRecord
from stado_like.job.broadcast import Held
from stado_like.job.ids import AttemptId
from stado_like.job.states import TaskState
from stado_like.job.wanted import Wanted
from stado_like.planning.board import Running, Spot
from stado_like.planning.fit import Machine, fits, held_by, taking, whole_cards
from stado_like.planning.leaving import leaving
from stado_like.planning.machines import machine_of
from stado_like.planning.world import BROADCAST_GRACE_S, Broadcast, Look

KnownJob = Callable[[AttemptId], Known | None]
"""What is known of an attempt's job; None: it cannot be used, and was set aside."""


@dataclass(frozen=True, slots=True)
class Promise:
    """An order that was given and not claimed yet. `until`: when it is taken back; `devices`: the GPUs that were
    counted for it, of a task that takes every free one."""

    attempt: AttemptId
    worker: str
    until: float
    devices: tuple[str, ...] = ()


def spots(
    bucket: Bucket,
    memory: QueueMemory,
    broadcasts: Mapping[str, Broadcast],
    wanted: Mapping[str, Wanted],
    looks: Iterable[Look],
    promises: Iterable[Promise],
    stopping: frozenset[AttemptId],
    known: KnownJob,
) -> tuple[Spot, ...]:
    """One for each machine that ever spoke, by name. Raises `StoreUnavailable`."""
    looks = tuple(looks)
    claims: defaultdict[str, list[Look]] = defaultdict(list)
    for look in looks:
        claims[look.machine].append(look)
    promised: defaultdict[str, list[Promise]] = defaultdict(list)
    for one in promises:
        promised[one.worker].append(one)
    held = {look.attempt for look in looks}
    found = []
    for name in sorted(broadcasts):
        running = [made for look in claims[name] if (made := _running(bucket, memory, look, stopping, known))]
        waiting = [made for one in promised[name] if (made := _promised(one, known))]
        found.append(_spot(broadcasts[name], wanted.get(name, Wanted()), claims[name], running, waiting, held, known))
    return tuple(found)


def _spot(
    said: Broadcast,
    wanted: Wanted,
    claims: list[Look],
    running: list[Running],
    promised: list[Running],
    held: set[AttemptId],
    known: KnownJob,
) -> Spot:
    capacity = said.capacity
    promise = capacity.next_by or said.last_modified
    machine = machine_of(
        capacity,
        age_s=max(0.0, said.now - said.last_modified),
        stale=said.now > promise + BROADCAST_GRACE_S,
        wanted=wanted,
        apart=frozenset(one.ask.apart for one in running if one.ask.apart),
    )
    named = {(one.attempt, one.nonce): one for one in capacity.held}
    told = {look.attempt: named.get((str(look.attempt), look.held.claim.nonce)) for look in claims}
    running = [_told(one, told[one.attempt]) for one in running]
    fresh = {attempt for attempt, said_of_it in told.items() if said_of_it is None}
    gone = _gone(said, claims, held, known)
    machine = leaving(replace(machine, apart=frozenset()), gone, [one for one in running if one.attempt not in fresh])
    machine = replace(machine, apart=frozenset(one.ask.apart for one in running if one.ask.apart))
    for one in (*(one for one in running if one.attempt in fresh), *promised):
        machine = _with(machine, one)
    return Spot(machine, (*running, *promised), heard_at=said.last_modified, echoed=capacity.holds_nonce)


def _told(one: Running, said: Held | None) -> Running:
    """With what its worker says of it: the GPUs it has, and its newest checkpoint."""
    if said is None or not (said.devices or said.saved_at):
        return one
    return replace(one, ask=one.ask.on(said.devices), saved_at=max(one.saved_at, said.saved_at))


def _with(machine: Machine, one: Running) -> Machine:
    """With a task that may not fit by what the machine says: nothing is free below zero."""
    return taking(machine, one.ask) if fits(replace(machine, closed=""), one.ask) else _crowded(machine, one)


def _crowded(machine: Machine, one: Running) -> Machine:
    gpus = held_by(machine.gpus, (one.ask,))
    return replace(
        machine,
        free_cpu_millis=max(0, machine.free_cpu_millis - one.ask.cpu_millis),
        free_memory_bytes=max(0, machine.free_memory_bytes - one.ask.memory_bytes),
        free_gpus=whole_cards(gpus) if gpus else max(0, machine.free_gpus - one.ask.gpus),
        gpus=gpus,
        running=machine.running + 1,
        taken_whole=machine.taken_whole or one.ask.exclusive,
        apart=machine.apart | {one.ask.apart} if one.ask.apart else machine.apart,
    )


def _gone(said: Broadcast, claims: list[Look], held: set[AttemptId], known: KnownJob) -> list[Running]:
    listed_at = min((look.held.now for look in claims), default=said.now)
    if said.last_modified >= listed_at:
        return []  # it may name what was claimed after our listing
    found = []
    for one in said.capacity.held:
        try:
            a = AttemptId.parse(one.attempt)
        except BadRecord:
            continue
        if a not in held:
            of = known(a)
            if of is not None and a.rank < of.terms.units:
                found.append(_told(Running(a, of.terms.for_rank(a.rank).ask, of.terms.priority), one))
    return found


def _promised(one: Promise, known: KnownJob) -> Running | None:
    of = known(one.attempt)
    if of is None or one.attempt.rank >= of.terms.units:
        return None
    terms = of.terms.for_rank(one.attempt.rank)
    ask = terms.ask.on(one.devices)
    return Running(one.attempt, ask, terms.priority, protected_until=one.until, gang=of.terms.gang)


def _running(
    bucket: Bucket, memory: QueueMemory, look: Look, stopping: frozenset[AttemptId], known: KnownJob
) -> Running | None:
    a, claim = look.attempt, look.held.claim
    of = known(a)
    if of is None or a.rank >= of.terms.units:
        return None
    terms = of.terms.for_rank(a.rank)
    began = _began(bucket, memory, look, minimum_s=terms.preemptible_after_s or 0)
    return Running(
        attempt=a,
        ask=terms.ask.on(claim.devices),
        priority=terms.priority,
        running_at=began,
        ends_by=holding.ends_by(began or claim.since, terms.time_limit_s),
        protected_until=began + terms.preemptible_after_s if terms.preemptible_after_s else 0.0,
        capped=_is_capped(bucket, memory, look, terms.max_preemptions),
        gang=of.terms.gang,
        stopping=a in stopping or bool(look.ended_at) or _says_so(look),
        saved_at=look.beat.record.saved_at if look.beat is not None and look.beat.record is not None else 0.0,
    )


def _says_so(look: Look) -> bool:
    record = look.beat.record if look.beat is not None else None
    return record is not None and record.state is TaskState.STOPPING


def _began(bucket: Bucket, memory: QueueMemory, look: Look, *, minimum_s: int) -> float:
    """When it began to run. A claim that nothing was read of counts from the claim, but where a minimum runtime is
    promised: there its heartbeat is asked once."""
    record = look.beat.record if look.beat is not None else None
    if record is not None and record.running_at:
        return record.running_at
    if not minimum_s:
        return look.held.claim.since
    if look.attempt not in memory.began:
        found = bucket.heartbeat(look.attempt)
        if found is None or not found.record.running_at:
            return found.now if found is not None else look.held.now  # not yet: the whole of it is before it
        memory.began[look.attempt] = found.record.running_at
    return memory.began[look.attempt]


def _is_capped(bucket: Bucket, memory: QueueMemory, look: Look, most: int | None) -> bool:
    """What an attempt's run was preempted so far stands in the end before it; a gang's, which is charged as a whole, in
    the placement of its generation."""
    if most is None:
        return False
    a, generation = look.attempt, look.held.claim.generation
    before = bucket.end(a.previous) if a.previous is not None else None
    if before is not None and before.budgets.preemptions >= most:
        return True
    if not generation:
        return most == 0
    if (a.job, generation) not in memory.preempted:
        placement = generations.read_placement(bucket, a.job, generation)
        memory.preempted[a.job, generation] = placement.budgets.preemptions if placement is not None else 0
    return memory.preempted[a.job, generation] >= most
