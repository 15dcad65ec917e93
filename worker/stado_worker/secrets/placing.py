"""Files at the paths that a run asks for: credentials and configs of a process, on the machine's own file system.

Not obvious because a process has no file system of its own. The path is the machine's: another task of the same job may
want it at the same time, a person may have a file there, and a supervisor may be killed before it removed anything. So:

* nothing is ever overwritten: what is placed is a symbolic link, made in one step that fails where something is;
* each attempt has a copy of its own (see `private` for credentials), and the link leads to the copy of one living
  attempt. Who else uses it stands in a record; when its attempt ends, the link is turned to another's copy, and the
  last one removes it, with the directories that were made for it and are empty;
* whether an attempt lives is asked of the lock that its supervisor holds. What the dead left is replaced or removed by
  whoever comes: the next attempt, the agent that finishes the dead one, the next start of the worker;
* a path that another living attempt uses with other content, or anything not ours, fails the task.

The records lie in the worker's state directory, by host, and not in a directory for temporary files, which is swept
after some days on many systems while tasks still run. Workers with another state directory are told apart by the link
itself, which names the attempt it leads to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stado_like.job import reasons
from stado_worker.secrets import private
from stado_worker.secrets.records import Record, Records, User
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.preparing import CouldNotPrepare

COPIES = "placed"
Content = bytes | Mapping[str, bytes]
"""A file, or the files of a directory that only we may enter."""


@dataclass(frozen=True, slots=True, repr=False)
class Wanted:
    """`path` as the run says it, for people; `place` without links and dots in its parents."""

    path: str
    place: str
    content: Content


def place(
    folder: AttemptDir, cwd: str, secret_files: Mapping[str, Mapping[str, bytes]], configs: Iterable[Mapping[str, Any]]
) -> None:
    """Put all of it where it is asked for. Raises `CouldNotPrepare` where a path refuses, and OSError for trouble with
    our own records; what was placed until then goes with `remove_placed`."""
    wanted = list(_wanted(cwd, secret_files, configs))
    if not wanted:
        return
    with Records.of(folder.path).locked() as records:
        for number, one in enumerate(wanted):
            _place_one(records, folder, one, number)


def remove_placed(folder: Path) -> None:
    """Everything that this attempt placed, and its copies: when its processes are gone. Masks stay. The same again
    changes nothing. Raises OSError: call it again."""
    records = Records.of(folder)
    if records.any():
        with records.locked():
            for record in records.every():
                if any(user.folder == str(folder) for user in record.users):
                    _release(records, record, lambda user: user.folder != str(folder) and _lives(user))
    for copies in _copies(folder):
        _remove_tree(copies)


def remove_left_behind(folder: Path) -> None:
    """As `remove_placed`, and the masks: when the end of the attempt is settled, or it is another's. Raises OSError."""
    remove_placed(folder)
    private.remove(folder)


def remove_of_the_dead(attempts: Path) -> None:
    """At the start of a worker: what attempts left whose supervisors are gone. Masks of those that are not settled
    stay. Raises OSError."""
    records = Records.of(attempts / "any")
    if records.any():
        with records.locked():
            for record in records.every():
                if not all(_lives(user) for user in record.users):
                    _release(records, record, _lives)
    with suppress(FileNotFoundError):
        for place in sorted(private.memory_root().iterdir()):
            owner = private.owner_in_memory(place)
            if owner is None or owner.parent != attempts:
                continue  # another worker's, which may live where its folder is not to be seen from here
            if not owner.exists() or AttemptDir(owner).is_done():
                _remove_tree(place)


# ---- what is wanted


def _wanted(
    cwd: str, secret_files: Mapping[str, Mapping[str, bytes]], configs: Iterable[Mapping[str, Any]]
) -> Iterator[Wanted]:
    asked: list[tuple[str, Content]] = list(secret_files.items())
    asked += [(path, config["value"].encode()) for config in configs for path in config["mounts"]]
    seen: dict[str, Content] = {}
    for path, content in asked:
        absolute = os.path.normpath(os.path.join(cwd, path))
        if not path.startswith("/") and not os.path.isdir(cwd):
            raise CouldNotPrepare(reasons.writing_config(path, f"the working directory {cwd} does not exist"))
        place = os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))
        inside = next((other for other in seen if place.startswith(other + "/")), None)
        if inside is not None or _is_in_a_copy(place):
            raise CouldNotPrepare(reasons.writing_config(path, f"it lies inside {inside or 'what a run was given'}"))
        if place not in seen:
            seen[place] = content
            yield Wanted(path, place, content)
        elif seen[place] != content:
            raise CouldNotPrepare(reasons.writing_config(path, "the run asks for it twice, with different content"))


# ---- one path


def _place_one(records: Records, folder: AttemptDir, one: Wanted, number: int) -> None:
    """Raises `CouldNotPrepare`, OSError."""
    mine = User(str(folder.path), str(_copy(folder.path, one.content, number)))
    known = records.read(one.place) or Record(one.place)
    others = [user for user in known.users if user.folder != mine.folder and _lives(user)]
    if others:
        who = Path(others[0].folder).name
        if _leads_to(one.place) not in {user.copy for user in known.users}:
            raise _refused(one, f"it is no longer what was placed there for {who}, which still runs")
        if not _same(others[0].copy, one.content):
            raise _refused(one, f"{who}, which still runs, uses it with other content")
        records.write(Record(one.place, (*others, mine), known.made))
        return
    missing = _missing_parents(one.place)
    record = Record(one.place, (mine,), tuple(dict.fromkeys((*known.made, *missing))))
    records.write(record)  # first: what a kill now leaves is known
    try:
        for directory in reversed(missing):
            os.mkdir(directory)
        _link(one, mine, known)
    except OSError as error:
        raise _refused(one, error.strerror or str(error)) from None


