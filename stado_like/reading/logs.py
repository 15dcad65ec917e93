"""The output of an attempt, exact to the byte, while it grows and after it ended.

Output lies in pieces named by their byte offset, and the last of it travels in the end record. Uploads may be
repeated, by the supervisor or by whoever carries on for it, so pieces can overlap and one piece can grow; what is
read is the bytes, each once, in order. Where bytes are missing (a machine that died before it uploaded them) the
reader is told how many; they are never skipped in silence.

Following costs little: the next piece's key is known (it begins where the last one ended), so it is asked for by
name, and listed only when the attempt ended or nothing came for a while.
"""

from __future__ import annotations

import codecs
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stado_like.bucket import doorbell, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, LogTail
from stado_like.job.spec.units import size_words
from stado_like.job.states import Decision
from stado_like.store.protocol import list_all

RING_EVERY_S = 30.0
RING_FIRST_S = 0.5
LIST_EVERY_S = 5.0
MANY = 16


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `offset … offset + len(body)` of the output."""

    offset: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are not in the store. `size_bytes` 0: unknown how many."""

    offset: int
    size_bytes: int

    def __str__(self) -> str:
        return f"[{size_words(self.size_bytes)} of output are missing here: they were never uploaded]"


Part = Piece | Gap


@dataclass(frozen=True, slots=True)
class _Stored:
    """A piece that lies in the store (`key`), or in the end record (`body`)."""

    offset: int
    size_bytes: int
    key: str = ""
    body: bytes = b""

    @property
    def stop(self) -> int:
        return self.offset + self.size_bytes


def tail_bytes(tail: LogTail) -> bytes:
    """What an end record holds of the output, as bytes."""
    if tail.base64 is not None:
        return b64decode(tail.base64)
    return (tail.text or "").encode()


def stored(bucket: Bucket, a: AttemptId, end: End | None) -> list[_Stored]:
    """Everything there is of an attempt's output, by offset, without reading it. One LIST."""
    found = []
    for row in list_all(bucket.store, keys.logs_of(a)):
        try:
            found.append(_Stored(keys.parse_log_chunk(row.key), row.size_bytes, row.key))
        except BadRecord:
            continue  # a stray object beside the pieces is no output
    if end is not None and end.log is not None:
        body = tail_bytes(end.log)
        found.append(_Stored(end.log.offset, len(body), body=body))
    return sorted(found, key=lambda one: (one.offset, -one.size_bytes))


def parts(bucket: Bucket, pieces: Iterable[_Stored], *, begin: int = 0, total: int = 0) -> Iterator[Part]:
    """Bytes in order from `begin`, each once, with gaps told. Reads a piece when it is reached, and passes over
    covered ones.

    `total`: how long the output is known to be, so that what is missing at its end is told too.
    """
    at = begin
    for one in pieces:
        if one.stop <= at:
            continue
        body = _body(bucket, one)
        if body is None:
            continue  # deleted since it was listed: a gap, told by the next piece or by the total
        if one.offset > at:
            yield Gap(at, one.offset - at)
            at = one.offset
        fresh = body[at - one.offset :]
        if fresh:
            yield Piece(at, fresh)
            at += len(fresh)
    if total > at:
        yield Gap(at, total - at)


def _body(bucket: Bucket, one: _Stored) -> bytes | None:
    if not one.key:
        return one.body
    found = bucket.store.get(one.key)
    return None if found is None else found.body


def read_parts(bucket: Bucket, a: AttemptId) -> Iterator[Part]:
    """The output so far: all of it once the attempt ended."""
    end = bucket.end(a)
    total = end.log.size if end is not None and end.log is not None else 0
    yield from parts(bucket, stored(bucket, a, end), total=total)


def read_raw(bucket: Bucket, a: AttemptId) -> Iterator[bytes]:
    """The bytes that are there, exactly, without a word about gaps."""
    return (one.body for one in read_parts(bucket, a) if isinstance(one, Piece))


def read_tail(bucket: Bucket, a: AttemptId, lines: int) -> list[Part]:
    """The last `lines` lines. Reads pieces from the end and stops when it has them."""
    if lines <= 0:
        return []
    end = bucket.end(a)
    every = stored(bucket, a, end)
    total = end.log.size if end is not None and end.log is not None else 0
    at = len(every)
    while True:
        at = max(0, at - 1)
        # Begin at the start of a piece that reaches further back than what follows it.
        begin = every[at].offset if every else 0
        known = (_read_once(bucket, every, one) for one in range(at, len(every)))
        got = list(parts(bucket, known, begin=begin, total=total))
        newlines = sum(one.body.count(b"\n") for one in got if isinstance(one, Piece))
        if at == 0 or newlines > lines:
            return _last_lines(got, lines)


def _read_once(bucket: Bucket, every: list[_Stored], at: int) -> _Stored:
    """Keep a piece's bytes once they are read, so that reaching further back does not read it again."""
    one = every[at]
    if one.key:
        one = every[at] = _Stored(one.offset, one.size_bytes, body=_body(bucket, one) or b"")
    return one


def _last_lines(got: list[Part], lines: int) -> list[Part]:
    kept: list[Part] = []
    wanted = lines
    newest = True
    for one in reversed(got):
        if isinstance(one, Gap):
            kept.append(one)
            continue
        body = one.body
        ends_here = newest and body.endswith(b"\n")
        newest = False
        cut = len(body) - 1 if ends_here else len(body)
        while wanted:
            cut = body.rfind(b"\n", 0, cut)
            if cut < 0:
                break
            wanted -= 1
        if cut >= 0 and wanted == 0:
            kept.append(Piece(one.offset + cut + 1, body[cut + 1 :]))
            break
        kept.append(one)
    return kept[::-1]


