"""Several syncs at once. A disk makes everything durable that waits when it commits, so two syncs side by side take as
long as one, and one after the other twice as long; a job needs more than a dozen.

A thread for each but the first, made and gone within the call: nothing is kept that a fork would have to mind, and
beside the milliseconds of a sync a thread costs nothing.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """A step that runs beside us. Where no thread can be made it runs when its result is asked for."""

    def __init__(self, step: Callable[[], T]) -> None:
        self._step = step
        self._made: T | None = None
        self._failed: BaseException | None = None
        self._done = False
        self._over = _thread.allocate_lock()
        self._over.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self._run()

    def _run(self) -> None:
        try:
            self._made = self._step()
        except BaseException as failed:  # raised again in the thread that asks
            self._failed = failed
        finally:
            self._done = True
            self._over.release()

    def result(self) -> T:
        """Waits for it, and raises what it raised."""
        if not self._done:
            with self._over:
                pass
        if self._failed is not None:
            raise self._failed
        return self._made  # type: ignore[return-value]  # of the step, which has returned


def together(*steps: Callable[[], None]) -> None:
    """All of them, side by side. Returns when all are over, and raises what the first of them raised."""
    begun = [Begun(step) for step in steps[1:]]
    try:
        for step in steps[:1]:
            step()
    finally:
        failed = [_failure(one) for one in begun]
    for one in failed:
        if one is not None:
            raise one


def _failure(begun: Begun[None]) -> BaseException | None:
    try:
        begun.result()
    except BaseException as failed:
        return failed
    return None


def sync_file(path: str) -> None:
    _sync(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_directory(path: str) -> None:
    _sync(path or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