def _link(one: Wanted, mine: User, known: Record) -> None:
    try:
        os.symlink(mine.copy, one.place)
    except FileExistsError:
        _make_way(one, mine, known)
        os.symlink(mine.copy, one.place)


def _make_way(one: Wanted, mine: User, known: Record) -> None:
    """Remove a link that leads to a copy of a dead attempt, or raise."""
    target = _leads_to(one.place)
    if target is None:
        raise _refused(one, "it exists, and nothing is overwritten")
    if target != mine.copy and target not in {user.copy for user in known.users}:
        owner = _attempt_of(target)
        if owner is None or os.lstat(one.place).st_uid != os.geteuid():
            raise _refused(one, "it exists, and nothing is overwritten")
        if AttemptDir(owner).is_alive():
            raise _refused(one, f"{owner.name}, which still runs, uses it")
    os.unlink(one.place)


def _release(records: Records, record: Record, stays: Callable[[User], bool]) -> None:
    """Let go for all users that do not stay."""
    record = records.read(record.path) or record  # a release just before may have handed directories on to it
    staying = tuple(user for user in record.users if stays(user))
    target = _leads_to(record.path)
    is_ours = target in {user.copy for user in record.users}
    if staying:
        if is_ours and target not in {user.copy for user in staying}:
            _turn(record.path, staying[0].copy)
        records.write(Record(record.path, staying, record.made))
        return
    if is_ours:
        with suppress(FileNotFoundError):
            os.unlink(record.path)
    _remove_made(records, record)
    records.remove(record.path)


def _turn(path: str, copy: str) -> None:
    """The link leads elsewhere from one instant to the next: nobody finds it missing."""
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:200]}.turned")
    with suppress(FileNotFoundError):
        os.unlink(fresh)
    os.symlink(copy, fresh)
    os.replace(fresh, path)


def _remove_made(records: Records, record: Record) -> None:
    """The directories made for a path, deepest first, while they are empty; one that holds another placed path is
    handed on to that one."""
    others = [other for other in records.every() if other.path != record.path]
    for directory in sorted(record.made, key=len, reverse=True):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            continue
        except OSError:  # not empty, or no longer ours to remove
            heir = next((other for other in others if other.path.startswith(directory + "/")), None)
            if heir is not None:
                known = records.read(heir.path) or heir
                records.write(Record(heir.path, known.users, tuple(dict.fromkeys((*known.made, directory)))))


def _missing_parents(path: str) -> list[str]:
    """Deepest first."""
    missing = []
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    return missing


def _refused(one: Wanted, why: str) -> CouldNotPrepare:
    return CouldNotPrepare(reasons.writing_config(one.path, why))


def _leads_to(path: str) -> str | None:
    """Where a link leads; None for anything else and for nothing."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _lives(user: User) -> bool:
    """Whether the attempt has a supervisor. What cannot be asked is no death."""
    try:
        return AttemptDir(Path(user.folder)).is_alive()
    except OSError:
        return True


def _attempt_of(copy: str) -> Path | None:
    """The attempt's folder that a copy belongs to, wherever its worker keeps its state; None: it is no copy."""
    path = Path(copy)
    if private.memory_root() in path.parents:
        place = private.memory_root() / path.relative_to(private.memory_root()).parts[0]
        return private.owner_in_memory(place) or place  # without an owner: of before a restart of the machine
    if len(path.parents) > 3 and path.parents[0].name in (COPIES, private.ON_DISK):
        return path.parents[1] if path.parents[2].name == "attempts" else None
    return None


def _is_in_a_copy(place: str) -> bool:
    """A credential's directory was placed where a parent of this path is."""
    parents = Path(place).parents
    return private.memory_root() in parents or any(
        parent.name.startswith(f"{COPIES}-") and parent.parent.name == private.ON_DISK for parent in parents
    )


# ---- copies


def _copy(folder: Path, content: Content, number: int) -> Path:
    """This attempt's own copy: a file that everybody may read, or a directory of ours with files that we may read."""
    if isinstance(content, bytes):
        copies = folder / COPIES
        with suppress(FileExistsError):
            copies.mkdir(mode=0o755)
        private.write(copies / str(number), content, 0o444)
        return copies / str(number)
    copy = private.make(folder) / f"{COPIES}-{number}"
    with suppress(FileExistsError):
        copy.mkdir(mode=0o700)
    for name, value in content.items():
        private.write(copy / name, value, 0o400)
    return copy


def _copies(folder: Path) -> list[Path]:
    found = [folder / COPIES]
    for place in private.places(folder):
        found += sorted(place.glob(f"{COPIES}-*"))
    return found


def _same(copy: str, content: Content) -> bool:
    try:
        if isinstance(content, bytes):
            return Path(copy).read_bytes() == content
        return {path.name: path.read_bytes() for path in Path(copy).iterdir()} == dict(content)
    except OSError:
        return False


def _remove_tree(path: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(path)
