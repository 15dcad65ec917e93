"""What the next tick would decide about waiting work: the same reads, the same plan, without carrying it out.

So an explanation cannot drift from what happens. What it tells of the machines is the board's view: what each has free
after what was claimed there, or promised to others, since it last spoke.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.known_jobs import Known
from stado_like.bucket.load_board import with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.errors import StoreUnavailable
from stado_like.job import reasons_placement as says
from stado_like.job.ids import JobId
from stado_like.job.terms import Ask, Terms, display_name, terms_of
from stado_like.planning.board import Hold, Spot, Unit
from stado_like.planning.fit import Kept, Machine, cores, why_not
from stado_like.planning.placement import place
from stado_like.planning.placing import Placing, Waiting
from stado_like.planning.queue import Queue
from stado_like.planning.why_waits import nodes_of
from stado_like.reading.shapes import Node, iso

SUPPOSED_K = 999_999
"""The incarnation of a job that nobody submitted."""


@dataclass(frozen=True, slots=True)
class NextTick:
    """What a tick that began now would do for one job. `where`: by the task's name, the worker that gets it, or that
    claims it by itself. `head`: the job that stands first of those that wait, where it may be named; `holds`: the room
    that is kept from then on."""

    where: Mapping[str, str] = field(default_factory=dict)
    by_workers: bool = False
    shape: str = ""
    waits: Waiting | None = None
    head: str = ""
    holds: tuple[Hold, ...] = ()
    nodes: tuple[Node, ...] = ()
    free: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planned:
    queue: Queue
    placing: Placing


def look(bucket: Bucket, *, supposed: tuple[JobId, Known] | None = None) -> Planned:
    """Raises `StoreUnavailable` where it cannot be told what waits."""
    memory = Memory()
    world = with_queue(bucket, memory, load_world(bucket, memory), whole=True, supposed=supposed)
    if world.queue is None:
        why = world.unread.get("place") or world.unread.get("running") or "the store did not answer"
        raise StoreUnavailable(f"what waits cannot be told: {why}", "Try again in a moment.")
    return Planned(world.queue, place(world.queue.board))


def suppose(bucket: Bucket, document: Mapping[str, Any]) -> tuple[Terms, NextTick]:
    """What the next tick would do if this job, in its stored form, were submitted now."""
    terms = terms_of(document)
    j = JobId(terms.workspace, terms.name, SUPPOSED_K)
    planned = look(bucket, supposed=(j, Known(int(bucket.now() * 1000), document, terms)))
    return terms, of_job(planned, j, terms)


def of_job(planned: Planned, j: JobId, terms: Terms) -> NextTick:
    """What concerns one job. A job that does not wait gets the machines all the same: where one more task would go."""
    queue, placing = planned.queue, planned.placing
    mine = [unit for unit in queue.board.units if unit.job == j]
    placed = {a: to for one in placing.placed if one.job == j for a, to in one.where.items()}
    taken = {a: to for one in placing.taken if one.job == j for a, to in one.where.items()}
    where = {display_name(terms, a.rank): to for a, to in sorted({**placed, **taken}.items())}
    waits = placing.waiting.get(j)
    if waits is None and j in queue.said:
        waits = Waiting(queue.said[j])
    asks = [member.ask for unit in mine for member in unit.members] or [terms.for_rank(0).ask]
    machines = sorted((spot.machine for spot in queue.board.spots), key=lambda one: one.worker)
    told = nodes_of(machines, asks, lambda machine, ask: _why(machine, ask, j, mine, placing, queue))
    return NextTick(
        where=where,
        by_workers=bool(taken) and not placed,
        shape="; ".join(f"{one.group}: {one.why}" if one.group else one.why for one in placing.shapes if one.job == j),
        waits=waits,
        head=_head(placing, queue, j.workspace),
        holds=placing.holds,
        nodes=tuple(Node(name, reasons) for name, reasons in told.items()),
        free={spot.machine.worker: _free(spot) for spot in queue.board.spots},
    )


def _why(machine: Machine, ask: Ask, j: JobId, mine: list[Unit], placing: Placing, queue: Queue) -> tuple[str, ...]:
    hold = next((one for one in placing.holds if one.worker == machine.worker and one.job != j), None)
    first = mine[0] if mine else None
    if hold is None or (first is not None and first.order < (-hold.priority, hold.created_ms, str(hold.job))):
        return why_not(machine, ask)
    kept = Kept(hold.cpu_millis, hold.memory_bytes, hold.gpus, hold.whole, _named(hold.job, j.workspace))
    return why_not(machine, ask, kept)


def _named(job: JobId, workspace: str) -> str:
    return job.name if job.workspace == workspace else says.ELSEWHERE


def _head(placing: Placing, queue: Queue, workspace: str) -> str:
    """The first in the order of the queue for which room is made or kept."""
    heads = [unit for unit in queue.board.units if unit.job in placing.waiting and placing.waiting[unit.job].headline]
    first = min(heads, key=lambda one: one.order, default=None)
    if first is None:
        return ""
    return first.job.name if first.job.workspace == workspace else f"({says.ELSEWHERE})"


def _free(spot: Spot) -> str:
    """`2.5 of 4 cores, 12.0 of 16.0 GiB, 1 GPU free`"""
    one = spot.machine
    gib = 1 << 30
    gpus = f", {one.free_gpus} GPU{'' if one.free_gpus == 1 else 's'}" if one.gpus or one.free_gpus else ""
    cpu = f"{cores(one.free_cpu_millis)} of {cores(one.total_cpu_millis)} cores"
    memory = f"{one.free_memory_bytes / gib:.1f} of {one.total_memory_bytes / gib:.1f} GiB"
    return f"{cpu}, {memory}{gpus} free"


def next_json(found: NextTick, workspace: str) -> dict[str, Any]:
    """The shape of `next` in `job explain --json` and `job submit --dry-run --explain --json`."""
    waits = found.waits
    return {
        "does": _does(found),
        "where": dict(found.where),
        "shape": found.shape or None,
        "reason": waits.reason if waits is not None else None,
        "is_head": waits.headline if waits is not None else False,
        "head": found.head or None,
        "holds": [
            {
                "for": _named(one.job, workspace),
                "machine": one.worker,
                "cores": one.cpu_millis / 1000,
                "memory_bytes": one.memory_bytes,
                "gpus": one.gpus,
                "whole": one.whole,
                "starts_at": iso(one.starts_at),
            }
            for one in found.holds
        ],
    }


def _does(found: NextTick) -> str:
    if found.shape:
        return "split"
    if found.where:
        return "leave to workers" if found.by_workers else "place"
    return "wait" if found.waits is not None else "nothing"


def next_text(shown: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    lines = []
    match shown["does"]:
        case "place" | "leave to workers":
            gets = ", ".join(f"{task} on {worker}" for task, worker in list(shown["where"].items())[:8])
            more = f" and {len(shown['where']) - 8} more" if len(shown["where"]) > 8 else ""
            verb = "places" if shown["does"] == "place" else "leaves to its workers"
            lines.append(f"  next tick  {verb} {gets}{more}")
        case "split":
            lines.append(f"  next tick  splits it: {shown['shape']}")
        case "wait":
            lines.append(f"  next tick  leaves it waiting: {shown['reason']}")
        case _:
            lines.append("  next tick  has nothing to do for it")
    if shown["reason"] and shown["does"] != "wait":
        lines.append(f"  the rest   {shown['reason']}")
    if shown["head"]:
        lines.append(f"  head       {'this job' if shown['is_head'] else shown['head']}")
    for one in shown["holds"]:
        room = "the whole machine" if one["whole"] else _room(one)
        when = f", from {one['starts_at']}" if one["starts_at"] else ""
        lines.append(f"  held       {one['machine']}: {room} for {one['for']}{when}")
    return lines


def _room(one: Mapping[str, Any]) -> str:
    gpus = f", {one['gpus']} GPUs" if one["gpus"] else ""
    return f"{one['cores']:g} cores, {one['memory_bytes'] / (1 << 30):.1f} GiB{gpus}"


def machine_line(one: Mapping[str, Any]) -> str:
    room = f"  ({one['free']})" if one["free"] else ""
    return f"  {one['name']:<20} {'; '.join(one['reasons']) or 'it fits'}{room}"
