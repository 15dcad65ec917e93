"""The kinds of leaves a specification is made of.

Pydantic's own constraints stop at the first broken bound and speak its language ("Input should be less than …"). The
sentences here are an interface: `Must be between 60 and 31622400 seconds, got 30`. So each kind of leaf is one small
validator that judges type and bounds together and raises its own sentence, and describes itself for the JSON Schema.
Strict on purpose: true is not 1, "5" is not 5, 5.0 is not 5; a guess made here is a wrong number on a machine.

Every field of the models is of one class, said where the field stands: it acts (nothing is said), it is accepted and
not yet acted upon (`json_schema_extra=later()`, or `later("Gang")` for single words), it is accepted and never acted
upon (`json_schema_extra=MARKED`), or it is refused (its leaf is `refused(sentence)`). What a part says of itself holds
for everything in it.

A field's description says what it does. Type, unit, limits and default are not repeated in it: the kinds of leaves
tell them (`kind`, `unit`, `limit`), and `standing` puts them before the description in the schema and the page.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stado_like.errors import UsageError
from stado_like.job.spec import limits, units

SENTENCE: Final = "sentence"  # the type of every error whose message is already ours
STANDING: Final = "x-stado"  # where the schema says a field's class

MARKED: Final[dict[str, Any]] = {STANDING: {"class": "marked"}}
"""Accepted, checked and stored; nothing ever acts on it."""


def later(*words: str) -> dict[str, Any]:
    """Accepted, checked and stored; not yet acted upon: the field, or only these of its words."""
    return {STANDING: {"class": "acts", "later": list(words)}} if words else {STANDING: {"class": "later"}}


def wrong(sentence: str, code: str = "") -> PydanticCustomError:
    return PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence, "code": code})


def shown(value: object) -> str:
    """A value as a sentence may quote it: short, printable, with its kind where that is the mistake."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "an integer of more than 30 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        most = 60 if value[:60].isprintable() else 20  # an escaped character is six
        cut = value if len(value) <= most else value[:most] + "…"
        return f"the text {json.dumps(cut, ensure_ascii=not cut.isprintable())}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


