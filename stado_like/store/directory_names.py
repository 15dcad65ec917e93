"""The sorted names below a directory, without reading more of it than was asked for.

A listing must come in the order of whole keys, as an object store gives it, and 200,000 names must not be read
again for each page of 1,000. So a directory's names are kept, sorted, as long as its modification time says that
nothing was added or removed. That time has a grain (4 ms on a local disk, up to a second on some network disks): a
directory changed in the same grain in which it was read looks unchanged, so names are only kept when the last
change lay well before the reading.

A directory sorts as its name with `/`: `a-b` < `a.b` < `a/x` < `a0`.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock

GRAIN_S = 1.5
KEPT_DIRECTORIES = 256
KEPT_FROM_NAMES = 32
LONGEST_KEY = 1024


class DirectoryNames:
    """Keys below `root` in ascending order. `hidden` is a directory of the root that is never listed."""

    def __init__(self, root: str, hidden: str) -> None:
        self._root = root
        self._hidden = hidden + "/"
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[tuple[int, int], list[str]]] = OrderedDict()

    def walk(self, prefix: str, start_after: str, now_s: float) -> Iterator[str]:
        """Keys that begin with `prefix` and sort after `start_after`. `now_s` is the directory's own time.

        Reads no directory outside the prefix. What vanishes on the way is left out.
        """
        folder = prefix[: prefix.rfind("/") + 1]
        if folder.startswith(self._hidden) or any(segment in ("", ".", "..") for segment in folder.split("/")[:-1]):
            return iter(())
        return self._below(folder, prefix, start_after, now_s)

    def _below(self, folder: str, prefix: str, start_after: str, now_s: float) -> Iterator[str]:
        if not start_after.startswith(folder) and start_after > folder:
            return
        names = self._names(folder, now_s)
        first = 0
        if start_after.startswith(folder) and len(start_after) > len(folder):
            rest = start_after[len(folder) :]
            first = bisect_right(names, rest)
            if first and names[first - 1][-1] == "/" and rest.startswith(names[first - 1]):
                first -= 1
        if len(prefix) > len(folder):
            first = max(first, bisect_left(names, prefix[len(folder) :]))
        for at in range(first, len(names)):
            key = folder + names[at]
            if not key.startswith(prefix):
                return
            if key[-1] == "/":
                if len(key) < LONGEST_KEY:  # deeper lies nothing that could be a key
                    yield from self._below(key, key, start_after, now_s)
            else:
                yield key

    def _names(self, folder: str, now_s: float) -> list[str]:
        path = os.path.join(self._root, folder)
        try:
            seen = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        mark = (seen.st_mtime_ns, seen.st_ino)
        with self._lock:
            kept = self._kept.get(folder)
            if kept is not None and kept[0] == mark:
                self._kept.move_to_end(folder)
                return kept[1]
        names = self._read(path, folder)
        with self._lock:
            if len(names) >= KEPT_FROM_NAMES and now_s - seen.st_mtime > GRAIN_S:
                self._kept[folder] = (mark, names)
                self._kept.move_to_end(folder)
                if len(self._kept) > KEPT_DIRECTORIES:
                    self._kept.popitem(last=False)
            else:
                self._kept.pop(folder, None)
        return names

    def _read(self, path: str, folder: str) -> list[str]:
        names: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        names.append(entry.name + "/")
        except (FileNotFoundError, NotADirectoryError):
            return []
        if not folder and self._hidden in names:
            names.remove(self._hidden)
        names.sort()
        if not all(map(str.isascii, names)):  # foreign names that are not UTF-8 cannot be keys: left out
            names = [name for name in names if _is_utf8(name)]
        return names


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
