"""The stop file: why a task is being stopped, written whole before any signal is sent.

Not obvious because a handler reads it at the very moment the signal arrives: half a file, or a file that comes a
moment later, would make it guess. So it is made under another name and renamed, and the caller signals only after this
returned.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from stado_worker.shim.attempt_dir import write_whole


@dataclass(frozen=True, slots=True)
class StopNotice:
    """`cause`: preempted, moved, time-limit, stalled, requested, gang, barrier or requeued. `deadline_s`: when SIGKILL
    comes, seconds of UTC. `restarts`: whether the task will be started again.
    """

    cause: str
    reason: str
    signal: str
    grace_seconds: float
    deadline_s: float
    attempt: int
    restarts: bool

    def body(self) -> bytes:
        fields = asdict(self)
        deadline_s = fields.pop("deadline_s")
        grace = self.grace_seconds
        fields["grace_seconds"] = int(grace) if float(grace).is_integer() else grace
        fields["deadline"] = iso_milliseconds(deadline_s)
        order = ("cause", "reason", "signal", "grace_seconds", "deadline", "attempt", "restarts")
        return orjson.dumps({name: fields[name] for name in order}, option=orjson.OPT_INDENT_2) + b"\n"


def write_stop_file(path: Path, notice: StopNotice) -> None:
    """Replaces an earlier one: a second stop (a time limit during a preemption) has a new cause and a new deadline."""
    write_whole(path, notice.body())


def iso_milliseconds(at_s: float) -> str:
    """`2026-10-07T14:32:10.512Z`"""
    moment = datetime.fromtimestamp(round(at_s * 1000) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
