"""Records <-> bytes: small, strict, and kind to other versions.

A stored record is one JSON object with `v`, the major version of its schema. A newer major version is refused
politely (`NewerRecord`); a newer *minor* version may have fields this code does not know: they are kept in `extra` and
written back unchanged, so that an old tick never strips what a new worker wrote. A missing field takes its default; a
wrong type is a `BadRecord` that names the key and the field. Field names on disk are the attribute names.

The converters are built once per class from its annotations: str, int, float, bool, `| None`, `tuple[X, ...]`,
`dict[str, X]`, enums with string values, and other dataclasses.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import orjson

from stado_like.errors import BadRecord, NewerRecord

MAJOR = 1

_AS_IS = frozenset({str, int, float, bool, types.NoneType})

R = TypeVar("R")
_Read = Callable[[Any], Any]


class _Wrong(Exception):
    """`path` grows from the inside out while the error travels up."""

    def __init__(self, wanted: str, found: Any, path: str = "") -> None:
        super().__init__(wanted)
        self.wanted, self.found, self.path = wanted, found, path

    def at(self, place: str) -> _Wrong:
        """The same, seen from one level further out."""
        self.path = place + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self


def encode(record: Any) -> bytes:
    """The bytes of a record (a dataclass instance, or a plain mapping)."""
    return dumps({"v": MAJOR, **(fields_of(record) if dataclasses.is_dataclass(record) else record)})


def dumps(value: Any) -> bytes:
    """Bytes of values in which records may stand anywhere, as `to_plain` would write them. The walk is orjson's: in
    Python it was a third of what an end cost."""
    return orjson.dumps(value, _as_plain, orjson.OPT_PASSTHROUGH_DATACLASS)


def fields_of(record: Any) -> dict[str, Any]:
    """One level of a record: its fields by name as they stand, and what `extra` holds."""
    found: dict[str, Any] = _fields(typing.cast("Any", type(record)))(record)
    return found


def _as_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that a record holds")


@cache
def _fields(kind: type) -> Callable[[Any], dict[str, Any]]:
    names = _names(kind)
    values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    if len(names) == 1:
        return lambda record: {names[0]: values(record), **getattr(record, "extra", {})}
    if not any(one.name == "extra" for one in dataclasses.fields(kind)):
        return lambda record: dict(zip(names, values(record), strict=True))
    return lambda record: {**dict(zip(names, values(record), strict=True)), **record.extra}


def decode(kind: type[R], body: bytes, key: str) -> R:
    """Read `body`, found under `key`, as a `kind`. Raises `BadRecord` or `NewerRecord`, both naming the key."""
    return from_plain(kind, decode_plain(body, key), key)


def from_plain(kind: type[R], plain: Mapping[str, Any], key: str) -> R:
    """The same from values that were parsed before; `key` only names them in an error. Raises `BadRecord`."""
    try:
        return typing.cast("R", _reader(typing.cast("Any", kind))(plain))
    except _Wrong as wrong:
        raise BadRecord(
            f"{key}: {wrong.path or 'the record'} should be {wrong.wanted}, found {str(wrong.found)[:80]!r}",
            "The record was set aside; `stado storage cat` shows it.",
        ) from None


def decode_plain(body: bytes, key: str) -> dict[str, Any]:
    try:
        plain = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRecord(
            f"{key}: {len(body)} bytes that are not JSON ({error})",
            "The record was set aside; `stado storage cat` shows it.",
        ) from None
    if not isinstance(plain, dict):
        raise BadRecord(f"{key}: should be a JSON object, found {str(plain)[:80]!r}", "The record was set aside.")
    version = plain.get("v", MAJOR)
    if not isinstance(version, int) or isinstance(version, bool):
        raise BadRecord(
            f"{key}: its version should be a number, found {str(version)[:40]!r}", "The record was set aside."
        )
    if version > MAJOR:
        raise NewerRecord(
            f"{key} was written in version {version} of the format; this program reads up to {MAJOR}",
            "Upgrade stado on this machine.",
        )
    return plain


def to_plain(value: Any) -> Any:
    """A record as JSON-able values; `extra` fields come back where they were found."""
    kind = type(value)
    if kind in _AS_IS:  # most values are: asking what else they might be is half of the cost of a record
        return value
    if kind is dict:
        return {key: one if type(one) in _AS_IS else to_plain(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        return {name: one if type(one) in _AS_IS else to_plain(one) for name, one in fields_of(value).items()}
    if isinstance(value, Mapping):
        return {key: to_plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(one) for one in value]
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(kind) if one.name != "extra")


@cache
def _reader(kind: Any) -> _Read:
    """The converter of one annotation."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [one for one in args if one is not type(None)]
        read = _reader(inner)
        return lambda found: None if found is None else read(found)
    if origin is tuple:
        return _sequence(args[0])
    if origin in (dict, Mapping) or kind in (dict, Mapping):
        return _mapping(args[1] if args else Any)
    if origin is not None and getattr(origin, "__name__", "") == "Mapping":
        return _mapping(args[1])
    if kind is Any or kind is object:
        return _anything
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enumeration(kind)
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast("type", kind))
    return _scalar(kind)


