"""Kinds of rows that several parts of a template share: places, names, words of a list."""

from __future__ import annotations

from typing import Any

from tests.pure.spec_rows import ABSENT, Row, text

TEMPLATE = "spec.task_template"
NOT_LISTS: tuple[Any, ...] = ("x", 5, True, None, {}, [None], [5], [[]], ("a",))

CLIMBING = ("/a/../b", "/..", "/a/..")
PLACES = ("/data", "/a b/ü", "/a..b/c", "/a/", "/" + "a" * 4094)
NO_PLACES = ("", "data", "./data", "/", "//", "/.", *CLIMBING, "/" + "a" * 4095)
INSIDE = ("a", "a/b", ".", "a..b", "ü")
OUTSIDE = ("", "/a", "..", "a/../b", "a" * 4096)
JOB_PLACES = ("/ckpt", "ckpt", "./a/b", "a..b")
NO_JOB_PLACES = ("", "/", ".", "..", "../a", "a/../b", "/a/..", "a" * 4096)
NAMES = ("hf-token", "a", "A_9.b", "9", "a" * 253)
NO_NAMES = ("", "-a", ".a", "a b", "a/b", "é", "a\n", "a" * 254)


def place(path: str, default: Any, **more: Any) -> Row:
    return text(path, default, PLACES, NO_PLACES, **more)


def name(path: str, default: Any, **more: Any) -> Row:
    return text(path, default, NAMES, NO_NAMES, **more)


def one_of(path: str, default: Any, *words: str, refuses: tuple[Any, ...] = (), **more: Any) -> Row:
    wrong: tuple[Any, ...] = ("", "x", words[0].swapcase(), 1, True, [], {}, *refuses)
    return Row(path, default, words, wrong if default is ABSENT else (*wrong, None), **more)


def listed(path: str, accepts: tuple[Any, ...], refuses: tuple[Any, ...], **more: Any) -> Row:
    return Row(path, [], ([], *accepts), (*refuses, *NOT_LISTS), **more)


def only(path: str, value: Any, *refuses: Any) -> Row:
    """A field that only takes what asks for nothing."""
    return Row(path, ABSENT if value is None else value, (ABSENT if value is None else value,), refuses)
