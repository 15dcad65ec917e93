"""The door: a document as a person wrote it -> the document as it is stored, or every reason why not.

Stored is the written one with all defaults applied, so that a job means the same after an upgrade that changes a
default; it is plain JSON, and validating it again gives it back unchanged. Pydantic takes a tenth of a second to load,
so it is imported by the first validation and not by this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from stado_like.errors import InvalidSpecification
from stado_like.job.spec.reading import read_document
from stado_like.job.spec.rules import contradictions

if TYPE_CHECKING:
    from stado_like.job.spec.job import Document

__all__ = ["json_schema", "read_document", "validate"]


@cache
def _document() -> type[Document]:
    from stado_like.job.spec.job import Document

    return Document


def validate(document: Mapping[str, Any]) -> dict[str, Any]:
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
    if invalid is not None or found:
        from stado_like.job.spec.complaints import complaint

        raise complaint(invalid, found)
    return _stored(model)


def _stored(model: Document) -> dict[str, Any]:
    """Defaults that depend on other fields, and one name for what has two. None means "not asked for": left out."""
    stored = model.model_dump(exclude_none=True)
    spec = stored["spec"]
    template = spec["task_template"]
    if spec["on_failure"] == "FailJob":
        template["restart_policy"] = "Never"
    resilience = template["resilience"]
    said = model.spec.task_template.resilience.model_fields_set
    other_name = resilience.pop("max_retries_failure", None)
    if other_name is not None:
        resilience["max_restarts"] = other_name
    if "max_backoff_seconds" not in said:
        resilience["max_backoff_seconds"] = max(resilience["max_backoff_seconds"], resilience["backoff_seconds"])
    return stored


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what may be submitted, with every field's description, default and limits."""
    schema = _document().model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
