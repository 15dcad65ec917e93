"""Ends that another process of this machine has read: what `Bucket` asks before it asks the store. An end never
changes."""

from __future__ import annotations

from typing import Protocol

from stado_like.job.records import End


class KeptEnds(Protocol):
    def end(self, key: str) -> End | None: ...

    def keep_end(self, key: str, end: End) -> None: ...
