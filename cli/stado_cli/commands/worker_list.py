"""`stado worker list`: machines that say they are there, each with the age of its word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client, set_aside
from stado_cli.output import Column, column, times

if TYPE_CHECKING:
    from stado_like.reading.surroundings import WorkerView


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """List the workers with what they have free.

    Cordoned: it takes nothing new; Draining: and lets go of what it holds; Closed: it has closed itself. A worker that
    broke its promise to speak again is Stale: what it had free counts for nothing, and its age says since when. One
    that ended cleanly is not listed.
    """
    found, unread = open_client(context).workers()
    columns = [
        column("WORKER", "worker"),
        column("STATE", "state"),
        Column("CPUS", lambda row: _of(row, "cpu_cores")),
        Column(
            "MEMORY",
            lambda row: f"{times.size(row['free']['memory_bytes'])} of {times.size(row['total']['memory_bytes'])}",
        ),
        Column("GPUS", lambda row: _of(row, "gpus")),
        Column("TASKS", lambda row: len(row["held"]), right=True),
        Column("AGE", lambda row: times.duration(row["age_s"]), right=True),
        column("WHY", "why_not"),
    ]
    context.output.table(
        columns, [worker_json(one) for one in found], empty="No workers; `stado worker start` makes one."
    )
    set_aside(unread)


def _of(row: Any, name: str) -> str:
    return f"{row['free'][name]:g} of {row['total'][name]:g} free"


def worker_json(one: WorkerView) -> dict[str, Any]:
    """The shape of a worker in `worker list --json` and `worker show --json`."""
    said, wanted = one.capacity, one.wanted
    return {
        "worker": said.worker,
        "state": _state(one),
        "host": said.host or None,
        "address": said.address or None,
        "total": _room(said.total.cpu_millis, said.total.memory_bytes, said.total.gpus),
        "free": _room(said.free.cpu_millis, said.free.memory_bytes, said.free.gpus),
        "labels": dict(said.labels),
        "why_not": wanted.why or said.why_not or None,
        "cordoned": wanted.cordoned,
        "drain": wanted.drain,
        "cordoned_by": (wanted.by or None) if wanted.cordoned else None,
        "cordoned_at": times.iso(wanted.at or None) if wanted.cordoned else None,
        "obeys": said.wanted == wanted.nonce,
        "held": [{"attempt": held.attempt, "state": held.state, "alive": held.alive} for held in said.held],
        "started_at": times.iso(said.started_at or None),
        "at": times.iso(said.at or None),
        "next_by": times.iso(said.next_by or None),
        "age_s": round(one.age_s, 3),
        "machine_id": said.machine_id or None,
        "boot_id": said.boot_id or None,
        "version": said.version or None,
    }


def _state(one: WorkerView) -> str:
    if one.stale:
        return "Stale"
    if one.wanted.cordoned:
        return "Draining" if one.wanted.drain else "Cordoned"
    return "Ready" if one.is_ready else "Closed"


def _room(cpu_millis: int, memory_bytes: int, gpus: int) -> dict[str, float]:
    return {"cpu_cores": cpu_millis / 1000, "memory_bytes": memory_bytes, "gpus": gpus}
