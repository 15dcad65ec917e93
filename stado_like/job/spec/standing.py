"""What each field of the specification is: its kind and bounds, and whether anything acts upon it.

A document is accepted whole, also where the machinery for a part of it is not built: so somebody must be able to say,
of this document, what will not happen. The models say it field by field; here it is read off them, once for the line
that `submit` prints (`not_yet`), once for the page and the schema (`classes`, `lead`). Nothing is written down twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from stado_like.job.spec.fields import STANDING, Leaf, OneOf, Refused
from stado_like.job.spec.job import Document

ACTS, LATER, KEPT, REFUSED = "acts", "later", "marked", "refused"
CLASSES: Final = (ACTS, LATER, KEPT, REFUSED)


@dataclass(frozen=True, slots=True)
class Standing:
    """One field. `path` as the document is nested, without `spec` and with `[]` for each of a list; `later` are words
    of an acting field that are not yet acted upon; `instead` is what a refusal says.
    """

    path: str
    name: str
    cls: str
    later: tuple[str, ...]
    type: str
    unit: str
    limit: str
    default: str
    description: str
    instead: str = ""
    part: bool = False


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an annotation stands for: a leaf, or a part; alone, in a list, or as the values of a map."""

    leaf: Leaf | None = None
    model: type[BaseModel] | None = None
    holder: str = ""
    keys: Leaf | None = None

    @property
    def type(self) -> str:
        inner = "mapping" if self.model else self.leaf.kind if self.leaf else "anything"
        if self.holder == "map":
            return f"map of text to {inner}"
        return (
            f"list of {inner}s" if self.holder and inner in ("mapping", "text", "integer") else f"{self.holder}{inner}"
        )

    @property
    def limit(self) -> str:
        each = self.leaf.limit if self.leaf else ""
        if not self.holder:
            return each
        said = [f"names: {self.keys.limit}"] if self.keys and self.keys.limit else []
        return "; ".join([*said, *([f"each: {each}"] if each else [])])


