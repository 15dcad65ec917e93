"""Asking for many objects at once, where each answer travels over a network; one after another where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from stado_like.bucket.bucket import Bucket

AT_ONCE = 16

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(bucket: Bucket, ask: Callable[[T], R], wanted: Iterable[T]) -> list[R]:
    """`ask` for each, answers in order. The first exception is raised."""
    waiting = list(wanted)
    if len(waiting) < 2 or not bucket.store.url.startswith("s3:"):
        return [ask(one) for one in waiting]
    from concurrent.futures import ThreadPoolExecutor  # not for a command that asks for one thing

    with ThreadPoolExecutor(min(AT_ONCE, len(waiting))) as pool:
        return list(pool.map(ask, waiting))
