"""The bytes of a day file: one line per job that is over, with what a list of jobs says of it.

Not obvious is that nothing here has to be believed. A row is told only under the key and etag of its job's record as
`jobs/` lists it, and its digest is in the file's name; so a file that is old, doubled, cut off or another version's
costs requests, and never a wrong word. Lines are kept as they lie there: a list of a million jobs reads those it shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from stado_like.errors import BadRecord
from stado_like.job.day_keys import parse_day_part
from stado_like.job.ids import JobId

MOST_ROWS = 10_000
MOST_BYTES = 4 << 20
"""Of the lines of one file, before they are compressed."""
_LEVEL, _GZIP = 6, 31


@dataclass(frozen=True, slots=True)
class DayRow:
    """`etag`, `at`: of the job's record, as its listing says. `said`: what is told of the job, in plain values."""

    j: JobId
    etag: str
    at: float
    said: tuple[Any, ...]

    def line(self) -> bytes:
        return orjson.dumps([f"{self.j.name}.{self.j.k}", self.etag, self.at, *self.said])


@dataclass(frozen=True, slots=True)
class DayFile:
    """Lines that fit into one file, and their name."""

    digest: str
    body: bytes
    rows: int


def files(rows: Iterable[DayRow]) -> Iterator[DayFile]:
    """Rows of one workspace and day as files, each within bounds; the same rows make the same files."""
    lines = sorted({(-row.at, row.j, row.etag): row.line() for row in rows}.items())
    some: list[bytes] = []
    size_bytes = 0
    for _, line in lines:
        if some and (len(some) >= MOST_ROWS or size_bytes + len(line) > MOST_BYTES):
            yield _file(some)
            some, size_bytes = [], 0
        some.append(line)
        size_bytes += len(line) + 1
    if some:
        yield _file(some)


def _file(lines: list[bytes]) -> DayFile:
    plain = b"\n".join(lines)
    packed = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return DayFile(_digest(plain), packed.compress(plain) + packed.flush(), len(lines))


def _digest(plain: bytes) -> str:
    return sha256(plain).hexdigest()[:32]


def lines(body: bytes, key: str) -> list[bytes]:
    """The lines of a file that lies under `key`, newest job first. Raises `BadRecord` for what is not whole."""
    unpacked = zlib.decompressobj(_GZIP)
    try:
        plain = unpacked.decompress(body, 2 * MOST_BYTES)
    except zlib.error as error:
        raise _not_whole(key, f"{len(body)} bytes that cannot be unpacked ({error})") from None
    if _digest(plain) != parse_day_part(key).digest:
        raise _not_whole(key, f"its {len(plain)} bytes are not those that its name says")
    return plain.split(b"\n")


def _not_whole(key: str, why: str) -> BadRecord:
    return BadRecord(f"{key}: {why}", "It is an index and may be removed: a tick writes what is missing again.")


def name_in(line: bytes) -> bytes:
    """What tells the lines of a workspace apart without reading them: the job's name and incarnation."""
    return line[2 : line.find(b'"', 2)]


def read(workspace: str, line: bytes) -> DayRow:
    """Raises ValueError, TypeError or `BadRecord` for a line that is none of ours."""
    name, etag, at, *said = orjson.loads(line)
    return DayRow(JobId.parse(f"{workspace}.{name}"), etag, at, tuple(said))


def read_said(line: bytes, etag: str) -> list[Any] | None:
    """What a line says of a job whose record has this etag; None: it is of another. Raises ValueError, TypeError."""
    _, its, _, *said = orjson.loads(line)
    return said if its == etag else None  # guard: day rows go by the listing
