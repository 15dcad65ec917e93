"""The door: a document as a person wrote it -> the document as it is stored, or every reason why not.

Stored is the written one with all defaults applied, so that a job means the same after an upgrade that changes a
default; it is plain JSON, and validating it again gives it back unchanged. Pydantic takes a tenth of a second to load,
so it is imported by the first validation and not by this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from stado_like.errors import InvalidSpecification, UsageError
from stado_like.job import blocks
from stado_like.job.spec import limits
from stado_like.job.spec.reading import read_document
from stado_like.job.spec.rules import contradictions, counted

if TYPE_CHECKING:
    from stado_like.job.spec.job import Document, Spec
    from stado_like.job.spec.task import TaskTemplate

__all__ = ["Defaults", "json_schema", "read_document", "validate"]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operators of a cluster chose for documents that say nothing. Raises `UsageError` out of bounds."""

    max_restarts: int = limits.DEFAULT_MAX_RESTARTS
    max_machine_restarts: int = limits.DEFAULT_MAX_MACHINE_RESTARTS

    def __post_init__(self) -> None:
        low, high = limits.RESTARTS
        for name, value in (
            ("max_restarts (retry_max_attempts)", self.max_restarts),
            ("max_machine_restarts (machine_restarts)", self.max_machine_restarts),
        ):
            if not low <= value <= high:
                raise UsageError(
                    f"the configured default of {name} must be between {low} and {high}, got {value}",
                    "Correct the setting; `stado config show` says where it comes from.",
                )

    @classmethod
    def of(cls, max_restarts: int | None, max_machine_restarts: int | None) -> Defaults:
        """From settings, where None is the specification's own."""
        return cls(
            limits.DEFAULT_MAX_RESTARTS if max_restarts is None else max_restarts,
            limits.DEFAULT_MAX_MACHINE_RESTARTS if max_machine_restarts is None else max_machine_restarts,
        )


PUBLISHED: Final = Defaults()


@cache
def _document() -> type[Document]:
    from stado_like.job.spec.job import Document

    return Document


def validate(document: Mapping[str, Any], defaults: Defaults | None = None) -> dict[str, Any]:
    """The stored form. Raises InvalidSpecification with one `detail` entry per wrong field, all at once."""
    if not isinstance(document, Mapping):
        raise InvalidSpecification(
            f"A specification is a mapping with metadata and spec, got a {type(document).__name__}",
            "See `stado job schema`.",
        )
    given = document if type(document) is dict else dict(document)
    from pydantic import ValidationError

    invalid: ValidationError | None = None
    try:
        model = _document().model_validate(given)
    except ValidationError as refused:
        invalid = refused
    found = contradictions(given)
    stored: dict[str, Any] = {}
    if invalid is None and not found:
        stored = _stored(model, defaults or PUBLISHED)
        found = counted(stored)
    if invalid is not None or found:
        from stado_like.job.spec.complaints import complaint

        raise complaint(invalid, found)
    return stored


def _stored(model: Document, defaults: Defaults) -> dict[str, Any]:
    """Defaults that depend on other fields, and one name for what has two. None means "not asked for": left out."""
    stored = model.model_dump(exclude_none=True)
    spec = stored["spec"]
    spec["start"], spec["on_failure"], spec["policy"] = settled(model.spec)
    if model.spec.task_groups:
        spec.setdefault("leader_group", model.spec.task_groups[0].name)
    array = spec.get("array")
    if array is not None:
        array.setdefault("size", len(array.get("indices") or array.get("entries") or ()))
        spec["array"] = _in_order(array, type(model.spec.array))
    for template, said in _templates(spec, model.spec):
        if spec["on_failure"] == "FailJob":
            template["restart_policy"] = "Never"
        elif spec["lifetime"] == "Service":
            template["restart_policy"] = "Always"
        _settle_resilience(template["resilience"], said.resilience.model_fields_set, defaults)
    if array is not None and "block" not in array and (size := blocks.default_size(spec)) > 1:
        spec["array"] = _in_order({**spec["array"], "block": size}, type(model.spec.array))
    return {**stored, "spec": _in_order(spec, type(model.spec))}


def _in_order(part: dict[str, Any], model: Any) -> dict[str, Any]:
    """As the model writes it: the stored form validated again must give the same text."""
    return {name: part[name] for name in model.model_fields if name in part}


def _templates(spec: dict[str, Any], model: Spec) -> Iterator[tuple[dict[str, Any], TaskTemplate]]:
    if model.task_template is not None:
        yield spec["task_template"], model.task_template
    for stored, group in zip(spec["task_groups"], model.task_groups, strict=True):
        yield stored["task_template"], group.task_template


def settled(spec: Spec) -> tuple[str, str, str]:
    """`start`, `on_failure` and `policy`, made to agree.

    | given                                      | start       | on_failure  |
    |--------------------------------------------|-------------|-------------|
    | neither, and no policy                     | Independent | RestartTask |
    | start: Gang only                           | Gang        | RestartJob  |
    | start: MinAvailable or Independent only    | as given    | RestartTask |
    | policy: Gang                               | Gang        | RestartJob  |
    | policy: GangIndependent                    | Gang        | RestartTask |

    Where both vocabularies speak, start and on_failure win. `policy` has no word for MinAvailable, whose tasks start
    one by one once enough are there, nor for FailJob: those are stored as the nearest, Independent and Gang.
    """
    said = spec.model_fields_set
    start, on_failure = spec.start, spec.on_failure
    if "start" not in said:
        start = "Independent" if spec.policy == "Independent" else "Gang"
    if "on_failure" not in said:
        alone = start != "Gang" or ("start" not in said and spec.policy == "GangIndependent")
        on_failure = "RestartTask" if alone else "RestartJob"
    if start != "Gang":
        return start, on_failure, "Independent"
    return start, on_failure, "GangIndependent" if on_failure == "RestartTask" else "Gang"


def _settle_resilience(stored: dict[str, Any], said: set[str], defaults: Defaults) -> None:
    other_name = stored.pop("max_retries_failure", None)
    if other_name is not None:
        stored["max_restarts"] = other_name
    elif "max_restarts" not in said:
        stored["max_restarts"] = defaults.max_restarts
    if "max_machine_restarts" not in said:
        stored["max_machine_restarts"] = defaults.max_machine_restarts
    if "max_backoff_seconds" not in said:
        stored["max_backoff_seconds"] = max(stored["max_backoff_seconds"], stored["backoff_seconds"])


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what may be submitted, with every field's description, default and limits."""
    from stado_like.job.spec.standing import described

    schema = described(_document().model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
