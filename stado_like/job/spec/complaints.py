"""What is wrong with a document, as one sentence per path.

Pydantic reports where it stopped; a person needs the path as the specification writes it (`task_template.args[3]`,
below `spec` without that word; `metadata.name` with its word) and, for a field that does not exist, the one that was
probably meant: a near spelling, the same name at another place, or a field that this version does not have yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError

from stado_like.errors import InvalidSpecification
from stado_like.job.spec.fields import SENTENCE, Refused, shown
from stado_like.job.spec.job import Document

MOST: Final = 200  # of a hundred thousand wrong fields nobody reads more, and each sentence costs a search
SENTENCE_MAX: Final = 1_000  # it may name what the document holds, all of it
_KEY = "[key]"  # pydantic's last step when the key of a map is wrong, not its value


def complaint(invalid: ValidationError | None, contradictions: Mapping[str, str]) -> InvalidSpecification:
    """The one error a submitter sees: every wrong field, unknown ones included."""
    errors: Sequence[Any] = invalid.errors(include_url=False) if invalid else ()
    unknown = any(error["type"] == "extra_forbidden" for error in errors)
    named = next((code for error in errors if (code := error.get("ctx", {}).get("code"))), None)
    detail: dict[str, str] = {}
    for error in islice(errors, MOST):
        loc = error["loc"]
        if error["type"] == "invalid_key":
            loc = (*loc[:-1], str(loc[-1]))
        _add(detail, path_of(loc), _sentence(error))
    for where, sentence in islice(contradictions.items(), MOST):
        if where not in detail:
            detail[path_of_text(where)] = sentence
    left = max(0, len(errors) - MOST) + max(0, len(contradictions) - MOST)
    if left:
        detail["…"] = f"and {left} more"
    return InvalidSpecification(
        "Failed to validate object",
        "Correct the fields named and submit again; `stado job schema` prints every field.",
        detail={where: printable(sentence, SENTENCE_MAX) for where, sentence in detail.items()},
        code="UNKNOWN_FIELD" if unknown else named,
    )


def _add(detail: dict[str, str], where: str, sentence: str) -> None:
    detail[where] = f"{detail[where]}; {sentence}" if where in detail else sentence


def path_of_text(part: str) -> str:
    """A name as a path may show it: printable and short, whatever the document held."""
    return printable(part, 120)


def printable(text: str, most: int) -> str:
    cut = text if len(text) <= most else text[:most] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def path_of(loc: Sequence[int | str]) -> str:
    """`("spec", "task_template", "args", 3)` -> `task_template.args[3]`."""
    steps = list(loc)
    if len(steps) > 1 and steps[-1] == _KEY:
        steps[-2:] = [str(steps[-2])]
    if len(steps) > 1 and steps[0] == "spec":
        del steps[0]
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f"{'.' if text else ''}{path_of_text(str(step))}"
    return text


def _sentence(error: Mapping[str, Any]) -> str:
    kind, value = error["type"], error["input"]
    if kind == SENTENCE:
        return str(error["msg"])
    if kind == "missing":
        return "Required"
    if kind == "extra_forbidden":
        return _unknown(error["loc"])
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return f"Must be a mapping, got {shown(value)}"
    if kind == "list_type":
        return f"Must be a list, got {shown(value)}"
    if kind == "too_long":
        return f"Must have at most {error['ctx']['max_length']} entries, got {len(value)}"
    if kind == "too_short":
        return f"Must have at least {error['ctx']['min_length']} entry, got {len(value)}"
    if kind == "string_unicode":
        return f"A field's name must be valid Unicode, got {shown(value)}"
    if kind == "invalid_key":
        return f"A field's name must be a text, got {shown(value)}"
    return f"{error['msg']}, got {shown(value)}"


def parts() -> dict[tuple[str, ...], type[BaseModel]]:
    """Every model of the document by its place: `("spec", "array") -> Array`, `("spec", "task_groups[]") -> Group`."""
    found: dict[tuple[str, ...], type[BaseModel]] = {}

    def visit(at: tuple[str, ...], model: type[BaseModel]) -> None:
        found[at] = model
        for name, field in model.model_fields.items():
            for kind, listed in _models_of(field.annotation):
                visit((*at, f"{name}[]" if listed else name), kind)

    visit((), Document)
    return found


def _models_of(annotation: Any, listed: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, listed
    for inner in get_args(annotation):
        yield from _models_of(inner, listed or get_origin(annotation) is list)


def place_of(loc: Sequence[int | str]) -> tuple[str, ...]:
    """Where a path leads among the parts: `("spec", "task_groups", 1)` -> `("spec", "task_groups[]")`."""
    place: list[str] = []
    for step in loc:
        if isinstance(step, int) and place:
            place[-1] += "[]"
        else:
            place.append(str(step))
    return tuple(place)


_A_SLIP: Final = 0.85  # as alike as `model` and `models`: a misspelling, whatever that name means elsewhere
_MOST_PLACES: Final = 3  # a name that stands at more places (`name`, `count`) says nothing about what was meant


def _unknown(loc: Sequence[int | str]) -> str:
    known = parts()
    name = str(loc[-1])
    here = place_of(loc[:-1])
    model = known.get(here)
    if model is None or len(name) > 100:
        return "Unknown field"
    near = get_close_matches(name, model.model_fields, n=1)
    if near and SequenceMatcher(None, name, near[0]).ratio() >= _A_SLIP:
        return f"Unknown field; did you mean {near[0]}?"
    elsewhere = [at for at, other in known.items() if _takes(other, name) and _same_template(here, at)]
    depth = min((len(at) for at in elsewhere), default=0)
    nearest = [at for at in elsewhere if len(at) == depth]
    if nearest and len(nearest) <= _MOST_PLACES:
        # At the top the path must say "spec", or it would read like the one that is refused.
        shown_at = [".".join((*at, name)) if len(loc) == 1 else path_of((*at, name)) for at in nearest]
        return f"Unknown field here; it belongs at {' or '.join(shown_at)}"
    return f"Unknown field; did you mean {near[0]}?" if near else "Unknown field"


def _takes(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is not None and not any(isinstance(leaf, Refused) for leaf in field.metadata)


def _same_template(here: tuple[str, ...], at: tuple[str, ...]) -> bool:
    """A group's template has the same fields as the job's: only the one that the writer is in, or may be, is named."""
    group = ("spec", "task_groups[]")
    return at[:2] != group or len(at) == 2 or here[:2] == group
