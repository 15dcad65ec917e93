"""What a list of jobs told last time and can never change, on the disk of whoever looks.

A job's record is written once, and so is what makes it over. So the row of a job that is over, and the record of one
that is not, are right for ever under the key of the job and the etag of the listing's row, which differs where a
bucket was emptied and its names used again. Not obvious is how one file serves several processes without a lock: lines
are only ever appended, each with its checksum, the last one of a key counts, and what does not agree with its checksum
was never there. A file that has grown too large is replaced as a whole by its newer half; what another process
appended meanwhile is lost, and costs that process's next look a request.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from stado_like.ambient import REAL
from stado_like.errors import BadRecord
from stado_like.job import codec, day_keys, keys
from stado_like.job.records import Job
from stado_like.reading import told
from stado_like.reading.candidates import Candidate
from stado_like.reading.job_row import JobRow

MOST_BYTES = 16 << 20
_CHECKED = 9  # eight digits of the checksum, and a space
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
        self._path = path
        self._most_bytes = most_bytes
        self._lines: dict[bytes, bytes] | None = None
        self._news: list[bytes] = []

    def row(self, key: str, etag: str) -> JobRow | None:
        """The row of a job that is over."""
        said = self._said(key, etag, _ROW)
        try:
            return None if said is None else told.row_of(key, said)
        except _NOT_OURS:
            return None

    def rows(self, asked: Iterable[Candidate]) -> dict[str, JobRow]:
        """The rows of those of these jobs that are over, under their keys."""
        if not self._known():
            return {}
        return {one.key: row for one in asked if (row := self.row(one.key, one.etag)) is not None}

    def keys_of(self, workspace: str) -> list[str]:
        """Keys of jobs that are known, in no order."""
        prefix = keys.jobs_of(workspace) if workspace else keys.JOBS
        return [key.decode() for key in self._known() if key.startswith(prefix.encode())]

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
        if self._path is None or not self._news:
            return
        # Begins a line of its own, whatever a writer that was killed had left of his.
        said = b"\n" + b"\n".join(self._news) + b"\n"
        self._news = []
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, said)
                size_bytes = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size_bytes > self._most_bytes:
                self._shorten()

    def _said(self, key: str, etag: str, kind: str) -> Any:
        line = self._known().get(key.encode())
        if line is None:
            return None
        try:
            if int(line[: _CHECKED - 1], 16) != crc32(line[_CHECKED:]):
                return None
            _, its, what, said = orjson.loads(line[_CHECKED:])
        except (ValueError, TypeError):
            return None
        return said if (its, what) == (etag, kind) else None

    def _keep(self, key: str, etag: str, kind: str, said: Any) -> None:
        body = orjson.dumps([key, etag, kind, said])
        line = b"%08x %b" % (crc32(body), body)
        known = self._known()
        known.pop(key.encode(), None)  # so that the order is that of age
        known[key.encode()] = line
        self._news.append(line)

    def _known(self) -> dict[bytes, bytes]:
        if self._lines is None:
            self._lines = {}
            body = b""
            if self._path is not None:
                with suppress(OSError):  # nothing was kept yet, or it cannot be read: all is asked for
                    body = self._path.read_bytes()
            begin = _CHECKED + 2
            for line in body.split(b"\n"):
                key = line[begin : line.find(b'"', begin)]
                self._lines.pop(key, None)
                self._lines[key] = line
        return self._lines

    def _shorten(self) -> None:
        assert self._path is not None
        kept: list[bytes] = []
        size_bytes = 0
        for line in reversed(self._known().values()):
            size_bytes += len(line) + 1
            if size_bytes > self._most_bytes // 2:
                break
            kept.append(line)
        whole = self._path.with_name(f"{self._path.name}.{REAL.token()}")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"\n".join(reversed(kept)) + b"\n")
        whole.replace(self._path)