class Decoder:
    """Bytes -> text over the seams of pieces: what is not UTF-8 becomes U+FFFD, a character cut in two is put
    together.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, one: Part) -> str:
        if isinstance(one, Gap):
            return f"{self.rest()}\n{one}\n"
        return self._decoder.decode(one.body)

    def rest(self) -> str:
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text


def read_text(bucket: Bucket, a: AttemptId) -> str:
    decoder = Decoder()
    return "".join(decoder.text(one) for one in read_parts(bucket, a)) + decoder.rest()


# ---- following


class Follower:
    """The output of one attempt as it comes. `step` never waits: whoever calls it does. `ended` holds the end once
    all was given out.
    """

    def __init__(self, bucket: Bucket, a: AttemptId, *, begin: int = 0) -> None:
        self.attempt = a
        self.at = begin
        self.ended: End | None = None
        self._bucket = bucket
        self._listed_s = bucket.ambient.boot_s()

    def step(self) -> list[Part]:
        """What came since the last step. Raises `StoreUnavailable`: call again."""
        if self.ended is not None:
            return []
        end = self._bucket.end(self.attempt)  # before the pieces: whatever was uploaded before it is there now
        if end is not None:
            total = end.log.size if end.log is not None else 0
            came = list(parts(self._bucket, stored(self._bucket, self.attempt, end), begin=self.at, total=total))
            self.ended = end
            return came
        came = self._next_by_name()
        now = self._bucket.ambient.boot_s()
        if came:
            self._listed_s = now
        elif now - self._listed_s >= LIST_EVERY_S:
            # A piece that grew since it was read, or one beyond a gap, has another name than the one asked for.
            self._listed_s = now
            came = list(parts(self._bucket, self._listed_whole(), begin=self.at))
            self._advance(came)
        return came

    def _listed_whole(self) -> list[_Stored]:
        return stored(self._bucket, self.attempt, None)

    def _next_by_name(self) -> list[Part]:
        came: list[Part] = []
        while (found := self._bucket.store.get(keys.log_chunk(self.attempt, self.at))) is not None and found.body:
            came.append(Piece(self.at, found.body))
            self.at += len(found.body)
        return came

    def _advance(self, came: list[Part]) -> None:
        for one in came:
            self.at = one.offset + (one.size_bytes if isinstance(one, Gap) else len(one.body))


class TaskFollower:
    """The output of one task through all its attempts. `done` once its final end was given out."""

    def __init__(self, bucket: Bucket, j: JobId, rank: int, n: int = 1, *, begin: int = 0) -> None:
        self.rank = rank
        self.done = False
        self._by_gang = self._seen_over = False
        self._bucket = bucket
        self._follower = Follower(bucket, keys.AttemptId(j, rank, n), begin=begin)

    @property
    def n(self) -> int:
        return self._follower.attempt.n

    def step(self) -> list[tuple[int, Part]]:
        """`(attempt, part)` since the last step."""
        came: list[tuple[int, Part]] = []
        while not self.done:
            n = self.n
            came += [(n, one) for one in self._follower.step()]
            end = self._follower.ended
            if end is None:
                self.done = self._by_gang and self._gang_is_over()
                break
            self._by_gang = end.decision is Decision.GANG
            if end.is_final:
                self.done = True
            else:
                self._follower = Follower(self._bucket, self._follower.attempt.next)
        return came

    def _gang_is_over(self) -> bool:
        """Whether another attempt follows was for all members to decide: none does once their job is over. Asked twice,
        since one may have begun and ended before the first answer."""
        seen, self._seen_over = self._seen_over, any(self._bucket.present(keys.final(self._follower.attempt.job)))
        return seen


class JobFollower:
    """Several tasks at once, and the bell: supervisors upload every half second while somebody follows, else every
    ten.

    A ring reaches the attempts that run when it is heard. So until something comes from a task it is rung again and
    again, ever more rarely: the attempt may have begun since.
    """

    def __init__(self, bucket: Bucket, j: JobId, tasks: Iterable[TaskFollower]) -> None:
        self._bucket = bucket
        self._j = j
        self._tasks = list(tasks)
        self._ring_due_s: float | None = None
        self._every_s = RING_FIRST_S
        self._attempts: dict[int, int] = {}

    @property
    def done(self) -> bool:
        return all(one.done for one in self._tasks)

    def step(self) -> list[tuple[int, int, Part]]:
        """`(rank, attempt, part)` since the last step. Rings first, so that the next step has something."""
        self.ring()
        waiting = [one for one in self._tasks if not one.done]
        if len(waiting) > MANY:  # one listing tells which of them have begun
            listed = load.list_status(self._bucket, self._j)
            waiting = [one for one in waiting if one.rank in listed.ends or one.rank in listed.beats]
        came = side_by_side(self._bucket, TaskFollower.step, waiting)
        self._listen_to(waiting)
        told = [(task.rank, n, part) for task, parts_of in zip(waiting, came, strict=True) for n, part in parts_of]
        if told:
            self._every_s = RING_EVERY_S
        return told

    def _listen_to(self, tasks: list[TaskFollower]) -> None:
        """A new attempt has not heard that it is followed."""
        now = self._bucket.ambient.boot_s()
        for task in tasks:
            if self._attempts.get(task.rank, task.n) != task.n:
                self._every_s = RING_FIRST_S
                self._ring_due_s = now
            self._attempts[task.rank] = task.n

    def ring(self) -> None:
        now = self._bucket.ambient.boot_s()
        if self._ring_due_s is None or now >= self._ring_due_s:
            self._ring_due_s = now + self._every_s
            self._every_s = min(self._every_s * 2, RING_EVERY_S)
            until = self._bucket.now() + RING_EVERY_S + 10.0
            doorbell.ring(self._bucket, ("follow", str(self._j)), until=until)
