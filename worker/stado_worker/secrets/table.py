"""The machine's `[secrets]` table, looked at again when its file changes.

A task may wait for a credential that a person adds a minute later, so the file is not read once and for good. It is
read only when it is another file than the last one read, which costs one `stat` a look. A file that cannot be read now
is "could not tell": the task waits on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from stado_like.config import read_secrets, settings_file
from stado_like.errors import Refused
from stado_like.secret_sources import Credential
from stado_worker.secrets.sources import CouldNotTell


class Table:
    def __init__(self, file: Path, environ: Mapping[str, str] | None = None) -> None:
        """`environ`: where `env:` sources are looked for; this process's own unless said."""
        self.environ = os.environ if environ is None else environ
        self._file = file
        self._read: tuple[int, int, int] | None = None
        self._credentials: Mapping[str, Credential] = {}

    @classmethod
    def of_this_machine(cls, environ: Mapping[str, str] | None = None) -> Table:
        environ = os.environ if environ is None else environ
        return cls(settings_file(environ), environ)

    def credential(self, name: str) -> Credential | None:
        """What the table says of `name`; None: nothing. Raises `CouldNotTell`."""
        seen = self.version()
        if seen is None:
            return None
        if seen != self._read:
            try:
                self._credentials = read_secrets(self._file)
            except Refused as wrong:
                raise CouldNotTell(wrong.message) from None
            self._read = seen
        return self._credentials.get(name)

    def version(self) -> tuple[int, int, int] | None:
        """Another value when the file is another one; None where there is none. Raises `CouldNotTell`."""
        try:
            seen = os.stat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CouldNotTell(f"the settings file {self._file} cannot be read: {error.strerror}") from None
        return seen.st_ino, seen.st_mtime_ns, seen.st_size
