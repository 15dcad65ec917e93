"""Whole documents as people write them are taken as they stand; the stored form submitted again is identical."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stado_like.job.spec.standing import not_yet
from stado_like.job.spec.validate import read_document, validate

FOLDER = Path(__file__).resolve().parent.parent / "data" / "specifications"
NOT_YET: dict[str, list[str]] = {
    "complete": [
        "image",
        "registry_secret_ref",
        "datavolume_refs",
        "security_context",
    ],
    "one-gpu": ["image"],
    "cpu-only": ["image"],
    "gpus-of-any-shape": ["image"],
    "array-of-100": ["image"],
    "shape": ["image"],
    "groups": ["health_check", "depends_on.condition: Healthy"],
}


def read(name: str) -> dict[str, Any]:
    path = next(FOLDER.glob(f"{name}.*"))
    return read_document(path.read_bytes(), path.name)


def test_every_example_is_tried() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(NOT_YET)


@pytest.mark.parametrize("name", NOT_YET)
def test_example_is_taken_and_its_stored_form_is_itself(name: str) -> None:
    stored = validate(read(name))
    text = json.dumps(stored)
    again = validate(read_document(text, "stored.json"))
    assert json.dumps(again) == text
    assert sorted(not_yet(stored)) == sorted(NOT_YET[name])


@pytest.mark.parametrize("name", NOT_YET)
def test_what_an_example_says_is_what_is_stored(name: str) -> None:
    written = read(name)
    assert _missing(written, validate(written)) == []


def _missing(written: Any, stored: Any, at: str = "") -> list[str]:
    """Paths of the written document that are stored otherwise."""
    if isinstance(written, dict) and isinstance(stored, dict):
        return [path for key, value in written.items() for path in _missing(value, stored.get(key), f"{at}.{key}")]
    if isinstance(written, list) and isinstance(stored, list) and len(written) == len(stored):
        pairs = zip(written, stored, strict=True)
        return [path for n, (one, other) in enumerate(pairs) for path in _missing(one, other, f"{at}[{n}]")]
    return [] if written == stored else [at]
