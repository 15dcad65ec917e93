"""Boards in a form that a person reads and writes (`tests/worlds/*.yaml`), what a plan says of them in the same form,
and the board after a plan was carried out.

Times are `HH:MM` or `HH:MM:SS` of one day, UTC; sizes and durations as everywhere. A machine's `running` tasks are part
of its room: `cores: 8` with a task of 2 has 6 free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from stado_like.job.hardware import ANY_GPU, Device, GpuKind, Port
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.spec.units import duration_s, size_bytes, size_words
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Hold, Member, Near, Quota, Running, Spot, Unit
from stado_like.planning.fit import Machine, cores, settled, taking
from stado_like.planning.leaving import leaving
from stado_like.planning.placing import Placing

DAY = datetime(2026, 10, 7, tzinfo=UTC).timestamp()
WORLDS = Path(__file__).resolve().parent / "worlds"
GIB = 1 << 30


def at(said: str | float) -> float:
    """`14:20` -> seconds since 1970."""
    if not isinstance(said, str):
        return float(said)
    hours, minutes, *seconds = (int(part) for part in said.split(":"))
    return DAY + hours * 3600 + minutes * 60 + (seconds[0] if seconds else 0)


def shown(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}".removesuffix(":00")


def job_id(said: str) -> JobId:
    """`train`, or `other/train` in another workspace."""
    workspace, _, name = said.rpartition("/")
    return JobId(workspace or "default", name, 1)


def job_name(job: JobId) -> str:
    return job.name if job.workspace == "default" else f"{job.workspace}/{job.name}"


# ---- reading


def board_of(world: Mapping[str, Any]) -> Board:
    return Board(
        now=at(world.get("now", "14:00")),
        spots=tuple(_spot(name, said or {}) for name, said in (world.get("machines") or {}).items()),
        units=tuple(_unit(said, number) for number, said in enumerate(world.get("units") or (), 1)),
        quotas={name: _quota(said) for name, said in (world.get("quotas") or {}).items()},
        holds=tuple(_hold(worker, said) for worker, said in (world.get("holds") or {}).items()),
        holds_nonce=world.get("nonce", ""),
        queue_paused=world.get("paused", ""),
    )


def _spot(name: str, said: Mapping[str, Any]) -> Spot:
    total = said.get("cores", 8) * 1000, size_bytes(said.get("memory", "64GiB"))
    devices = tuple(
        Device(id=f"{name}-{i}", index=i, model=model, memory_bytes=80 * GIB, nvlink_domain=said.get("nvlink", ""))
        for i, model in enumerate(said.get("cards") or ())
    )
    machine = Machine(
        worker=name,
        host=name,
        free_cpu_millis=round(total[0]),
        free_memory_bytes=total[1],
        free_gpus=len(devices) or said.get("gpus", 0),
        running=0,
        closed=said.get("closed", ""),
        labels=said.get("labels") or {},
        total_cpu_millis=round(total[0]),
        total_memory_bytes=total[1],
        gpus=devices,
        ports=tuple(Port(kind=kind, gbps=gbps) for kind, gbps in (said.get("ports") or {}).items()),
    )
    running = []
    for one in said.get("running") or ():
        task = _running(one)
        task = replace(task, ask=settled(machine, task.ask))
        machine = taking(machine, task.ask)
        running.append(task)
    return Spot(machine, tuple(running), echoed=said.get("echoed", ""))


def _ask(said: Mapping[str, Any]) -> Ask:
    return Ask(
        cpu_millis=round(said.get("cores", 1) * 1000),
        memory_bytes=size_bytes(said.get("memory", "1GiB")),
        gpus=said.get("gpus", 0),
        exclusive=said.get("exclusive", False),
        pinned_host=said.get("host", ""),
        names=tuple(said.get("names") or ()),
        labels=said.get("labels") or {},
        apart=said.get("apart", ""),
        gpu_kind=GpuKind(every=True) if said.get("every") else ANY_GPU,
    )


def _running(said: Mapping[str, Any]) -> Running:
    return Running(
        attempt=AttemptId(job_id(said["job"]), said.get("rank", 0), said.get("n", 1)),
        ask=_ask(said),
        priority=said.get("priority", 0),
        running_at=at(said.get("since", "13:00")),
        ends_by=at(said["ends"]) if "ends" in said else None,
        protected_until=at(said["protected"]) if "protected" in said else 0.0,
        capped=said.get("capped", False),
        gang=said.get("gang", False),
        stopping=said.get("stopping", False),
        saved_at=at(said["saved"]) if "saved" in said else 0.0,
    )


def _unit(said: Mapping[str, Any], number: int) -> Unit:
    job = job_id(said["job"])
    each = [{**said, **one} for one in said["members"]] if "members" in said else [said] * said.get("tasks", 1)
    asks = [_ask(one) for one in each]
    first = said.get("rank", 0)
    return Unit(
        job=job,
        members=tuple(Member(AttemptId(job, first + i, said.get("n", 1)), ask) for i, ask in enumerate(asks)),
        priority=said.get("priority", 0),
        created_ms=said.get("created", number),
        placed_by_tick=said.get("by", "tick") == "tick",
        least=said.get("least", 0),
        near=Near(**said.get("near", {})),
        time_limit_s=int(duration_s(said["limit"])) if "limit" in said else None,
        waiting_since=at(said.get("since", "13:50")),
        shape=said.get("shape") or {},
        unsplit=said.get("unsplit", ""),
        avoid=frozenset(said.get("avoid") or ()),
    )


def _quota(said: Mapping[str, Any]) -> Quota:
    return Quota(
        gpus=said.get("gpus"),
        cpu_millis=said["cores"] * 1000 if "cores" in said else None,
        memory_bytes=size_bytes(said["memory"]) if "memory" in said else None,
        running_jobs=said.get("jobs"),
    )


def _hold(worker: str, said: Mapping[str, Any]) -> Hold:
    ask = _ask(said)
    return Hold(
        job=job_id(said["job"]),
        worker=worker,
        cpu_millis=ask.cpu_millis,
        memory_bytes=ask.memory_bytes,
        gpus=ask.gpus,
        priority=said.get("priority", 0),
        starts_at=at(said["starts"]) if "starts" in said else 0.0,
        created_ms=said.get("created", 1),
    )


# ---- showing


def plan_of(placing: Placing) -> dict[str, Any]:
    """A plan in the words of a world; what it does not do is left out."""
    found: dict[str, Any] = {
        "placed": {_name(one.job, one.where): _where(one.where) for one in placing.placed},
        "taken": {_name(one.job, one.where): _where(one.where) for one in placing.taken},
        "shapes": {job_name(one.job): f"{one.tasks} x {one.gpus_each}" for one in placing.shapes},
        "holds": {one.worker: _hold_text(one) for one in placing.holds},
        "evictions": [
            f"{job_name(one.attempt.job)}-{one.attempt.rank} on {one.worker} for {job_name(one.for_job)}: {one.reason}"
            for one in placing.evictions
        ],
        "waiting": {job_name(job): one.reason for job, one in placing.waiting.items()},
        "quota": {job_name(job): one for job, one in placing.quota.items()},
    }
    given = [(a, one.devices[a]) for one in (*placing.placed, *placing.taken) for a in sorted(one.devices)]
    found["every gpu"] = {_name(a.job, {a: ""}): " ".join(devices) for a, devices in given}
    return {name: value for name, value in found.items() if value}


def _name(job: JobId, where: Mapping[AttemptId, str]) -> str:
    ranks = sorted(attempt.rank for attempt in where)
    return f"{job_name(job)}-{ranks[0]}" + (f"..{ranks[-1]}" if len(ranks) > 1 else "")


def _where(where: Mapping[AttemptId, str]) -> str:
    """`w1 w1 w2`, by rank."""
    return " ".join(where[attempt] for attempt in sorted(where))


def _hold_text(one: Hold) -> str:
    room = f"{cores(one.cpu_millis)} cores, {size_words(one.memory_bytes)}" + (f", {one.gpus} gpus" if one.gpus else "")
    when = f" from {shown(one.starts_at)}" if one.starts_at else ""
    return f"{job_name(one.job)}: {room}{when}" + (", whole" if one.whole else "")


# ---- carrying out


def carried_out(board: Board, placing: Placing) -> Board:
    """The board when all of a plan was done: orders claimed, holds written and obeyed, victims told. What workers claim
    by themselves is claimed where the plan left its room."""
    spots = {spot.machine.worker: spot for spot in board.spots}
    waiting: dict[AttemptId, tuple[Unit, Member]] = {m.attempt: (u, m) for u in board.units for m in u.members}
    gone = {attempt for one in (*placing.placed, *placing.taken) for attempt in one.where}
    for one in (*placing.placed, *placing.taken):
        for attempt, worker in one.where.items():
            unit, member = waiting[attempt]
            member = replace(member, ask=member.ask.among(one.devices.get(attempt, ())))
            spots[worker] = with_task(spots[worker], unit, member, board.now)
    stopped = {one.attempt for one in placing.evictions}
    nonce = board.holds_nonce if placing.holds == board.holds else f"{board.holds_nonce}+"
    new_spots = tuple(
        replace(
            spot,
            running=tuple(replace(task, stopping=task.stopping or task.attempt in stopped) for task in spot.running),
            echoed=nonce,
        )
        for spot in spots.values()
    )
    units = []
    for unit in board.units:
        left = tuple(member for member in unit.members if member.attempt not in gone)
        if len(left) == len(unit.members):
            units.append(unit)
        else:  # the rest of one that started with its least joins
            units += [replace(unit, members=(member,), least=0) for member in left]
    return replace(board, spots=new_spots, units=tuple(units), holds=placing.holds, holds_nonce=nonce)


def with_task(spot: Spot, unit: Unit, member: Member, now: float) -> Spot:
    ask = settled(spot.machine, member.ask)
    ends_by = None if unit.time_limit_s is None else now + unit.time_limit_s
    task = Running(member.attempt, ask, unit.priority, now, ends_by, gang=len(unit.members) > 1)
    return replace(spot, machine=taking(spot.machine, ask), running=(*spot.running, task))


def after_ends(board: Board, now: float) -> Board:
    """The board at a later moment, when every task has used up its time limit, and what was stopped is gone."""
    spots = []
    for spot in board.spots:
        gone = [one for one in spot.running if one.stopping or (one.ends_by is not None and one.ends_by <= now)]
        left = tuple(one for one in spot.running if one not in gone)
        spots.append(replace(spot, machine=leaving(spot.machine, gone, left), running=left))
    return replace(board, now=now, spots=tuple(spots))


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found
