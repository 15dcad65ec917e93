"""Where the control groups of a process lie in the file system.

Not obvious because three layouts live in the wild: version 1 (one tree per controller), version 2 (one tree), and the
hybrid (controllers in version 1, a bare version 2 tree under `unified`). A container may see a path in
/proc/self/cgroup that does not exist below its own mount point: then the mount point itself is the nearest group that
can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted tree of control groups and the place of a process in it. `controllers` is empty for version 2."""

    version: int
    controllers: frozenset[str]
    mount: Path
    group: Path

    def upwards(self) -> Iterator[Path]:
        """The group of the process and every group above it that can be seen, the nearest first."""
        at = self.group
        while True:
            yield at
            if at == self.mount or self.mount not in at.parents:
                return
            at = at.parent


def hierarchies(proc: Path = PROC, pid: str = "self") -> list[Hierarchy]:
    """Every tree of control groups this machine shows to `pid`; none where there is no /proc (macOS) or no mount."""
    own = _paths_of_process(proc / pid / "cgroup")
    found: list[Hierarchy] = []
    for version, controllers, root, mount in _mounts(proc / pid / "mountinfo"):
        path = own.get("") if version == 2 else next((own[c] for c in controllers if c in own), None)
        if path is None:
            continue
        found.append(Hierarchy(version, controllers, mount, _below(mount, root, path)))
    return found


def version_two(proc: Path = PROC, pid: str = "self") -> Hierarchy | None:
    return next((one for one in hierarchies(proc, pid) if one.version == 2), None)


def _paths_of_process(file: Path) -> dict[str, str]:
    """Controller -> path, with the name "" for version 2."""
    paths: dict[str, str] = {}
    for line in _lines(file):
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and names == "":
            paths[""] = path
        else:
            paths.update(dict.fromkeys(names.split(","), path))
    return paths


def _mounts(file: Path) -> Iterator[tuple[int, frozenset[str], str, Path]]:
    for line in _lines(file):
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        root, mount = _unescaped(fields[3]), Path(_unescaped(fields[4]))
        if kinds[0] == "cgroup2":
            yield 2, frozenset(), root, mount
        else:
            yield 1, frozenset(kinds[2].split(",")), root, mount


def _below(mount: Path, root: str, path: str) -> Path:
    inside = Path(path)
    if root != "/" and (path == root or path.startswith(root + "/")):
        inside = Path("/" + path[len(root) :].lstrip("/"))
    if ".." in inside.parts:  # another control group namespace: what lies above our mount cannot be read
        return mount
    there = mount / str(inside).lstrip("/")
    return there if there.is_dir() else mount


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="surrogateescape").splitlines()
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return []
