"""A task's output on its way to the store: append-only pieces, named by the byte at which they begin.

The file on this machine's disk is written by the command itself. A piece is uploaded once and never rewritten, so
what is sent is what was written, once; and since its name is its offset, sending a piece again (after a lost
answer, or by an agent that carries on) changes nothing. What is left at the end, if it is small, travels inside the
end record and costs no request.

Values of credentials leave the machine only as `*`, wherever a piece is cut (see `masking`): what was sent can never
turn out to have been the beginning of one, because such an end of the file is held back until more comes or the process
has ended. Where it is not known what to mask, nothing is sent at all: a reader is told how many bytes are missing.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import LAST_FAILURE_LINES, LOG_IN_END_BYTES, LogTail
from stado_like.store.conditional import write_again
from stado_worker.secrets.masking import NO_MASKS, Masks

PIECE_BYTES = 1 << 20
GROWTH_EVERY_S = 10.0
FOLLOWED_EVERY_S = 0.5


WITHHELD = "[output held back: what is to be masked in it is no longer known on this machine]"


class LogShipping:
    """One attempt's output. `shipped`: all bytes before it are in the store. `masks`: None where the attempt has
    credentials whose values are not known (yet)."""

    def __init__(
        self, bucket: Bucket, a: AttemptId, file: Path, *, shipped: int = 0, masks: Masks | None = NO_MASKS
    ) -> None:
        self._bucket = bucket
        self._a = a
        self._file = file
        self._ended = False
        self.shipped = shipped
        self.masks = masks

    @classmethod
    def carry_on(cls, bucket: Bucket, a: AttemptId, file: Path, *, masks: Masks | None = NO_MASKS) -> LogShipping:
        """For whoever comes after a dead supervisor: go on where the store's pieces end. Raises `StoreUnavailable`."""
        page = bucket.store.list(keys.logs_of(a))
        rows = list(page.rows)
        while page.more:
            page = bucket.store.list(keys.logs_of(a), start_after=rows[-1].key)
            rows.extend(page.rows)
        shipped = 0
        for row in rows:
            offset = keys.parse_log_chunk(row.key)
            if offset <= shipped:
                shipped = max(shipped, offset + row.size_bytes)
        return cls(bucket, a, file, shipped=shipped, masks=masks)

    def size(self) -> int:
        """How many bytes of output there are. What a task put in the place of its own output is none, and no reason for
        it never to end."""
        try:
            found = os.stat(self._file)
        except OSError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def grown(self) -> bool:
        return self._may_go() > self.shipped

    def has_backlog(self) -> bool:
        """More than an end record can take along, and free to go."""
        return self._may_go() - self.shipped > LOG_IN_END_BYTES

    def ship(self, upto: int | None = None) -> int:
        """Upload what is new, at most one piece; returns how many bytes went. Raises `StoreUnavailable`."""
        size = self._may_go() if upto is None else min(upto, self._may_go())
        if size <= self.shipped:
            return 0
        piece = self._read(self.shipped, min(PIECE_BYTES, size - self.shipped))
        if not piece:
            return 0
        key = keys.log_chunk(self._a, self.shipped)
        write_again(self._bucket.store, key, piece, budget_s=self._bucket.budget_s, ambient=self._bucket.ambient)
        self.shipped += len(piece)
        return len(piece)

    def tail(self) -> LogTail:
        """The part that travels in the end record, after everything before it was shipped. The process has ended:
        nothing is held back any more. Raises `StoreUnavailable`."""
        self._ended = True
        if self.masks is None:
            return LogTail(offset=self.shipped, size=self.size(), text="")
        while self.size() - self.shipped > LOG_IN_END_BYTES:
            if not self.ship():
                break
        size = self.size()
        if size == 0:
            return LogTail(text="")
        rest = self._read(self.shipped, LOG_IN_END_BYTES)
        text = as_text(rest)
        if text is not None:
            return LogTail(offset=self.shipped, size=size, text=text)
        return LogTail(offset=self.shipped, size=size, base64=base64.b64encode(rest).decode())

    def last_lines(self) -> str:
        """The last 50 lines, at most 16 KiB, for people: what is not text is replaced."""
        size = self.size()
        if self.masks is None:
            return WITHHELD if size else ""
        start = max(0, size - LOG_IN_END_BYTES)
        text = self._read(start, size - start, ended=True).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-LAST_FAILURE_LINES:])

    def _may_go(self) -> int:
        """Up to where the output may leave the machine now."""
        size = self.size()
        if self.masks is None:
            return 0
        if not self.masks or self._ended or size <= self.shipped:
            return size
        begin = max(0, size - self.masks.reach_bytes)
        return begin + self.masks.held_from(self._read_plain(begin, size - begin))

    def _read(self, offset: int, length: int, *, ended: bool = False) -> bytes:
        """What may leave the machine of these bytes. `masks` is known. `ended`: nothing is to come that a value at the
        end of the file could go on with."""
        masks = self.masks
        if not masks:
            return self._read_plain(offset, length)
        begin = max(0, offset - masks.reach_bytes)
        stop = offset + length + masks.reach_bytes
        around = self._read_plain(begin, stop - begin)
        at_end = len(around) < stop - begin  # a full answer that ends with the file breaks nothing off in this part
        return masks.masked(around, offset - begin, offset - begin + length, complete=at_end and (ended or self._ended))

    def _read_plain(self, offset: int, length: int) -> bytes:
        if length <= 0:
            return b""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hang us
            with os.fdopen(descriptor, "rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError:  # removed, or made unreadable, by its task: asked again and again it would never end
            return b""


def as_text(raw: bytes) -> str | None:
    """The bytes as text when they are text, exactly: what would not come back the same, or would grow in JSON, is
    not."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if not any(c < " " and c not in "\t\n\r" for c in text) else None
