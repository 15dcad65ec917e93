"""A document in any state of disrepair, one value at a time.

Rules over several fields look at the document as a person wrote it, beside the models. What has the wrong type was said
already, so here it reads as None, "cannot tell", and the rule passes it over; what is left out reads as its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NOTHING: Final[Mapping[str, Any]] = {}


def part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping below; an empty one when there is none."""
    found = of.get(name)
    return found if isinstance(found, dict) else NOTHING


def entries(of: Mapping[str, Any], name: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list, with their places in it."""
    found = of.get(name)
    return [(n, each) for n, each in enumerate(found) if isinstance(each, dict)] if isinstance(found, list) else []


def texts(of: Mapping[str, Any], name: str) -> list[tuple[int, str]]:
    """The texts of a list, with their places in it."""
    found = of.get(name)
    return [(n, each) for n, each in enumerate(found) if isinstance(each, str)] if isinstance(found, list) else []


def whole(of: Mapping[str, Any], name: str, default: int = 0, bounds: tuple[int, int] | None = None) -> int | None:
    """An integer within its bounds; its default when left out or null; None when it is anything else."""
    found = of.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if bounds is None or bounds[0] <= found <= bounds[1] else None


def word(of: Mapping[str, Any], name: str, default: str) -> str | None:
    """A text; its default when left out or null; None when it is anything else."""
    found = of.get(name)
    if found is None:
        return default
    return found if isinstance(found, str) else None


def bytes_of(text: str) -> int:
    """Bytes of UTF-8, also of a text that has half a surrogate pair."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