def _anything(found: Any) -> Any:
    return found


def _scalar(kind: Any) -> _Read:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]

    def read(found: Any) -> Any:
        if not isinstance(found, accepted) or (kind is not bool and isinstance(found, bool)):
            raise _Wrong(words, found)
        return float(typing.cast("float", found)) if kind is float else found

    return read


def _enumeration(kind: type[enum.Enum]) -> _Read:
    def read(found: Any) -> Any:
        try:
            return kind(found)
        except ValueError:
            raise _Wrong("one of " + ", ".join(str(one.value) for one in kind), found) from None

    return read


def _exact(kind: Any) -> type | None:
    """The type of which every value is right as it stands, where there is one: most fields are text and numbers, and a
    call for each was half of what it cost to read a record."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return next((_exact(one) for one in args if one is not types.NoneType), None)
    if kind in (str, int, float, bool):
        return typing.cast("type", kind)
    if getattr(origin, "__name__", "") in ("Mapping", "dict") and args[1] in (Any, object):
        return dict
    return None


def _sequence(kind: Any) -> _Read:
    inner, exact = _reader(kind), _exact(kind)

    def read(found: Any) -> Any:
        if not isinstance(found, list):
            raise _Wrong("a list", found)
        made: list[Any] = []
        for one in found:
            try:
                made.append(one if type(one) is exact else inner(one))
            except _Wrong as wrong:
                raise wrong.at(f"[{len(made)}]") from None
        return tuple(made)

    return read


def _mapping(kind: Any) -> _Read:
    inner, exact = _reader(kind), _exact(kind)

    def read(found: Any) -> Any:
        if not isinstance(found, dict):
            raise _Wrong("an object", found)
        made: dict[str, Any] = {}
        for name, one in found.items():
            try:
                made[name] = one if type(one) is exact else inner(one)
            except _Wrong as wrong:
                raise wrong.at(name) from None
        return made

    return read


@cache
def _readers(kind: type) -> dict[str, tuple[type | None, _Read]]:
    """The converters of a record's fields: built when the first one is read, for a record may hold its own kind."""
    hints = typing.get_type_hints(kind)
    return {name: (_exact(hints[name]), _reader(hints[name])) for name in _names(kind)}


def _record(kind: type) -> _Read:
    keeps_extra = any(one.name == "extra" for one in dataclasses.fields(kind))

    def read(found: Any) -> Any:
        readers = _readers(kind)
        if not isinstance(found, dict):
            raise _Wrong("an object", found)
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name, one in found.items():
            known = readers.get(name)
            if known is None:
                if name != "v":
                    extra[name] = one
            elif type(one) is known[0]:
                values[name] = one
            else:
                try:
                    values[name] = known[1](one)
                except _Wrong as wrong:
                    raise wrong.at(name) from None
        if keeps_extra and extra:
            values["extra"] = extra
        try:
            return kind(**values)
        except TypeError:
            missing = [
                one.name
                for one in dataclasses.fields(kind)
                if one.name not in values
                and one.default is dataclasses.MISSING
                and one.default_factory is dataclasses.MISSING
            ]
            raise _Wrong(f"a record with {', '.join(missing)}", found) from None

    return read


def warm(*kinds: type) -> None:
    """Build the converters of these records now, so that processes forked later need not."""
    left = list(kinds)
    seen: set[type] = set()
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        _readers(kind)
        _fields(kind)
        left += [one for hint in typing.get_type_hints(kind).values() for one in _records_in(hint)]


def _records_in(hint: Any) -> list[type]:
    """The kinds of record that an annotation names."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return [hint]
    return [one for inner in typing.get_args(hint) for one in _records_in(inner)]
