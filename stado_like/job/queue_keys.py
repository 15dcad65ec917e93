"""Keys of the queue: what an entry's name says, so that a listing is a schedule, and what cannot fit is passed over
without being read. A tick parses the whole queue, a hundred thousand names, so each is parsed by one expression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stado_like.job.ids import AttemptId, JobId, bad, is_number
from stado_like.job.terms import Ask

QUEUED = "queued/"
QUEUED_OPEN = "queued/open/"
QUEUED_HELD = "queued/held/"
QUEUED_LATER = "queued/later/"

MIB = 1024 * 1024
_ASK = re.compile(r"c(\d+)m(\d+)g(\d+)(x?)\Z", re.ASCII)
_ENTRY = re.compile(
    r"queued/(?:open|held)/(\d{4})\.(\d{13}|[1-9]\d{13,})"  # priority, creation
    r"\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([1-9]\d*)\.(\d{5}|[1-9]\d{5,})\.(\d{6}|[1-9]\d{6,})"  # the attempt
    r"\.(c\d+m\d+g\d+x?)\.json\Z",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The coarse ask in an entry's name: whole cores and MiB, rounded down so that nothing that fits is passed over.
    `picky`: the entry itself must be read before it is admitted (pinned, exclusive, labels, abilities, fractions)."""

    cores: int
    mib: int
    gpus: int
    picky: bool

    def __str__(self) -> str:
        return f"c{self.cores}m{self.mib}g{self.gpus}{'x' if self.picky else ''}"


def envelope(ask: Ask) -> Envelope:
    exact = ask.cpu_millis % 1000 == 0 and ask.memory_bytes % MIB == 0
    return Envelope(ask.cpu_millis // 1000, ask.memory_bytes // MIB, ask.gpus, ask.is_picky or not exact)


@dataclass(frozen=True, slots=True)
class Entry:
    """A queue entry as its key tells it. `order` sorts entries in scheduling order across the indexes."""

    key: str
    attempt: AttemptId
    priority: int
    created_ms: int
    envelope: Envelope

    @property
    def order(self) -> tuple[int, int, str]:
        return (-self.priority, self.created_ms, str(self.attempt))


def entry(index: str, attempt: AttemptId, priority: int, created_ms: int, ask: Ask) -> str:
    """`index` is QUEUED_OPEN or QUEUED_HELD."""
    return f"{index}{1000 - priority:04d}.{created_ms:013d}.{attempt}.{envelope(ask)}.json"


def entries_of(index: str, j: JobId, priority: int, created_ms: int) -> str:
    """What the keys of a job's entries in one index begin with."""
    return f"{index}{1000 - priority:04d}.{created_ms:013d}.{j}."


def parse_entry(key: str) -> Entry:
    """By one expression: a tick parses the whole queue."""
    found = _ENTRY.match(key)
    if found is None:
        raise bad(key, "a queue entry")
    before, created, workspace, name, k, rank, n, ask = found.groups()
    if before > "2000" or n == "000000":
        raise bad(key, "a queue entry")
    attempt = AttemptId(JobId(workspace, name, int(k)), int(rank), int(n))
    return Entry(key, attempt, 1000 - int(before), int(created), _parse_envelope(key, ask))


def _parse_envelope(key: str, text: str) -> Envelope:
    envelope = _envelope_of(text)
    if envelope is None:
        raise bad(key, "an entry with an ask like c1m1024g0")
    return envelope


@lru_cache(maxsize=10_000)
def _envelope_of(text: str) -> Envelope | None:
    """A long queue asks for few things, many times."""
    found = _ASK.match(text)
    envelope = Envelope(int(found[1]), int(found[2]), int(found[3]), bool(found[4])) if found else None
    return envelope if str(envelope) == text else None


@dataclass(frozen=True, slots=True)
class LaterEntry:
    key: str
    attempt: AttemptId
    due_ms: int


def later(due_ms: int, attempt: AttemptId, ask: Ask) -> str:
    return f"{QUEUED_LATER}{due_ms:013d}.{attempt}.{envelope(ask)}.json"


def parse_later(key: str) -> LaterEntry:
    name = key.removeprefix(QUEUED_LATER).removesuffix(".json")
    parts = name.split(".")
    if f"{QUEUED_LATER}{name}.json" != key or len(parts) != 7 or not is_number(parts[0], 13):
        raise bad(key, "an entry of queued/later")
    _parse_envelope(key, parts[6])
    return LaterEntry(key, AttemptId.parse(".".join(parts[1:6])), int(parts[0]))


def attempt_of_entry(key: str) -> AttemptId:
    """The attempt of an entry in any index of the queue."""
    return parse_later(key).attempt if key.startswith(QUEUED_LATER) else parse_entry(key).attempt
