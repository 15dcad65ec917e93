"""Boards on which something is stopped for something more urgent, for the tests of preemption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Near, Running, Spot, Unit
from stado_like.planning.fit import Machine, fits, taking
from stado_like.planning.leaving import leaving
from stado_like.planning.topology import Assigned, assign
from tests.builders_worlds import DAY

GIB = 1 << 30
NOW = DAY + 50_400.0


def job(name: str, workspace: str = "default") -> JobId:
    return JobId(workspace, name, 1)


def task(name: str, cores: int, *, rank: int = 0, gpus: int = 0, workspace: str = "default", **more: object) -> Running:
    said = {"priority": 0, "running_at": NOW - 600, **more}
    return Running(AttemptId(job(name, workspace), rank, 1), Ask(cores * 1000, GIB, gpus), **said)  # type: ignore[arg-type]


def spot(name: str, cores: int, *running: Running, gpus: int = 0, rack: str = "r1") -> Spot:
    labels = {"topology.stado.io/rack": rack}
    machine = Machine(
        name, name, cores * 1000, 64 * GIB, gpus, 0, labels=labels,
        total_cpu_millis=cores * 1000, total_memory_bytes=64 * GIB, total_gpus=gpus,
    )  # fmt: skip
    for one in running:
        machine = taking(machine, one.ask)
    return Spot(machine, tuple(running))


def urgent(cores: int, *, tasks: int = 1, gpus: int = 0, near: Near | None = None, workspace: str = "default") -> Unit:
    ask, j = Ask(cores * 1000, GIB, gpus), job("urgent", workspace)
    members = tuple(Member(AttemptId(j, rank, 1), ask) for rank in range(tasks))
    return Unit(j, members, 10, 1, near=near or Near())


@st.composite
def boards(draw: st.DrawFn) -> tuple[list[Spot], list[Spot]]:
    """Machines that the unit may use, and others."""
    spots = []
    gangs = {name: draw(st.integers(0, 2)) for name in ("g1", "g2")}
    guarded = {name: draw(st.integers(0, 5)) == 0 for name in gangs}
    ranks = dict.fromkeys(gangs, 0)
    for number in range(draw(st.integers(1, 5))):
        cores = left = draw(st.integers(1, 6))
        running: list[Running] = []
        for i in range(draw(st.integers(0, 4))):
            size, kind = draw(st.integers(1, 3)), draw(st.sampled_from(("", "", "", "g1", "g2")))
            if size > left:
                break
            left -= size
            since = NOW - draw(st.integers(0, 3)) * 60
            stopping = draw(st.integers(0, 7)) == 0
            if kind:
                ranks[kind] += 1
                one = task(
                    kind, size, rank=ranks[kind], gang=True, priority=gangs[kind], running_at=since,
                    capped=guarded[kind], stopping=stopping,
                )  # fmt: skip
            else:
                one = task(
                    f"m{number}-{i}", size, priority=draw(st.integers(0, 3)), running_at=since, stopping=stopping,
                    capped=draw(st.integers(0, 7)) == 0,
                    protected_until=NOW + 60 if draw(st.integers(0, 7)) == 0 else 0.0,
                )  # fmt: skip
            running.append(one)
        spots.append(spot(f"m{number}", cores, *running, rack=draw(st.sampled_from(("r1", "r2")))))
    usable = draw(st.integers(1, len(spots)))
    return spots[:usable], spots[usable:]


def crowded(seed: int) -> tuple[list[Spot], Unit]:
    """Full machines, most of whose tasks are of three gangs, and a gang that wants in: what a guess gets wrong."""
    dice = Random(seed)
    spots: list[Spot] = []
    ranks = dict.fromkeys(("", "g1", "g2", "g3"), 0)
    for number in range(dice.randint(2, 6)):
        cores = left = dice.randint(3, 8)
        running: list[Running] = []
        while left and len(running) < 4 and dice.random() < 0.95:
            size = min(left, dice.randint(1, 3))
            left -= size
            gang, since = dice.choice(("", "", "g1", "g2", "g3")), NOW - dice.randint(0, 9) * 60
            ranks[gang] += 1
            name = gang or f"m{number}-{len(running)}"
            running.append(task(name, size, rank=ranks[gang], gang=bool(gang), running_at=since))
        spots.append(spot(f"m{number}", cores, *running, rack=dice.choice(("r1", "r2"))))
    tasks = dice.choice((2, 3, 4))
    near = dice.choice((Near(), Near(), Near(keep_within="rack"), Near(keep_within="node")))
    return spots, urgent(dice.randint(1, 4), tasks=tasks, near=near)


@st.composite
def preemptors(draw: st.DrawFn) -> Unit:
    tasks = draw(st.sampled_from((1, 1, 2, 3)))
    near = Near(keep_within=draw(st.sampled_from(("", "rack", "node")))) if tasks > 1 else Near()
    made = urgent(draw(st.integers(1, 5)), tasks=tasks, near=near)
    return replace(made, priority=draw(st.integers(1, 3)))


def without(spots: Sequence[Spot], gone: set[AttemptId]) -> list[Spot]:
    found = []
    for one in spots:
        going = [each for each in one.running if each.attempt in gone or each.stopping]
        left = [each for each in one.running if each not in going]
        found.append(replace(one, machine=leaving(one.machine, going, left), running=tuple(left)))
    return found


def starts(unit: Unit, spots: Sequence[Spot]) -> bool:
    if len(unit.members) == 1:
        return any(fits(one.machine, unit.members[0].ask) for one in spots)
    return isinstance(assign(unit, spots, NOW), Assigned)


def may_go(unit: Unit, everyone: Sequence[Running]) -> list[set[AttemptId]]:
    """What may be stopped, by what goes together."""
    guarded = {one.job for one in everyone if one.gang and not one.stopping and one.capped}
    found: dict[object, set[AttemptId]] = {}
    for one in everyone:
        alone = one.capped or one.protected_until > NOW
        if not one.stopping and one.priority < unit.priority and not (one.job in guarded if one.gang else alone):
            found.setdefault(one.job if one.gang else one.attempt, set()).add(one.attempt)
    return list(found.values())


def emptied(spots: Sequence[Spot]) -> list[Spot]:
    return [replace(one, machine=leaving(one.machine, one.running), running=()) for one in spots]


def next_of(board: Board, ends: set[AttemptId], *, back: bool = True) -> Board:
    """A minute later: these tasks have ended. Those that were being stopped wait again in their old place, a gang when
    all of it is gone."""
    spots, units = [], list(board.units)
    left_over = {one.job for each in board.spots for one in each.running if one.attempt not in ends}
    for one in board.spots:
        gone = [task for task in one.running if task.attempt in ends]
        left = tuple(task for task in one.running if task.attempt not in ends)
        spots.append(replace(one, machine=leaving(one.machine, gone, left), running=left))
        if back:
            for task in gone:
                if task.stopping and not task.gang:
                    units.append(waits(task.job, [task], task.attempt.n + 1))
    stopped: dict[JobId, list[Running]] = {}
    for task in (task for one in board.spots for task in one.running if task.attempt in ends):
        if back and task.gang and task.job not in left_over:
            stopped.setdefault(task.job, []).append(task)
    for j, members in stopped.items():
        if any(task.stopping for task in members):
            units.append(waits(j, members, members[0].attempt.n + 1))
    return replace(board, now=board.now + 60, spots=tuple(spots), units=tuple(units))


def waits(j: JobId, tasks: Sequence[Running], n: int) -> Unit:
    members = tuple(Member(AttemptId(j, one.attempt.rank, n), one.ask) for one in tasks)
    return Unit(j, members, tasks[0].priority, 0)
