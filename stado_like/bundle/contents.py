"""What of a folder is shipped: what git tracks and what it does not ignore; without git, everything; less what
`.stadoignore` names; never `.git`.

Not obvious because git's own list is not a list of files: it names what was deleted a moment ago, names a submodule or
a repository inside the repository as one entry, a file in conflict three times, and is empty for a folder that the
repository around it ignores. And because "git could not be asked" is not "git ignores nothing": a `.gitignore` often
names what must not leave the machine, so then nothing is shipped until somebody says what.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from stado_like.bundle.ignore import NAME, Ignore
from stado_like.bundle.limits import MOST_MEMBERS
from stado_like.bundle.unpack import leaves
from stado_like.errors import Refused

GIT = ".git"
GIT_ANSWERS_WITHIN_S = 120
_KEPT_OF_THE_ENVIRONMENT = ("PATH", "HOME", "XDG_CONFIG_HOME", "USERPROFILE", "SYSTEMROOT")
_FATAL = 128
"""Git's exit code when it could not do what it was asked."""


class Kind(Enum):
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One member. `name`: its path in the folder, with `/`. `target`: of a link. `mtime_ns`, with the size, tells
    whether a file changed since."""

    name: str
    kind: Kind = field(compare=False)
    size_bytes: int = field(default=0, compare=False)
    is_program: bool = field(default=False, compare=False)
    target: str = field(default="", compare=False)
    mtime_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Contents:
    """`notes`: what a person should hear about."""

    items: tuple[Item, ...]
    notes: tuple[str, ...]


def contents(folder: str) -> Contents:
    """`folder`: an absolute path. Raises `Refused` with the path of what cannot be shipped."""
    look = _Look(folder, _ignore_of(folder))
    for name in look.names(folder):
        look.add(name)
    look.nothing_leaves()
    return Contents(tuple(sorted(look.items.values(), key=lambda one: os.fsencode(one.name))), tuple(look.notes))


def _ignore_of(folder: str) -> Ignore | None:
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            return Ignore.of(file.read())
    except FileNotFoundError:
        return None
    except OSError as failed:
        raise _unreadable(os.path.join(folder, NAME), failed) from failed


class _Look:
    def __init__(self, folder: str, ignore: Ignore | None) -> None:
        self._folder = folder
        self._ignore = ignore
        self.items: dict[str, Item] = {}
        self.notes: list[str] = []

    def names(self, place: str) -> Iterator[str]:
        """Names below `place`, which is the folder or a repository in it, relative to the folder."""
        if _is_in_repository(place):
            listed = self._git_names(place)
            if listed is not None:
                yield from listed
                return
        yield from self._walk(place)

    def _relative(self, place: str) -> str:
        below = os.path.relpath(place, self._folder)
        return "" if below == os.curdir else below.replace(os.sep, "/") + "/"

    # ---- by git

    def _git_names(self, place: str) -> list[str] | None:
        """None: git has nothing to say about this folder, and it is shipped as if there were no git."""
        try:
            asked = _git(place, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
            words = asked.stderr.decode(errors="replace")
        except FileNotFoundError:
            asked, words = None, "git is not installed here"
        if asked is None or asked.returncode:
            if self._ignore is not None:
                self.notes.append(f"{place}: git could not be asked ({words.strip()}); {NAME} alone rules")
                return None
            raise Refused(
                f"{place} lies in a git repository, and git could not say what it ignores: {words.strip()}",
                f"Make git work there, or write a {NAME} in {self._folder}: it rules where git cannot be asked.",
            )
        listed = sorted({os.fsdecode(name) for name in asked.stdout.split(b"\0") if name})
        if not listed and not _git(place, "check-ignore", "-q", ".").returncode:
            self.notes.append(f"{place} is ignored by the git repository around it: everything in it is shipped")
            return None
        return [found for name in listed for found in self._git_entry(self._relative(place), name)]

    def _git_entry(self, below: str, listed: str) -> Iterator[str]:
        name = below + listed.rstrip("/")
        path = os.path.join(self._folder, name)
        if listed.rstrip("/") in ("", "."):
            return  # what git says of a submodule that it is asked about from inside
        if self._is_through_a_link(below, listed):
            return  # tracked below what has become a link: the link itself is listed too
        if os.path.isdir(path) and not os.path.islink(path):
            if os.path.lexists(os.path.join(path, GIT)):
                if self._ignore is None or not self._ignore.ignores(name, is_folder=True):
                    yield from self.names(path)
            elif not os.listdir(path):
                self.notes.append(f"{name} is a submodule that is not checked out: nothing of it is shipped")
            return
        if os.path.lexists(path):  # else deleted, and still tracked
            yield name

    def _is_through_a_link(self, below: str, listed: str) -> bool:
        parts = listed.rstrip("/").split("/")[:-1]
        return any(os.path.islink(os.path.join(self._folder, below, *parts[: n + 1])) for n in range(len(parts)))

    # ---- by walking

    def _walk(self, place: str) -> Iterator[str]:
        waiting = [place]
        while waiting:
            here = waiting.pop()
            below = self._relative(here)
            entries = 0
            try:
                for entry in os.scandir(here):
                    entries += 1
                    if entry.name == GIT:
                        continue
                    if not entry.is_dir(follow_symlinks=False):
                        yield below + entry.name
                    elif self._ignore is None or not self._ignore.ignores(below + entry.name, is_folder=True):
                        waiting.append(entry.path)
            except OSError as failed:
                raise _unreadable(here, failed) from failed
            if not entries and below:
                yield below.rstrip("/")

    # ---- one by one

    def add(self, name: str) -> None:
        if GIT in name.split("/") or (self._ignore is not None and self._ignore.ignores(name)):
            return
        path = os.path.join(self._folder, name)
        try:
            seen = os.lstat(path)
            kind = _kind(seen.st_mode)
            target = os.readlink(path) if kind is Kind.LINK else ""
        except FileNotFoundError:
            return  # deleted since it was listed
        except OSError as failed:
            raise _unreadable(path, failed) from failed
        if kind is None:
            raise Refused(
                f"{path!r} is a {_special(seen.st_mode)}, and only files, folders and links can be shipped",
                f"Remove it, or name it in {NAME}.",
            )
        size = seen.st_size if kind is Kind.FILE else 0
        self.items[name] = Item(name, kind, size, bool(seen.st_mode & 0o100), target, seen.st_mtime_ns)
        if len(self.items) > MOST_MEMBERS:
            raise Refused(
                f"{self._folder} holds more than {MOST_MEMBERS:,} files, the most that a bundle may",
                f"Name what is not needed in a file {NAME} there, or give a smaller folder.",
                code="BUNDLE_TOO_LARGE",
            )

    def nothing_leaves(self) -> None:
        """A link that leads out of the folder leads elsewhere, or nowhere, on another machine."""
        whole = os.path.realpath(self._folder)
        for item in self.items.values():
            if item.kind is not Kind.LINK:
                continue
            path = os.path.join(self._folder, item.name)
            real = os.path.realpath(path)
            if leaves(item.name, item.target) or not (real == whole or real.startswith(whole.rstrip("/") + "/")):
                raise Refused(
                    f"{path!r} is a link that leaves the folder, to {item.target!r}: on a worker it leads elsewhere",
                    f"Make it relative and inside the folder, put a copy in its place, or name it in {NAME}.",
                )


def _kind(mode: int) -> Kind | None:
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISLNK(mode):
        return Kind.LINK
    return Kind.FOLDER if stat.S_ISDIR(mode) else None


def _special(mode: int) -> str:
    kinds = ((stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"), (stat.S_ISBLK, "device"), (stat.S_ISCHR, "device"))
    return next((name for is_one, name in kinds if is_one(mode)), "special file")


def _is_in_repository(place: str) -> bool:
    """A `.git` that is a repository's, there or above. What only has the name is none, and git would say so too."""
    while True:
        mark = os.path.join(place, GIT)
        if os.path.isfile(mark) or os.path.lexists(os.path.join(mark, "HEAD")):
            return True
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above


def _git(place: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Without the caller's `GIT_*`, which may name another repository, and without programs that a repository's own
    settings name."""
    env = {name: os.environ[name] for name in _KEPT_OF_THE_ENVIRONMENT if name in os.environ}
    try:
        return subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            cwd=place,
            env={**env, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_ANSWERS_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, _FATAL, b"", f"no answer in {GIT_ANSWERS_WITHIN_S} s".encode())


def _unreadable(path: str, failed: OSError) -> Refused:
    return Refused(f"{path!r} cannot be read: {failed.strerror or failed}", f"Make it readable, or name it in {NAME}.")
