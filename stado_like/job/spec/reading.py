"""YAML or JSON text -> a plain dictionary, or one clear refusal.

The YAML readers at hand speak YAML 1.1: `no` is False, `1:30` is 90, a date is an object, the second of two equal keys
silently wins, and nine lines of aliases become a billion strings. So the events of the parser (libyaml where it is
there) are turned into values here, in the manner of YAML 1.2: `true` and `false` only, keys are texts and stand once,
no tags, no merge keys, bounded depth and bounded aliases. JSON is held to the same rules.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from stado_like.errors import Refused
from stado_like.job.spec import limits
from stado_like.job.spec.units import size_words

DEPTH_MAX: Final = 64
ALIASES_MAX_BYTES: Final = limits.DOCUMENT_MAX_BYTES
"""What all aliases of a document may stand for when they are written out."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DIGITS_MAX: Final = 400


def read_document(source: str | bytes, what: str) -> dict[str, Any]:
    """The mapping that a YAML or JSON text holds. `what` names it in errors: `run.yaml`, `standard input`.

    Raises Refused for anything else: another encoding, control characters, too much of it, two documents, broken
    syntax. A person's YAML has at most 1 MiB; JSON, which programs write and read quickly, may be a stored form.
    """
    text = _decoded(source, what)
    if what.endswith(".json"):
        value = _json(text, what)
    elif text.lstrip().startswith("{"):  # JSON is nearly YAML, but not where it holds tabs
        try:
            value = _json(text, what)
        except _NotJson as not_json:
            _not_above(limits.DOCUMENT_MAX_BYTES, text, what)
            try:
                value = _yaml(text, what)
            except Refused as not_yaml:
                raise Refused(f"{not_json.message}; nor YAML: {not_yaml.message}", not_json.next_step) from not_yaml
    else:
        _not_above(limits.DOCUMENT_MAX_BYTES, text, what)
        value = _yaml(text, what)
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", type(None): "nothing"}.get(type(value), f"a {type(value).__name__}")
        raise Refused(f"{what} holds {kind}, not a mapping", "A specification has metadata and spec at its top.")
    return value


def _not_above(most_bytes: int, source: str | bytes, what: str) -> None:
    if len(source) > most_bytes:
        raise Refused(
            f"{what} has {size_words(len(source))}; a specification has at most {size_words(limits.DOCUMENT_MAX_BYTES)}"
            f" (as JSON {size_words(limits.STORED_MAX_BYTES)})",
            "Put data into files that the job reads.",
        )


def _decoded(source: str | bytes, what: str) -> str:
    _not_above(limits.STORED_MAX_BYTES, source, what)
    if isinstance(source, bytes):
        if source.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Refused(f"{what} is not UTF-8: it begins with the mark of UTF-16 or UTF-32", "Save it as UTF-8.")
        try:
            source = source.decode()
        except UnicodeDecodeError as bad:
            raise Refused(
                f"{what} is not UTF-8: byte {source[bad.start]:#04x} at offset {bad.start}", "Save it as UTF-8."
            ) from None
    text = source.removeprefix("\ufeff")
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        raise Refused(
            f"{what}: line {line}, column {column}: the character U+{ord(found[0]):04X} is not allowed",
            "Remove it, or write it as an escape inside double quotes.",
        )
    return text


class _NotJson(Refused):
    """The syntax is not JSON's; it may still be YAML."""