def _kind_of(annotation: Any, metadata: tuple[Any, ...] | list[Any] = ()) -> _Kind:
    leaf = next((one for one in metadata if isinstance(one, Leaf)), None)
    if leaf is not None:
        return _Kind(leaf=leaf)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _Kind(model=annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind_of(inner[0], inner[1:])
    if origin is list:
        one = _kind_of(inner[0])
        return _Kind(one.leaf, one.model, "list of ")
    if origin is dict:
        return _Kind(_kind_of(inner[1]).leaf, None, "map", _kind_of(inner[0]).leaf)
    kinds = [_kind_of(each) for each in inner if each is not NoneType]
    return kinds[0] if kinds else _Kind()


@dataclass(frozen=True, slots=True)
class _Field:
    """A field where it stands: `above` is the class that the part around it says for everything in it."""

    name: str
    info: FieldInfo
    kind: _Kind
    above: str

    @property
    def said(self) -> Mapping[str, Any]:
        extra = self.info.json_schema_extra
        said = extra.get(STANDING) if isinstance(extra, dict) else None
        return said if isinstance(said, dict) else {}

    @property
    def own(self) -> str:
        if isinstance(self.kind.leaf, Refused):
            return REFUSED
        return str(self.said.get("class") or self.above)

    @property
    def cls(self) -> str:
        """A part's class is that of everything in it; a part of several kinds acts."""
        if self.kind.model is None:
            return self.own
        found = {each.cls for each in _fields(self.kind.model, self.own)}
        return found.pop() if len(found) == 1 else ACTS

    @property
    def later(self) -> tuple[str, ...]:
        return tuple(str(word) for word in self.said.get("later", ()))

    def default(self) -> Any:
        """In its stored form; pydantic's word for nothing where there is none."""
        value = self.info.get_default(call_default_factory=True, validated_data={})
        return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value


@cache
def _fields(model: type[BaseModel], above: str) -> tuple[_Field, ...]:
    return tuple(
        _Field(name, info, _kind_of(info.annotation, info.metadata), above) for name, info in model.model_fields.items()
    )


# ---- the page and the schema


def classes() -> list[Standing]:
    """Every field of the specification, in the order of the models. A group's template is the job's: it stands once."""
    return list(_listed(Document, "", ACTS))


def _listed(model: type[BaseModel], path: str, above: str) -> Iterator[Standing]:
    for field in _fields(model, above):
        inner = field.kind.model
        at = f"{path}.{field.name}" if path else field.name
        at = at.removeprefix("spec.")
        yield _standing(field, at)
        if inner is not None and at != "task_groups[].task_template":
            yield from _listed(inner, f"{at}[]" if field.kind.holder else at, field.own)


def _standing(field: _Field, path: str) -> Standing:
    leaf = field.kind.leaf
    limits = [f"at most {each.max_length}" for each in field.info.metadata if hasattr(each, "max_length")]
    limits += [field.kind.limit] if field.kind.limit else []
    return Standing(
        path=path,
        name=field.name,
        cls=field.cls,
        later=field.later,
        type=field.kind.type,
        unit=leaf.unit if leaf else "",
        limit="; ".join(limits),
        default=_default_text(field),
        description=field.info.description or "",
        instead=leaf.sentence if isinstance(leaf, Refused) else "",
        part=field.kind.model is not None,
    )


def _default_text(field: _Field) -> str:
    if field.info.is_required():
        return "required"
    value = field.default()
    if value is None:
        return "none"
    return "its own" if field.kind.model is not None and not field.kind.holder else _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_PLAIN_WORDS: Final = ("integer", "integer,", "number", "text", "true", "list", "map", "mapping", "anything")


def lead(one: Standing) -> str:
    """`Integer, seconds, 60 to 31622400, default none.`: what stands before a field's description."""
    kind = one.type.capitalize() if one.type.partition(" ")[0] in _PLAIN_WORDS else one.type
    default = one.default if one.default == "required" else f"default {one.default}"
    if one.cls == REFUSED:
        return f"Refused: {one.instead}."
    return ", ".join(part for part in (kind, one.unit, one.limit, default) if part) + "."


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema with every field's class, and its description with what `lead` says."""
    parts: dict[str, dict[str, Any]] = {Document.__name__: schema, **schema.get("$defs", {})}
    seen: set[str] = set()

    def visit(model: type[BaseModel], above: str) -> None:
        if model.__name__ in seen:
            return
        seen.add(model.__name__)
        for field in _fields(model, above):
            one = _standing(field, field.name)
            shown = parts[model.__name__]["properties"][field.name]
            shown["description"] = f"{lead(one)} {one.description}"
            shown[STANDING] = {"class": one.cls, **({"later": list(one.later)} if one.later else {})}
            if field.kind.model is not None:
                visit(field.kind.model, field.own)

    visit(Document, ACTS)
    return schema


# ---- one document


def not_yet(stored: Mapping[str, Any]) -> list[str]:
    """What this document asks for and nothing acts upon yet: `health_check`, `isolation: sandbox`. Paths are as people
    write them below `spec`, without the template's or the group's name before them, each once.
    """
    return list(dict.fromkeys(shown for shown in _asked(Document, stored, "", ACTS)))


def _asked(model: type[BaseModel], part: Mapping[str, Any], path: str, above: str) -> Iterator[str]:
    for field in _fields(model, above):
        value = part.get(field.name)
        if value is None or field.cls in (KEPT, REFUSED):
            continue
        at = _below(f"{path}.{field.name}" if path else field.name)
        if field.kind.model is None:
            if (field.cls == LATER and value != field.default()) or value in field.later:
                yield f"{at}: {value}" if isinstance(field.kind.leaf, OneOf) and not field.kind.holder else at
        elif field.cls == LATER and not _holds_one_part(field.kind.model):
            if _says_something(field, value):
                yield at
        else:
            for one in value if field.kind.holder else [value]:
                yield from _asked(field.kind.model, one, at, field.own)


def _holds_one_part(model: type[BaseModel]) -> bool:
    """`network` is nothing but `network.egress`: the inner name says more."""
    inner = _fields(model, ACTS)
    return len(inner) == 1 and inner[0].kind.model is not None


def _below(path: str) -> str:
    for prefix in ("spec", "task_template", "task_groups"):
        if path == prefix:
            return ""
    return path


def _says_something(field: _Field, value: Any) -> bool:
    """Whether a part says more than its defaults do; one with a required field always does."""
    if field.kind.holder:
        return bool(value)
    assert field.kind.model is not None
    return bool(value != _all_defaults(field.kind.model))


@cache
def _all_defaults(model: type[BaseModel]) -> dict[str, Any] | None:
    if any(info.is_required() for info in model.model_fields.values()):
        return None
    return model().model_dump(exclude_none=True)
