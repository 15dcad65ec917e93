"""A handle on one job, so that a program never has to say its name twice.

It keeps the incarnation it was made for: a job of the same name that came later is another job.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stado_like.bucket.cancel import Cancelled
from stado_like.fetching import Fetched, fetch
from stado_like.job.keys import JobId
from stado_like.reading.shapes import JobView

if TYPE_CHECKING:
    from stado_like.client import Client


@dataclass(frozen=True, slots=True)
class Job:
    """A handle on one incarnation of one job."""

    client: Client
    id: JobId

    @property
    def name(self) -> str:
        return self.id.name

    def view(self) -> JobView:
        return self.client.view(self.id)

    @property
    def state(self) -> str:
        """`Pending`, `Running`, `Completed`, …: looked up now."""
        return self.view().state.value

    def wait(self, timeout_s: float | None = None) -> str:
        """The state in which it ended. Raises `TimedOut`; the job goes on then."""
        return self.client.wait([self.id], timeout_s)[0].state.value

    def logs(self, task: int = 0, attempt: int | None = None, tail: int | None = None) -> str:
        return self.client.logs(self.id, task, attempt, tail)

    def raw_logs(self, task: int = 0, attempt: int | None = None) -> bytes:
        return b"".join(self.client.raw_logs(self.id, task, attempt))

    def fetch(self, into: str | Path, task: int | None = None, attempt: int | None = None) -> list[Fetched]:
        """Write what was collected below `into`. Raises `NotFound` when nothing was, `Conflict` when files are in the
        way."""
        return fetch(self.client.bucket, self.id, Path(into), task=task, attempt=attempt)

    def cancel(self, reason: str = "") -> Cancelled:
        return self.client.cancel(self.id, reason)

    def stop_task(self, rank: int, reason: str = "") -> bool:
        return self.client.task_stop(self.id, rank, reason)

    def rerun(self, name: str = "", *, from_checkpoint: bool = False) -> Job:
        return self.client.rerun(self.id, name, from_checkpoint=from_checkpoint)

    def delete(self) -> None:
        self.client.delete(self.id)


Words = str | JobId | Job
