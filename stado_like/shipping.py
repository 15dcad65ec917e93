"""The folder that a job is submitted with: packed when its document is made, sent when it is submitted.

Not obvious because the two are apart: a document is also made for `--dry-run`, which writes nothing and says the digest
all the same; and a document may come back hours later (`job rerun`), when only the store has the files. So what was
packed waits here under its digest, and a digest that nobody here has packed must be in the store.

    --workdir, on a store of this machine: the directory itself, in place
    --workdir elsewhere: what is a directory here is shipped; an absolute path that is nothing here is the worker's
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from stado_like import config
from stado_like.ambient import Ambient
from stado_like.patience import Note, silent
from stado_like.store.protocol import ObjectStore

if TYPE_CHECKING:
    from stado_like.bundle.archive import Packed

SAID_AFTER_S = 1.0
SAID_EVERY_S = 3.0


class Shipping:
    """`on_note` hears what a person should know while it takes long."""

    def __init__(self, store: ObjectStore, settings: config.Settings, ambient: Ambient) -> None:
        self.on_note: Note = silent
        self._store = store
        self._most_bytes = settings.bundle_max
        self._ambient = ambient
        self._packed: dict[str, Packed] = {}
        self._sending = Lock()  # an archive is one file, read from its beginning by whoever sends it

    def ships(self, spec: object) -> bool:
        """Whether `spec.workdir` names a directory of this machine that goes with the job."""
        if self._store.url.startswith("file:") or not isinstance(spec, dict) or spec.get("bundle"):
            return False
        workdir = spec.get("workdir")
        if not isinstance(workdir, str) or not workdir:
            return False
        return not os.path.isabs(workdir) or os.path.lexists(workdir)

    def pack(self, spec: dict[str, Any]) -> None:
        """Put a bundle of the directory in the place of `spec.workdir`. Nothing is sent yet. Raises `Refused`.
        """
        from stado_like.bundle.archive import pack

        folder = os.path.expanduser(spec["workdir"])
        packed = pack(folder, self._most_bytes, _Told(f"packing {folder}", self._ambient, self.on_note))
        for note in packed.notes:
            self.on_note(note)
        self._packed[packed.digest] = packed
        spec["bundle"] = packed.digest
        del spec["workdir"]

    def look(self, document: Mapping[str, Any]) -> None:
        """The bundle of a document that was packed elsewhere is there. Raises `NotFound`; nothing is written."""
        digest = document["spec"].get("bundle")
        if digest and digest not in self._packed:
            from stado_like.bundle.upload import look

            look(self._store, digest)

    def send(self, document: Mapping[str, Any]) -> None:
        """The store has the bundle that the document names, and keeps it for a day at least. Raises `NotFound` when it
        has not, and nobody here packed it.
        """
        digest = document["spec"].get("bundle")
        if not digest:
            return
        from stado_like.bundle.upload import keep, upload

        with self._sending:
            packed = self._packed.get(digest)
            told = _Told(f"sending {packed or 'the bundle'}", self._ambient, self.on_note)
            if packed is None:
                keep(self._store, digest, told, ambient=self._ambient)
            else:
                upload(self._store, packed, told, ambient=self._ambient)
                del self._packed[digest]
                packed.close()

    def close(self) -> None:
        while self._packed:
            self._packed.popitem()[1].close()


class _Told:
    """Says how far something is, once it has taken a second, and then every three."""

    def __init__(self, what: str, ambient: Ambient, on_note: Note) -> None:
        self._what = what
        self._ambient = ambient
        self._on_note = on_note
        self._next_s = ambient.boot_s() + SAID_AFTER_S

    def __call__(self, done_bytes: int, all_bytes: int) -> None:
        now_s = self._ambient.boot_s()
        if now_s >= self._next_s and done_bytes < all_bytes:
            from stado_like.bundle.limits import words

            self._next_s = now_s + SAID_EVERY_S
            self._on_note(f"{self._what}: {words(done_bytes)} of {words(all_bytes)}")
