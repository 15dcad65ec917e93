"""What holds of every plan, whatever the board: room is never given twice, gangs start whole, what passes the head does
not delay it, the head comes to its turn, and a plan that was carried out leaves nothing to plan.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.plans import KINDS, board
from stado_like.job.hardware import ANY_GPU, Device, GpuKind
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Near, Quota, Running, Spot, Unit
from stado_like.planning.fit import Machine, settled, taking
from stado_like.planning.holds import Passer, passes
from stado_like.planning.leaving import leaving
from stado_like.planning.placement import place
from tests.builders_worlds import DAY, after_ends, carried_out

GIB = 1 << 30
NOW = DAY + 50_000.0
SOME = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERY, EVERY_AND_CORES = GpuKind(every=True), GpuKind(every=True, each_cpu_millis=1500)
LIMITS = st.none() | st.integers(1, 20).map(lambda n: n * 60)


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    cores, gpus = draw(st.integers(1, 6)), draw(st.sampled_from((0, 0, 0, 1, 2)))
    labels = draw(st.sampled_from(({}, {}, {}, {"pool": "x"}, {"pool": "y"})))
    kind = draw(st.sampled_from((ANY_GPU, ANY_GPU, EVERY, EVERY_AND_CORES))) if gpus else ANY_GPU
    millis = cores * 1000 if kind is not EVERY_AND_CORES else kind.each_cpu_millis * gpus
    return Ask(millis, GIB, gpus, exclusive=draw(st.integers(0, 9)) == 0, labels=labels, gpu_kind=kind)


@st.composite
def spots(draw: st.DrawFn, number: int) -> Spot:
    cores, gpus = draw(st.integers(1, 8)), draw(st.sampled_from((0, 0, 2, 4)))
    labels = {"pool": draw(st.sampled_from("xy")), "topology.stado.io/rack": draw(st.sampled_from(("r1", "r2")))}
    machine = Machine(
        f"m{number}", f"m{number}", cores * 1000, 64 * GIB, gpus, 0, labels=labels,
        closed=draw(st.sampled_from(("", "", "", "", "machine is cordoned: repair"))),
        total_cpu_millis=cores * 1000, total_memory_bytes=64 * GIB,
        gpus=tuple(Device(id=f"g{i}", index=i) for i in range(gpus)),
    )  # fmt: skip
    running: list[Running] = []
    for i in range(draw(st.integers(0, 3))):
        cores = draw(st.integers(1, 4))
        ask = Ask(cores * 1000, GIB, draw(st.integers(0, 1)))
        if ask.cpu_millis > machine.free_cpu_millis or ask.gpus > machine.free_gpus:
            continue
        ask = settled(machine, ask)
        ends_by = draw(st.none() | st.integers(1, 30).map(lambda n: NOW + n * 60))
        job = JobId(draw(st.sampled_from(("default", "other"))), f"old-{number}-{i}", 1)
        running.append(Running(AttemptId(job, 0, 1), ask, draw(st.integers(0, 2)), NOW - 60, ends_by))
        machine = taking(machine, ask)
    return Spot(machine, tuple(running))


@st.composite
def units(draw: st.DrawFn, number: int, *, priority: int | None = None) -> Unit:
    job = JobId(draw(st.sampled_from(("default", "other"))), f"job-{number}", 1)
    ask, size = draw(asks()), draw(st.sampled_from((1, 1, 1, 2, 3, 4)))
    return Unit(
        job=job,
        members=tuple(Member(AttemptId(job, rank, 1), ask) for rank in range(size)),
        priority=draw(st.integers(0, 2)) if priority is None else priority,
        created_ms=number,
        placed_by_tick=size > 1 or draw(st.booleans()),
        least=draw(st.integers(0, size - 1)) if size > 1 else 0,
        near=Near(keep_within=draw(st.sampled_from(("", "", "", "rack", "node")))) if size > 1 else Near(),
        time_limit_s=draw(LIMITS),
    )


@st.composite
def boards(draw: st.DrawFn, *, priority: int | None = None) -> Board:
    machines = tuple(draw(spots(number)) for number in range(draw(st.integers(1, 4))))
    waiting = tuple(draw(units(number, priority=priority)) for number in range(1, draw(st.integers(1, 7)) + 1))
    limits = st.none() | st.integers(0, 6)
    quota = Quota(gpus=draw(limits), running_jobs=draw(limits))
    return Board(NOW, machines, waiting, {"other": quota} if draw(st.booleans()) else {})


def room_is_never_given_twice(before: Board, after: Board) -> None:
    empty = {spot.machine.worker: leaving(spot.machine, spot.running) for spot in before.spots}
    for spot in after.spots:
        whole = empty[spot.machine.worker]
        assert sum(one.ask.cpu_millis for one in spot.running) <= whole.free_cpu_millis
        assert sum(one.ask.memory_bytes for one in spot.running) <= whole.free_memory_bytes
        assert sum(one.ask.gpus for one in spot.running) <= whole.free_gpus
        devices = [device for one in spot.running for device in one.ask.devices]
        assert len(devices) == len(set(devices)), "one GPU given to two"
        if any(one.ask.exclusive for one in spot.running):
            assert len(spot.running) == 1


# ---- one plan


@SOME
@given(boards())
def test_room_is_never_given_twice_and_closed_machines_get_nothing(board: Board) -> None:
    """Row: negative free resources."""
    plan = place(board)
    room_is_never_given_twice(board, carried_out(board, plan))
    closed = {spot.machine.worker for spot in board.spots if spot.machine.closed}
    assert not closed & {worker for one in (*plan.placed, *plan.taken) for worker in one.where.values()}
    assert not closed & {hold.worker for hold in plan.holds}


@SOME
@given(boards())
def test_gangs_start_whole_or_with_their_least(board: Board) -> None:
    plan = place(board)
    together: defaultdict[JobId, int] = defaultdict(int)
    for one in plan.placed:
        together[one.job] = max(together[one.job], len(one.where))
    for unit in board.units:
        assert (
            together[unit.job] == 0
            or together[unit.job] >= (unit.least or len(unit.members))
            or not unit.placed_by_tick
        )


@SOME
@given(boards())
def test_quota_is_never_exceeded(board: Board) -> None:
    plan = place(board)
    taken = {one.attempt: one.ask for spot in carried_out(board, plan).spots for one in spot.running}
    new = [(attempt, taken[attempt]) for one in (*plan.placed, *plan.taken) for attempt in one.where]
    for name, quota in board.quotas.items():
        mine = [(attempt, ask) for attempt, ask in new if attempt.job.workspace == name]
        old = [one for spot in board.spots for one in spot.running if one.job.workspace == name]
        if mine and quota.gpus is not None and any(ask.gpus for _, ask in mine):
            assert sum(ask.gpus for _, ask in mine) + sum(one.ask.gpus for one in old) <= quota.gpus
        if mine and quota.running_jobs is not None:
            jobs = {attempt.job for attempt, _ in mine} | {one.job for one in old}
            assert len(jobs) <= max(quota.running_jobs, len({one.job for one in old}))


@SOME
@given(boards())
def test_whoever_waits_is_told_why_and_each_machine_has_one_hold(board: Board) -> None:
    plan = place(board)
    started = {attempt for one in (*plan.placed, *plan.taken) for attempt in one.where}
    waiting = {unit.job for unit in board.units for member in unit.members if member.attempt not in started}
    assert set(plan.waiting) == waiting
    held = [hold.worker for hold in plan.holds]
    assert len(held) == len(set(held))


@SOME
@given(boards())
def test_plan_that_was_carried_out_leaves_nothing_to_plan(board: Board) -> None:
    plan = place(board)
    for _ in range(3):
        before, board = board, carried_out(board, plan)
        plan = place(board)
        assert not plan.placed and not plan.taken, (before, plan)
        if not plan.evictions and plan.holds == board.holds:
            return
    assert not plan.evictions and plan.holds == board.holds


# ---- who passes the head


@SOME
@given(boards(priority=0))
def test_what_passes_a_head_does_not_delay_it(board: Board) -> None:
    """Every task runs to the end of its limit, and the head starts when it was told."""
    plan = place(board)
    after = carried_out(board, plan)
    for job, starts_at in {hold.job: hold.starts_at for hold in plan.holds if hold.starts_at}.items():
        then = after_ends(after, max(starts_at, board.now))
        mine = tuple(unit for unit in after.units if unit.job == job)
        alone = place(replace(then, units=mine, holds=(), quotas={}))
        assert alone.placed or alone.taken


@SOME
@given(boards(priority=0), st.data())
def test_head_starts_by_the_moment_it_was_told_whatever_comes_later(board: Board, data: st.DataObject) -> None:
    """A stream of further work, in many plans: the promise of the first one is kept. (Whoever a quota keeps back is no
    head, and may be ahead of it once the quota is lifted: there are none here.)"""
    board = replace(board, quotas={})
    plan = place(board)
    promised = {hold.job: hold.starts_at for hold in plan.holds if hold.starts_at}
    if not promised:
        return
    board, number = carried_out(board, plan), 100
    for minute in range(1, 31):
        board = after_ends(board, NOW + minute * 60)
        if minute % 3 == 0:
            number += 1
            board = replace(board, units=(*board.units, data.draw(units(number, priority=0))))
        plan = place(board)
        started = {one.job for one in (*plan.placed, *plan.taken)}
        for job, moment in list(promised.items()):
            if job in started:
                del promised[job]
            else:
                assert moment > board.now, f"{job} was told {moment - NOW} and did not start by {board.now - NOW}"
        board = carried_out(board, plan)


@SOME
@given(boards(priority=0), st.data())
def test_head_is_not_starved_by_a_stream_of_small_work(board: Board, data: st.DataObject) -> None:
    """Nothing has a time limit, tasks end one by one, and smaller work comes without end."""
    spots_ = tuple(replace(s, running=tuple(replace(r, ends_by=None) for r in s.running)) for s in board.spots)
    board = replace(board, spots=spots_, quotas={}, units=tuple(replace(u, time_limit_s=None) for u in board.units))
    plan = place(board)
    heads = {hold.job for hold in plan.holds}
    tasks = sum(len(spot.running) for spot in board.spots) + sum(len(unit.members) for unit in board.units)
    board = carried_out(board, plan)
    for step in range(tasks + 1):
        if not heads:
            return
        oldest = min(
            (one for spot in board.spots for one in spot.running),
            key=lambda one: (one.running_at, one.attempt),
            default=None,
        )
        board = replace(
            board,
            now=NOW + step + 1,
            spots=tuple(_less(spot, oldest) for spot in board.spots),
            units=(*board.units, _small(1000 + step)),
        )
        plan = place(board)
        heads -= {one.job for one in (*plan.placed, *plan.taken)}
        board = carried_out(board, plan)
    assert not heads


def _less(spot: Spot, gone: Running | None) -> Spot:
    if gone is None or gone not in spot.running:
        return spot
    left = tuple(one for one in spot.running if one != gone)
    return replace(spot, machine=leaving(spot.machine, (gone,), left), running=left)


def _small(number: int) -> Unit:
    job = JobId("default", f"small-{number}", 1)
    return Unit(job, (Member(AttemptId(job, 0, 1), Ask(1000, GIB, 0)),), 0, number, placed_by_tick=False)


# ---- the worker's question


@SOME
@given(boards(priority=0))
def test_worker_lets_pass_what_the_plan_let_pass(board: Board) -> None:
    """A worker asks the same question before it claims, with what runs on its machine."""
    plan = place(board)
    on = {spot.machine.worker: spot for spot in board.spots}
    by_worker = {hold.worker: hold for hold in plan.holds}
    waiting = {unit.job: unit for unit in board.units}
    alone = [one for one in plan.taken if len(one.where) == 1]
    for one in alone[:1]:  # the first only: those after it are judged with it on the machine
        (attempt,), (worker,) = one.where.keys(), one.where.values()
        hold, unit = by_worker.get(worker), waiting[one.job]
        ask = next(member.ask for member in unit.members if member.attempt == attempt)
        if hold is not None and not any(worker in other.where.values() for other in plan.placed):
            passer = Passer(unit.job, unit.priority, unit.created_ms, ask, unit.time_limit_s)
            assert passes(hold, passer, on[worker].machine, on[worker].running, board.now)


# ---- larger boards


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_tasks_on_a_hundred_machines(kind: str) -> None:
    made = board(1_000, 100, kind=kind)
    after = carried_out(made, place(made))
    room_is_never_given_twice(made, after)
    again = place(after)
    assert not again.placed and not again.taken


# ---- preemption, over many plans


@SOME
@given(boards())
def test_evictions_come_to_an_end_and_nobody_yields_to_an_equal(board: Board) -> None:
    """Row: same-band users evict each other. Victims are queued again, and the queue comes to rest."""
    board = replace(board, quotas={})
    for _ in range(25):
        plan = place(board)
        priority = {unit.job: unit.priority for unit in board.units}
        on = {one.attempt: one for spot in board.spots for one in spot.running}
        assert all(on[one.attempt].priority < priority[one.for_job] for one in plan.evictions)
        if not (plan.placed or plan.taken or plan.evictions) and plan.holds == board.holds:
            return
        board = _stops_are_over(carried_out(board, plan))
    raise AssertionError("never comes to rest")


def _stops_are_over(board: Board) -> Board:
    """Whoever was stopping is gone, and waits again at its place in the queue."""
    gone = [one for spot in board.spots for one in spot.running if one.stopping]
    again = tuple(
        Unit(one.job, (Member(one.attempt.next, replace(one.ask, devices=())),), one.priority, 0) for one in gone
    )
    spots_ = []
    for spot in board.spots:
        left = tuple(one for one in spot.running if not one.stopping)
        stopped = [one for one in spot.running if one.stopping]
        spots_.append(replace(spot, machine=leaving(spot.machine, stopped, left), running=left))
    return replace(board, spots=tuple(spots_), units=(*board.units, *again))
