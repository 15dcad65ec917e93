"""`stado(...)`: one command line run in this process, as the installed program would, with what it printed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from stado_cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out_bytes: bytes
    err: str

    @property
    def out(self) -> str:
        return self.out_bytes.decode()

    @property
    def value(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out_bytes)

    @property
    def error(self) -> Any:
        """The error object: the last line on standard error."""
        return json.loads(self.err.splitlines()[-1])


Stado = Callable[..., Said]


@pytest.fixture
def stado(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Stado:
    def run(*words: object, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        capfdbinary.readouterr()
        code = main([str(word) for word in words])
        out, err = capfdbinary.readouterr()
        return Said(int(code), out, err.decode())

    return run