def _json(text: str, what: str) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise Refused(f"{what}: the key {_quoted(twice)} stands twice in one mapping", "Keep one of them.")
        return built

    def not_finite(word: str) -> NoReturn:
        raise Refused(f"{what}: {word} is not a number a specification can hold", "Write a finite number.")

    def number(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else not_finite(digits[:40])

    def integer(digits: str) -> int:
        return int(digits) if len(digits) <= _DIGITS_MAX else not_finite(f"an integer of {len(digits)} digits")

    too_deep = Refused(f"{what} is nested too deep", f"At most {DEPTH_MAX} levels.")
    try:
        value = json.loads(
            text, object_pairs_hook=mapping, parse_constant=not_finite, parse_float=number, parse_int=integer
        )
    except json.JSONDecodeError as bad:
        raise _NotJson(
            f"{what} is not JSON: line {bad.lineno}, column {bad.colno}: {bad.msg}", "Correct it and submit again."
        ) from None
    except RecursionError:
        raise too_deep from None
    if _is_deeper(value, DEPTH_MAX):
        raise too_deep
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Level by level: how deep the interpreter's own stack is differs between versions."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        inner = (one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer))
        level = [one for one in inner if isinstance(one, (dict, list))]
    return bool(level)


def _quoted(text: str) -> str:
    return ascii(text[:60]) if not text.isprintable() else f"`{text[:60]}`"


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    value: Any
    anchor: str | None
    weight: int = 8
    key: str | None = None


@dataclass(slots=True)
class _Builder:
    """Parser events -> values. Iterative, so that depth is a number to compare and not a stack to overflow."""

    what: str
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    from_aliases: int = 0
    documents: int = 0
    result: Any = None

    def refuse(self, event: Any, sentence: str, next_step: str = "Correct it and submit again.") -> NoReturn:
        mark = event.start_mark
        raise Refused(f"{self.what}: line {mark.line + 1}, column {mark.column + 1}: {sentence}", next_step)

    def open(self, event: Any, value: Any) -> None:
        self.no_tag(event)
        if len(self.stack) >= DEPTH_MAX:
            self.refuse(event, f"nested too deep: at most {DEPTH_MAX} levels")
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None:
            self.refuse(event, "a key must be a text, not a list or mapping")
        self.stack.append(_Open(value, event.anchor))

    def close(self, event: Any) -> None:
        done = self.stack.pop()
        self.put(event, done.value, done.weight, done.anchor)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            own = any(each.anchor == event.anchor for each in self.stack)
            self.refuse(event, f"the alias *{event.anchor} {'contains itself' if own else 'has no anchor before it'}")
        value, weight = self.anchors[event.anchor]
        self.from_aliases += weight
        if self.from_aliases > ALIASES_MAX_BYTES:
            self.refuse(
                event, f"its aliases stand for more than {size_words(ALIASES_MAX_BYTES)}", "Write what is meant."
            )
        self.put(event, value, weight, None)

    def scalar(self, event: Any) -> None:
        is_text = event.tag in ("!", "tag:yaml.org,2002:str") or not event.implicit[0]
        if event.tag != "tag:yaml.org,2002:str":
            self.no_tag(event)
        value = event.value if is_text else self.plain(event)
        self.put(event, value, len(event.value) + 8, event.anchor)

    def plain(self, event: Any) -> Any:
        """YAML 1.2's core schema: everything that is not null, a boolean or a number is a text."""
        text: str = event.value
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        if len(text) > _DIGITS_MAX:
            return text
        if _INTEGER.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
            value = float(text.replace(".inf", "inf").replace(".nan", "nan")) if _FLOAT.fullmatch(text) else math.nan
            if not math.isfinite(value):
                self.refuse(event, f"{text[:40]} is not a number a specification can hold", "Write a finite number.")
            return value
        return text

    def no_tag(self, event: Any) -> None:
        if event.tag not in (None, "!"):
            self.refuse(event, f"the tag {_quoted(event.tag)} is not read", "Write the plain value.")

    def put(self, event: Any, value: Any, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, weight)
        if not self.stack:
            self.result = value
            return
        top = self.stack[-1]
        top.weight += weight
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            top.key = self.checked_key(event, value, top.value)
        else:
            top.value[top.key] = value
            top.key = None

    def checked_key(self, event: Any, key: Any, mapping: dict[str, Any]) -> str:
        if not isinstance(key, str):
            self.refuse(event, f"a key must be a text, got {key!r:.40}", "Put it in quotes.")
        if key == "<<":
            self.refuse(event, "merge keys (<<) are not read", "Write the fields out.")
        if key in mapping:
            self.refuse(event, f"the key {_quoted(key)} stands twice in one mapping", "Keep one of them.")
        return key


def _yaml(text: str, what: str) -> Any:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(what)
    try:
        for event in yaml.parse(text, Loader=loader):
            match event:
                case yaml.ScalarEvent():
                    builder.scalar(event)
                case yaml.MappingStartEvent():
                    builder.open(event, {})
                case yaml.SequenceStartEvent():
                    builder.open(event, [])
                case yaml.CollectionEndEvent():
                    builder.close(event)
                case yaml.AliasEvent():
                    builder.alias(event)
                case yaml.DocumentStartEvent():
                    builder.documents += 1
                    if builder.documents > 1:
                        builder.refuse(event, "a second document begins", "Submit one job per file.")
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise Refused(
            f"{what} is not YAML: {place}{bad.problem or bad.context}", "Correct it and submit again."
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as bad:  # the Python parser on odd escapes
        raise Refused(f"{what} is not YAML: {bad}", "Correct it and submit again.") from None
    return builder.result
