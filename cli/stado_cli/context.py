"""What every command is handed: settings, store, meter, output; each made when it is first asked for.

Flags may stand before or after the verb, so nothing can be settled until the whole line has been read: `flag` collects,
the properties settle. `stado --help` and a mistyped line therefore read no settings and open no store.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING

from stado_cli.output import Output, open_output

if TYPE_CHECKING:
    from stado_like.config import Settings
    from stado_like.store.meter import Meter
    from stado_like.store.protocol import ObjectStore


class Context:
    def __init__(self) -> None:
        self._flags: dict[str, object] = {}

    def flag(self, name: str, value: object) -> None:
        """Remember a global flag. The last of the line wins, as with any option given twice."""
        self._flags[name] = value

    @cached_property
    def settings(self) -> Settings:
        """Raises `Refused` when a setting is wrong."""
        from stado_like.config import load

        return load(self._flags)

    @cached_property
    def meter(self) -> Meter:
        from stado_like.store.meter import Meter

        return Meter()

    @cached_property
    def store(self) -> ObjectStore:
        """The store of the settings, opened once. Nothing is asked of it before the command does."""
        from stado_like.store.url import open_store

        return open_store(self.settings.store, meter=self.meter)

    @cached_property
    def output(self) -> Output:
        return open_output(json=self.settings.json, no_color=self.settings.no_color)

    def report_requests(self) -> None:
        """`--stats`: what this command asked of the store, by kind, and its price, on standard error."""
        if "meter" in self.__dict__ and "settings" in self.__dict__ and self.settings.stats:
            for line in self.meter.lines():
                sys.stderr.write(line + "\n")

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
