"""References of a run -> the values of its credentials, when all of them are there.

    nothing in the table, or nothing under its source    wait: a person may add it in a minute
    a source that cannot be asked                        wait, and say why
    a value that cannot be what was asked for            the task fails, with the reason

Not obvious because nothing here is an error of the run: a credential that is late is as normal as one that is there, so
the task stays in Preparing, says what it waits for and costs no restart. What a credential's keys are depends on its
entry in the table: a source for each key, or one source, whose content is a JSON object of plain values (then its
members are the keys) or one value, which answers to the one key that is asked for. The key `value` is always the whole
content, unless the object has one of that name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from stado_like.job import reasons
from stado_like.secret_sources import Source, is_file_name
from stado_worker.secrets.masking import NO_MASKS, Masks
from stado_worker.secrets.sources import CouldNotTell, Missing, ask
from stado_worker.secrets.table import Table
from stado_worker.shim.preparing import CouldNotPrepare, GivenUp, Pause, Say

T = TypeVar("T")
WHOLE = "value"
VARIABLE_MOST_BYTES = 120 << 10
AGAIN_FIRST_S, AGAIN_MOST_S = 1.0, 8.0
LOOK_AT_TABLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Ref:
    """One reference of a run: `env_vars` maps keys to variables, `mount_path` wants every key as a file."""

    name: str
    env_vars: Mapping[str, str] = field(default_factory=dict)
    mount_path: str = ""

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Ref:
        return cls(plain["external_secret_name"], plain.get("env_vars") or {}, plain.get("mount_path") or "")


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """All that a run's credentials come to. `files`: by directory, then by name. `notes`: for people, without
    values."""

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    masks: Masks = NO_MASKS
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Secrets(env={sorted(self.env)}, files={sorted(self.files)}, {self.masks!r})"


class Waiting(Exception):
    """`key` of `name` is not there; `why` says what more is known."""

    def __init__(self, name: str, key: str, why: str = "") -> None:
        super().__init__(name, key, why)
        self.name, self.key, self.why = name, key, why


@dataclass(frozen=True, slots=True, repr=False)
class Value:
    content: bytes
    trimmed: bool


def fetch(refs: Iterable[Ref], table: Table, say: Say, pause: Pause) -> Secrets:
    """Blocks until every value is there. Raises `GivenUp` when `pause` says so, `CouldNotPrepare` for a value that
    cannot be used."""
    found: list[tuple[Ref, Mapping[str, Value]]] = []
    for ref in refs:
        values = _until_there(partial(_values, ref, table), _told, table, say, pause)
        found.append((ref, values))
    return _assembled(found)


@dataclass(frozen=True, slots=True, repr=False)
class RegistryLogin:
    """What an image is pulled with."""

    username: str
    password: str
    server: str


def registry_login(name: str, table: Table, say: Say, pause: Pause) -> RegistryLogin:
    """The credential of a `registry_secret_ref`. Blocks, and raises, as `fetch` does."""

    def look() -> RegistryLogin:
        values = _values(Ref(name, dict.fromkeys(("username", "password", "server"), "")), table)
        try:
            texts = {key: value.content.decode() for key, value in values.items()}
        except UnicodeDecodeError:
            raise Waiting(name, "", "its values are not text") from None
        return RegistryLogin(**texts)

    def told(late: Waiting) -> str:
        return reasons.waits_for_registry_secret(late.name) + (f": {late.why}" if late.why else "")

    return _until_there(look, told, table, say, pause)


def _told(late: Waiting) -> str:
    return reasons.waits_for_secret(late.name, late.key) + (f": {late.why}" if late.why else "")


def _until_there(look: Callable[[], T], told: Callable[[Waiting], str], table: Table, say: Say, pause: Pause) -> T:
    again_s, said = AGAIN_FIRST_S, ""
    while True:
        try:
            return look()
        except Waiting as late:
            reason = told(late)
        if reason != said:
            said = reason
            say(reason)
        _wait(again_s, table, pause)
        again_s = min(again_s * 2, AGAIN_MOST_S)


def _wait(seconds: float, table: Table, pause: Pause) -> None:
    """So long, or until the settings file is another one."""
    before = _version(table)
    left_s = seconds
    while left_s > 0:
        if pause(min(left_s, LOOK_AT_TABLE_S)):
            raise GivenUp("the credentials are no longer wanted")
        left_s -= LOOK_AT_TABLE_S
        if _version(table) != before:
            return


def _version(table: Table) -> object:
    try:
        return table.version()
    except CouldNotTell as why:
        return str(why)


# ---- one credential


def _values(ref: Ref, table: Table) -> Mapping[str, Value]:
    """The values of every key that is asked for. Raises `Waiting`."""
    wanted = list(ref.env_vars)
    first = wanted[0] if wanted else WHOLE
    try:
        credential = table.credential(ref.name)
    except CouldNotTell as why:
        raise Waiting(ref.name, first, str(why)) from None
    if credential is None:
        raise Waiting(ref.name, first)
    if credential.whole is not None:
        return _keys_of_one(ref, _ask(ref, first, credential.whole, table), credential.whole.trim)
    if ref.mount_path:
        wanted += [key for key in credential.keys if key not in wanted]
    values = {}
    for key in wanted:
        source = credential.keys.get(key)
        if source is None:
            raise Waiting(ref.name, key)
        values[key] = Value(_ask(ref, key, source, table), source.trim)
    return values


def _ask(ref: Ref, key: str, source: Source, table: Table) -> bytes:
    try:
        return ask(source, table.environ)
    except Missing:
        raise Waiting(ref.name, key) from None
    except CouldNotTell as why:
        raise Waiting(ref.name, key, str(why)) from None


def _keys_of_one(ref: Ref, content: bytes, trim: bool) -> Mapping[str, Value]:
    """The keys of a credential that has one source."""
    members = _members(content)
    wanted = list(ref.env_vars)
    if members is None:
        if len([key for key in wanted if key != WHOLE]) > 1:
            raise Waiting(ref.name, wanted[1], f"the source holds one value, and {len(wanted)} keys are asked for")
        return {key: Value(content, trim) for key in wanted or [WHOLE]}
    values = {key: Value(member, trim) for key, member in members.items()}
    for key in wanted:
        if key not in values and key != WHOLE:
            raise Waiting(ref.name, key)
    if ref.mount_path:
        wanted += [key for key in values if key not in wanted]
    return {key: values.get(key) or Value(content, trim) for key in wanted}


def _members(content: bytes) -> dict[str, bytes] | None:
    """The members of a JSON object of plain values, numbers as they are written; None for anything else."""
    if not content.lstrip().startswith(b"{"):
        return None
    try:
        read = json.loads(content, parse_int=str, parse_float=str, parse_constant=str)
        if not isinstance(read, dict) or not read:
            return None
        return {key: _plain(value).encode() for key, value in read.items()}
    except (ValueError, TypeError, RecursionError):
        return None


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    raise TypeError("not a plain value")


# ---- all of them


def _assembled(found: Sequence[tuple[Ref, Mapping[str, Value]]]) -> Secrets:
    env: dict[str, str] = {}
    files: dict[str, dict[str, bytes]] = {}
    contents: list[bytes] = []
    notes: dict[str, None] = {}
    for ref, values in found:
        for key, value in values.items():
            content = value.content.rstrip(b"\r\n") if value.trimmed else value.content
            contents.append(content)
            if not value.trimmed and _is_a_line(content):
                notes[_ends_with_newline(ref.name, key)] = None
            if key in ref.env_vars:
                env[ref.env_vars[key]] = _variable(ref, key, content)
            if ref.mount_path:
                folder = files.setdefault(ref.mount_path, {})
                if not is_file_name(key):
                    raise CouldNotPrepare(
                        reasons.writing_config(ref.mount_path, f"a key of {ref.name} cannot be a file's name")
                    )
                if folder.setdefault(key, content) != content:
                    raise CouldNotPrepare(
                        reasons.writing_config(f"{ref.mount_path}/{key}", "two credentials have a key of this name")
                    )
    return Secrets(env, files, Masks.of(contents), tuple(notes))


def _is_a_line(content: bytes) -> bool:
    """One line with its end: what `echo` makes of a token. A file of several lines, such as a key, ends with one by
    right."""
    return content.endswith(b"\n") and content.count(b"\n") == 1 and len(content.strip()) > 0


def _ends_with_newline(name: str, key: str) -> str:
    return f"the credential {name} (key {key}) ends with a newline, and was given as it is: add ?trim=1 to its source"


def _variable(ref: Ref, key: str, content: bytes) -> str:
    variable = ref.env_vars[key]
    if b"\0" in content:
        why = f"the credential {ref.name} (key {key}) holds a NUL byte, which no variable can: mount it as a file"
        raise CouldNotPrepare(reasons.writing_config(variable, why))
    if len(content) > VARIABLE_MOST_BYTES:
        why = (
            f"the credential {ref.name} (key {key}) has {len(content)} bytes, and a variable at most "
            f"{VARIABLE_MOST_BYTES}: mount it as a file"
        )
        raise CouldNotPrepare(reasons.writing_config(variable, why))
    return os.fsdecode(content)  # as it is encoded again for the command: exact, whatever the bytes are
