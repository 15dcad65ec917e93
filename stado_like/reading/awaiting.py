"""Waiting for a job to be over, one cheap look at a time. `step` never sleeps: whoever calls it does.

Only two records make a job over: `final.json`, or a one-task job's final end. Each look asks for exactly that key. A
waiting client may also write the final of a job whose tasks have all ended (whoever finds it may), so that it does
not wait for a tick that nobody runs; it looks for that now and then, because it costs a listing.
"""

from __future__ import annotations

from stado_like.bucket import finish, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.finish import task_end
from stado_like.job import keys, rollup
from stado_like.job.keys import JobId
from stado_like.job.rollup import Rolled
from stado_like.reading.resolve import Meant, no_such_job

FINISH_EVERY_S = 2.0
STILL_THERE_EVERY_S = 10.0


class Awaited:
    """One job that somebody waits for. `over` is set once it has ended. Raises `NotFound` when there is no such job."""

    def __init__(self, bucket: Bucket, j: JobId) -> None:
        job = bucket.job(j)
        if job is None:
            raise no_such_job(bucket, Meant(j.workspace, j.name, j.k))
        self.id = j
        self.over: Rolled | None = None
        self._bucket = bucket
        self._job = job
        self._terms = bucket.terms(job)
        self._n = 1
        self._looked_s = self._there_s = bucket.ambient.boot_s()

    def step(self) -> Rolled | None:
        """The state and reason once the job is over. Raises `StoreUnavailable` (call again), `NotFound` (deleted)."""
        if self.over is None:
            self.over = self._several() if self._terms.several else self._one_task()
        if self.over is None:
            self._still_there()
        return self.over

    def _one_task(self) -> Rolled | None:
        while (end := self._bucket.end(keys.AttemptId(self.id, 0, self._n))) is not None:
            if end.is_final:
                return rollup.over(self._terms, [task_end(self._terms, 0, end)])
            self._n += 1
        return None

    def _several(self) -> Rolled | None:
        final = self._bucket.final(self.id)
        now = self._bucket.ambient.boot_s()
        if final is None and now - self._looked_s >= FINISH_EVERY_S:
            self._looked_s = now
            listed = load.list_status(self._bucket, self.id)
            ended = len(listed.ends) >= self._terms.tasks or "verdict" in listed.own
            if ended and finish.finish_if_over(self._bucket, self.id, self._job, self._terms, listed):
                final = self._bucket.final(self.id)
        return Rolled(final.state, final.reason) if final is not None else None

    def _still_there(self) -> None:
        now = self._bucket.ambient.boot_s()
        if now - self._there_s < STILL_THERE_EVERY_S:
            return
        self._there_s = now
        if not any(self._bucket.present(keys.job(self.id))):
            raise no_such_job(self._bucket, Meant(self.id.workspace, self.id.name, self.id.k))
