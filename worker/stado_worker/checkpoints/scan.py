"""What lies in a checkpoint directory at one moment: names, kinds, and of each file what tells that it changed.

Nothing is followed: links are read as links, and a directory is entered by its descriptor, so that a program that puts
a link where a directory was sends nobody out of its directory. What cannot be kept (sockets, pipes, devices, links that
lead outside, what may not be read) is passed over and named in a note.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from stado_like.errors import Refused
from stado_like.job.checkpoint import MODE_BITS, MOST_ENTRIES, inner_target

NAMED_IN_NOTES = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as `stat` shows it. Equal: nobody has written to it, as far as the file system tells."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    mode: int


@dataclass(slots=True)
class Tree:
    """`passed`: why -> the names that were passed over."""

    directories: dict[bytes, int] = field(default_factory=dict)
    links: dict[bytes, bytes] = field(default_factory=dict)
    files: dict[bytes, Seen] = field(default_factory=dict)
    passed: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def newest_ns(self) -> int:
        return max((seen.mtime_ns for seen in self.files.values()), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{_names(names)} not in the checkpoint: {why}" for why, names in sorted(self.passed.items()))


class TooMany(Refused):
    code = "CHECKPOINT_REFUSED"


def seen_of(found: os.stat_result) -> Seen:
    return Seen(
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        stat.S_IMODE(found.st_mode) & MODE_BITS,
    )


def scan(root: bytes) -> Tree:
    """Raises OSError where the directory itself cannot be read, `TooMany`."""
    tree = Tree()
    with os.scandir(root):  # of the directory itself, an error is told; below, it belongs to what it concerns
        pass
    trouble: list[OSError] = []
    for folder, folders, files, descriptor in os.fwalk(root, follow_symlinks=False, onerror=trouble.append):
        inner = folder[len(root) :].strip(b"/")
        for name in (*folders, *files):
            path = inner + b"/" + name if inner else name
            try:
                _add(tree, root, path, os.stat(name, dir_fd=descriptor, follow_symlinks=False), name, descriptor)
            except FileNotFoundError:
                continue  # removed since its directory was read
        if len(tree.directories) + len(tree.files) + len(tree.links) > MOST_ENTRIES:
            raise TooMany(
                f"the checkpoint directory holds more than {MOST_ENTRIES} files",
                "Write fewer, larger files there, or pack them into one.",
            )
    for error in trouble:
        if not isinstance(error, FileNotFoundError):
            name = error.filename if isinstance(error.filename, bytes) else os.fsencode(str(error.filename))
            _pass(tree, str(error.strerror), name.removeprefix(root).strip(b"/"))
    return tree


def open_inner(root: bytes, path: bytes) -> int:
    """A descriptor to read what lies at `path` below `root`. Raises OSError, also where a link stands on the way."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *folders, name = path.split(b"/")
    try:
        for folder in folders:
            inner = os.open(folder, flags | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(name, flags, dir_fd=here)
    finally:
        os.close(here)


def _add(tree: Tree, root: bytes, path: bytes, found: os.stat_result, name: bytes, descriptor: int) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        # Whoever lays it out must be able to write there, also where the program shut it.
        tree.directories[path] = stat.S_IMODE(found.st_mode) & MODE_BITS | stat.S_IRWXU
    elif kind == stat.S_IFREG:
        tree.files[path] = seen_of(found)
    elif kind == stat.S_IFLNK:
        target = inner_target(path, os.readlink(name, dir_fd=descriptor), root)
        if target is None:
            _pass(tree, "a link that leads out of the directory", path)
        else:
            tree.links[path] = target
    else:
        _pass(tree, "neither a file, a directory nor a link", path)


def _pass(tree: Tree, why: str, path: bytes) -> None:
    tree.passed.setdefault(why, []).append(path)


def _names(paths: list[bytes]) -> str:
    shown = ", ".join(os.fsdecode(path).encode(errors="replace").decode() for path in sorted(paths)[:NAMED_IN_NOTES])
    more = len(paths) - NAMED_IN_NOTES
    return f"{shown} and {more} more" if more > 0 else shown
