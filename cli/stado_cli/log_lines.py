"""Output of tasks -> what a person or a program reads: whole lines with the rank before them, or pieces as JSON.

Several tasks share one stream, so their output is cut at line ends: a line is written when it is complete, and what
is left when the task ends. Of a single task everything is written at once, without a prefix, as if it ran here.
"""

from __future__ import annotations

from typing import Any

from stado_cli.output import Output
from stado_like.reading.logs import Decoder, Gap, Part


class LogLines:
    """`raw`: the bytes of one task exactly. `prefixed`: `[3] ` before each line."""

    def __init__(self, output: Output, *, prefixed: bool, raw: bool = False, json: bool = False) -> None:
        self._output = output
        self._prefixed = prefixed
        self._raw = raw
        self._json = json
        self._decoders: dict[tuple[int, int], Decoder] = {}
        self._begun: dict[tuple[int, int], str] = {}

    def write(self, rank: int, n: int, one: Part) -> None:
        if self._raw:
            if isinstance(one, Gap):
                self._output.note(str(one))
            else:
                self._output.raw(one.body)
            return
        whose = (rank, n)
        decoder = self._decoders.setdefault(whose, Decoder())
        if self._json:
            self._stream(rank, n, one, decoder)
            return
        if isinstance(one, Gap):
            self._output.note(str(one))
            return
        self._text(whose, decoder.text(one))

    def _stream(self, rank: int, n: int, one: Part, decoder: Decoder) -> None:
        shown: dict[str, Any] = {"rank": rank, "attempt": n, "offset": one.offset}
        if isinstance(one, Gap):
            self._output.stream({**shown, "missing_bytes": one.size_bytes})
        else:
            self._output.stream({**shown, "size_bytes": len(one.body), "text": decoder.text(one)})

    def _text(self, whose: tuple[int, int], text: str) -> None:
        if not self._prefixed:
            self._output.raw(text.encode("utf-8", "surrogatepass"))
            return
        lines = (self._begun.pop(whose, "") + text).split("\n")
        if lines[-1]:
            self._begun[whose] = lines[-1]
        if len(lines) > 1:
            told = "".join(f"[{whose[0]}] {line}\n" for line in lines[:-1])
            self._output.raw(told.encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Lines that never ended."""
        if self._raw or self._json:
            return
        for whose, decoder in self._decoders.items():
            self._text(whose, decoder.rest())
        for (rank, _), line in self._begun.items():
            self._output.raw(f"[{rank}] {line}\n".encode("utf-8", "surrogatepass"))
        self._begun.clear()
