"""The words that a model is written in: a bucket at one instant, the requests of a program, rules, settings, and what
must hold.

A program is a method of a model that returns a generator. It yields one request at a time and is sent its answer. It
ends by returning None, or the name and the arguments of the program that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

Then = tuple[Any, ...] | None
"""The program that goes on, and its arguments."""
Program = Generator["Request", Any, Then]
Answer = Generator["Request", Any, bool]
"""A part of a program that finds out whether something is so."""
GHOST = "~"
"""Keys that begin so are the checker's own notes: no program may decide by them."""


class Bucket:
    """What the bucket holds at one instant: key -> value. Immutable, and equal ones are one object, so they compare by
    identity.
    """

    __slots__ = ("_known", "held", "real")

    def __init__(self, held: dict[str, str], known: dict[frozenset[tuple[str, str]], Bucket]) -> None:
        self.held = held
        self._known = known
        self.real: Bucket | None = None

    @classmethod
    def of(cls, held: dict[str, str], known: dict[frozenset[tuple[str, str]], Bucket]) -> Bucket:
        key = frozenset(held.items())
        found = known.get(key)
        if found is None:
            found = known[key] = cls(held, known)
        return found

    def __contains__(self, key: str) -> bool:
        return key in self.held

    def get(self, key: str) -> str | None:
        return self.held.get(key)

    def under(self, *prefixes: str) -> list[str]:
        return sorted(key for key in self.held if key.startswith(prefixes))

    def put(self, key: str, value: str = "") -> Bucket:
        if self.held.get(key) == value:
            return self
        return Bucket.of({**self.held, key: value}, self._known)

    def drop(self, *keys: str) -> Bucket:
        if not any(key in self.held for key in keys):
            return self
        return Bucket.of({key: value for key, value in self.held.items() if key not in keys}, self._known)

    def without_ghosts(self) -> Bucket:
        if self.real is None:
            self.real = self.drop(*self.under(GHOST))
        return self.real


class Request(NamedTuple):
    """What a program asks for. `sees`: a ghost key whose presence is added to the answer; `also`: a method of the model
    that is told in the same instant: it is given the bucket before and after, the answer, and these arguments; it
    returns the bucket with its notes, and an error; or None: not now."""

    kind: str
    key: str = ""
    value: str = ""
    keys: tuple[Any, ...] = ()
    sees: str = ""
    also: tuple[Any, ...] = ()


def stat(key: str) -> Request:
    """GET with the store's `Date`. Answer: the value or None, and store time (the key "now" of the model's world)."""
    return Request("stat", key)


def create(key: str, value: str = "", *, sees: str = "", also: tuple[Any, ...] = ()) -> Request:
    """PUT if absent. Answer: whether we won (a nonce read back makes the answer certain)."""
    return Request("create", key, value, sees=sees, also=also)


def put(key: str, value: str = "", *, sees: str = "", also: tuple[Any, ...] = ()) -> Request:
    return Request("put", key, value, sees=sees, also=also)


def drop(*keys: str, also: tuple[Any, ...] = ()) -> Request:
    """DELETE. Several keys in one request only where no reader could tell the difference."""
    return Request("drop", keys=keys, also=also)


def get(key: str) -> Request:
    """GET. Answer: the value, or None."""
    return Request("get", key)


def has(key: str, *, sees: str = "") -> Request:
    """HEAD. Answer: whether it is there."""
    return Request("has", key, sees=sees)


def pick(*prefixes: str) -> Request:
    """LIST and take one row. Answer: any key that is there. The program waits while there is none."""
    return Request("pick", keys=prefixes)


def rows(prefix: str) -> Request:
    """LIST. Answer: all keys that are there now."""
    return Request("rows", prefix)


def choose(*values: Any) -> Request:
    """Something that only this program notices: how its process ended, how long it slept. Takes no time."""
    return Request("choose", keys=values)


def tell(method: str, *arguments: Any) -> Request:
    """Something that happens outside the bucket, told to the model: a process starts, a person was given an answer."""
    return Request("tell", also=(method, *arguments))


class Rule(NamedTuple):
    """A rule of the protocol, which a model can be run without. `caught`: words of what the checker must say then."""

    name: str
    text: str
    caught: str  # several kinds, where several are right, are parted by " | "
    guard: str = ""
    """The name of its mark in the shipped code, where it has one."""
    setting: str = ""
    """Which of the model's settings shows it; any when empty."""


@dataclass(frozen=True)
class Mending:
    """Whoever comes later, knowing nothing but the bucket, must still be able to finish: `programs` alone, from a state
    where `when` holds, reach one where `done` holds."""

    programs: tuple[tuple[Any, ...], ...]
    done: Callable[[Bucket], bool]
    error: str
    when: Callable[[Bucket], bool] = lambda _: True


@dataclass(frozen=True)
class Late:
    """What the network may deliver again: how many PUTs and DELETEs, of keys that begin so."""

    puts: int = 0
    drops: int = 0
    put_keys: tuple[str, ...] = ()
    drop_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """One bounded world: who takes part, and how often."""

    name: str
    actors: str  # "worker 2, worker 1, canceller": programs and their arguments
    late: Late = Late()
    options: tuple[tuple[str, Any], ...] = ()

    def cast(self) -> list[tuple[Any, ...]]:
        words = [actor.split() for actor in self.actors.split(", ")]
        return [tuple(int(word) if word.isdigit() else word for word in actor) for actor in words]


class Model:
    """A part of the protocol. Programs are methods that return generators; `self.keeps(rule)` asks whether a rule
    stands.
    """

    name = ""
    question = ""
    rules: tuple[Rule, ...] = ()
    small: tuple[Setting, ...] = ()
    large: tuple[Setting, ...] = ()

    def __init__(self, without: str = "", setting: Setting | None = None) -> None:
        if without and without not in {rule.name for rule in self.rules}:
            raise ValueError(f"the model {self.name} has no rule {without!r}")
        self.without = without
        self.setting = setting or self.small[0]
        self.options: dict[str, Any] = dict(self.setting.options)

    def keeps(self, rule: str) -> bool:
        return rule != self.without

    def start(self) -> dict[str, str]:
        raise NotImplementedError

    def broken(self, bucket: Bucket) -> str | None:
        """An invariant of a single state that does not hold."""
        return None

    def mendings(self) -> tuple[Mending, ...]:
        return ()

    def may_go_on(self, bucket: Bucket, request: Request) -> bool:
        """Whether the world lets this request through now (an outage does not)."""
        return True

    def late_value(self, key: str, value: str) -> str:
        """What a late PUT leaves, where its lateness can be told from the object."""
        return value

    def may_arrive_late(self, bucket: Bucket, key: str) -> bool:
        return True
