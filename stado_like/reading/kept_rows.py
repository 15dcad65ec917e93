"""What a list of jobs told last time and can never change, on the disk of whoever looks.

A job's record is written once, and so is what makes it over. So the row of a job that is over, and the record of one
that is not, are right for ever under the key of the job and the etag of the listing's row, which differs where a
bucket was emptied and its names used again. How one file serves several processes without a lock is in `kept_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stado_like.errors import BadRecord
from stado_like.job import codec, day_keys, keys
from stado_like.job.records import Job
from stado_like.kept_lines import KeptLines
from stado_like.reading import told
from stado_like.reading.candidates import Candidate
from stado_like.reading.job_row import JobRow

MOST_BYTES = 16 << 20
_ROW, _JOB = "row", "job"
_NOT_OURS = (BadRecord, ValueError, TypeError, AttributeError)
"""What another version wrote may raise when it is read: then it was not kept."""


def place(store_url: str, environ: Mapping[str, str]) -> Path | None:
    """Where rows of a store are kept; None for one that ends with its process."""
    if store_url.startswith("memory:"):
        return None
    from hashlib import blake2b

    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache / "stado" / "rows" / f"{blake2b(store_url.encode(), digest_size=16).hexdigest()}.{day_keys.FORMAT}"


class KeptRows:
    """The rows of one store. Without a path nothing is kept beyond the process."""

    def __init__(self, path: Path | None = None, *, most_bytes: int = MOST_BYTES) -> None:
        self._lines = KeptLines(path, f"rows {day_keys.FORMAT}", most_bytes=most_bytes)

    def row(self, key: str, etag: str) -> JobRow | None:
        """The row of a job that is over."""
        said = self._said(key, etag, _ROW)
        try:
            return None if said is None else told.row_of(key, said)
        except _NOT_OURS:
            return None

    def rows(self, asked: Iterable[Candidate]) -> dict[str, JobRow]:
        """The rows of those of these jobs that are over, under their keys."""
        return {one.key: row for one in asked if (row := self.row(one.key, one.etag)) is not None}

    def keys_of(self, workspace: str) -> list[str]:
        """Keys of jobs that are known, in no order."""
        prefix = keys.jobs_of(workspace) if workspace else keys.JOBS
        return [key for key in self._lines.names() if key.startswith(prefix)]

    def job(self, key: str, etag: str) -> Job | None:
        """The record of a job that was not over."""
        said = self._said(key, etag, _JOB)
        try:
            return None if said is None else codec.decode(Job, said.encode(), key)
        except _NOT_OURS:
            return None

    def keep_row(self, key: str, etag: str, row: JobRow) -> None:
        self._keep(key, etag, _ROW, told.plain(row))

    def keep_job(self, key: str, etag: str, job: Job) -> None:
        self._keep(key, etag, _JOB, codec.encode(job).decode())

    def save(self) -> None:
        """Append what is new. A disk that is full or may not be written costs requests, and nothing else."""
        self._lines.save()

    def _said(self, key: str, etag: str, kind: str) -> Any:
        found = self._lines.said(key)
        if not isinstance(found, list) or len(found) != 3:
            return None
        its, what, said = found
        return said if (its, what) == (etag, kind) else None

    def _keep(self, key: str, etag: str, kind: str, said: Any) -> None:
        self._lines.keep(key, [etag, kind, said])
