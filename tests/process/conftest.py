"""Rigs for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.rig import Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A store and state directories of this test's own."""
    with make_rig(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig with one worker `w1`, for the tests of one file that do not touch the worker itself."""
    with make_rig(tmp_path_factory.mktemp("rig")) as made:
        made.worker("w1", "--cpus", "8", "--memory", "8GiB")
        yield made