class Leaf:
    """A validator that pydantic asks for its schema. `kind`, `unit` and `limit` are for people."""

    kind: str
    unit: str = ""
    limit: str = ""

    def __call__(self, value: Any) -> Any:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self)

    def __get_pydantic_json_schema__(self, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.schema()


class Whole(Leaf):
    """An integer from `low` to `high`, both included. `unit` is a word for the sentence: seconds, bytes."""

    kind = "integer"

    def __init__(self, bounds: tuple[int, int], unit: str = "") -> None:
        self.low, self.high = bounds
        self.unit = unit
        self.limit = f"{self.low} to {self.high}"
        self.span = f"between {self.low} and {self.high}{' ' + unit if unit else ''}"

    def __call__(self, value: Any) -> int:
        if type(value) is int and self.low <= value <= self.high:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            if self.low <= value <= self.high:
                return int(value)
            raise wrong(f"Must be {self.span}, got {shown(value)}")
        raise wrong(f"Must be an integer {self.span}, got {shown(value)}{self._meant(value)}")

    def _meant(self, value: Any) -> str:
        """`; write 7200` for "2h": files hold plain numbers, and the number is at hand."""
        if isinstance(value, float) and math.isfinite(value) and value == int(value) and abs(value) < 1 << 62:
            return f"; write {int(value)}"
        reader = {"seconds": units.duration_s, "bytes": units.size_bytes}.get(self.unit)
        if reader is None or not isinstance(value, str):
            return ""
        try:
            return f"; write {reader(value)}"
        except UsageError:
            return ""  # not a duration or size either: the sentence before says what is needed

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class WholeOrText(Whole):
    """An integer that may also be written as a text of digits; stored as the integer."""

    kind = "integer, or a text of digits"

    def __call__(self, value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        return super().__call__(value)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [super().schema(), {"type": "string", "pattern": "^[0-9]{1,18}$"}]}


class Number(Leaf):
    """A number from `low` to `high`, both included. Whole floats become integers."""

    kind = "number"

    def __init__(self, bounds: tuple[float, float], unit: str = "") -> None:
        self.low, self.high = bounds
        self.unit = unit
        self.limit = f"{self.low:g} to {self.high:g}"

    def __call__(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(f"Must be a number between {self.limit.replace(' to ', ' and ')}, got {shown(value)}")
        if not (isinstance(value, int) or math.isfinite(value)) or not self.low <= value <= self.high:
            said = f"between {self.limit.replace(' to ', ' and ')}{' ' + self.unit if self.unit else ''}"
            raise wrong(f"Must be {said}, got {shown(value)}")
        return int(value) if value == int(value) else float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


class Cores(Leaf):
    """CPU cores: a number with at most three decimals (thousandths of a core). Whole floats become integers."""

    kind = "number"
    unit = "cores"
    limit = f"0 to {limits.CORES_MAX}, in thousandths"

    def __call__(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(f"Must be a number of cores, got {shown(value)}")
        if not (isinstance(value, int) or math.isfinite(value)) or not 0 <= value <= limits.CORES_MAX:
            raise wrong(f"Must be between 0 and {limits.CORES_MAX} cores, got {shown(value)}")
        millis = round(value * 1000)
        if abs(value * 1000 - millis) > 1e-6:
            raise wrong(f"Must have at most three decimals (thousandths of a core), got {shown(value)}")
        return millis // 1000 if millis % 1000 == 0 else millis / 1000

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": 0, "maximum": limits.CORES_MAX, "multipleOf": 0.001}


class Text(Leaf):
    """A text: valid Unicode without NUL, at most `max_bytes` of UTF-8, of the form `pattern` (said by `rule`).

    `also` returns a sentence for what a pattern cannot say, or an empty text.
    """

    kind = "text"

    def __init__(
        self,
        *,
        max_bytes: int | None = None,
        pattern: str = "",
        rule: str = "",
        also: Callable[[str], str] | None = None,
        empty: bool = False,
    ) -> None:
        self.max_bytes = max_bytes
        self.pattern = re.compile(pattern) if pattern else None
        self.rule = rule
        self.also = also
        self.empty = empty
        self.limit = rule or (f"at most {max_bytes} bytes" if max_bytes is not None else "")

    def __call__(self, value: Any) -> str:
        if not isinstance(value, str):
            number = type(value) in (int, float) and abs(value) < 10**30
            hint = f'; quote it: "{value}"' if number else ""
            raise wrong(f"Must be a text, got {shown(value)}{hint}")
        if not value and not self.empty:
            raise wrong("Must not be empty")
        if "\0" in value:
            raise wrong(f"Must not contain a NUL character, has one at position {value.index(chr(0))}")
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError as bad:
            raise wrong(f"Must be valid Unicode, has half a surrogate pair at position {bad.start}") from None
        if self.max_bytes is not None and size > self.max_bytes:
            raise wrong(f"Must be at most {self.max_bytes} bytes, got {size}")
        if self.pattern is not None and self.pattern.fullmatch(value) is None:
            raise wrong(f"Must be {self.rule}, got {shown(value)}")
        if self.also is not None and (sentence := self.also(value)):
            raise wrong(sentence)
        return value if type(value) is str else str.__str__(value)

    def schema(self) -> dict[str, Any]:
        described: dict[str, Any] = {"type": "string"}
        if not self.empty:
            described["minLength"] = 1
        if self.max_bytes is not None:
            described["maxLength"] = self.max_bytes
        if self.pattern is not None:
            described["pattern"] = f"^(?:{self.pattern.pattern})$"
        return described


class OneOf(Leaf):
    """One of a few words. `names` holds other words for some of them, which are stored as those."""

    def __init__(self, words: tuple[str, ...], names: Mapping[str, str] | None = None) -> None:
        self.words = words
        self.names = dict(names or {})
        self.said = ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
        self.kind = self.said

    def __call__(self, value: Any) -> str:
        if isinstance(value, str):
            if value in self.words:
                return str(value)
            if value in self.names:
                return self.names[value]
        raise wrong(f"Must be {self.said}, got {shown(value)}{self._meant(value)}")

    def _meant(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > 60:
            return ""
        by_case = {word.lower(): word for word in self.words}
        near = get_close_matches(value.lower(), by_case, n=1)
        return f"; did you mean {by_case[near[0]]}?" if near else ""

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": [*self.words, *self.names]}


class Flag(Leaf):
    """true or false, not a word for it."""

    kind = "true or false"

    def __call__(self, value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        raise wrong(f"Must be true or false, got {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Moment(Leaf):
    """A point in time, ISO 8601 with its zone; stored in UTC, `2026-01-31T12:00:00Z`."""

    kind = "text"
    limit = "a point in time with its zone, as 2026-01-31T12:00:00Z"
    _FORM = re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
    )

    def __call__(self, value: Any) -> str:
        if not isinstance(value, str) or not self._FORM.fullmatch(value):
            raise wrong(f"Must be {self.limit}, got {shown(value)}")
        if value[-1] != "Z" and value[-6] not in "+-":
            raise wrong(f"Must be {self.limit}, got {shown(value)} without a zone; write {value}Z for UTC")
        try:
            utc = datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError) as bad:
            raise wrong(f"Must be {self.limit}, got {shown(value)}: {bad}") from None
        whole = utc.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return f"{whole}.{utc.microsecond // 1000:03}Z" if utc.microsecond >= 1000 else f"{whole}Z"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}


class Refused(Leaf):
    """A field that exists elsewhere and is refused here, except for the value that asks for nothing."""

    kind = "refused"

    def __init__(self, sentence: str, code: str = "", allowed: Any = None) -> None:
        self.sentence = sentence
        self.code = code
        self.allowed = allowed

    def __call__(self, value: Any) -> Any:
        if type(value) is type(self.allowed) and value == self.allowed:
            return value
        raise wrong(self.sentence, self.code)

    def schema(self) -> dict[str, Any]:
        return {"const": self.allowed, STANDING: {"class": "refused", "instead": self.sentence}}


def refused(sentence: str, code: str = "", *, allowed: Any = None) -> Refused:
    """`identity: Annotated[bool, refused("…", allowed=False)] = Field(default=False, description="…")`. The sentence
    says what to use instead; `code` is the error's when the specification names one.
    """
    return Refused(sentence, code, allowed)


def absolute_path(max_bytes: int = limits.PATH_MAX_BYTES) -> Text:
    return Text(max_bytes=max_bytes, pattern=r"/[\s\S]*", rule="an absolute path")
