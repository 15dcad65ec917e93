"""A bundle on its way to the store: lost answers, halves, old ones, and what is not what its name says."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from stado_like.bundle.archive import Packed, pack
from stado_like.bundle.upload import OLD_S, TRIES, keep, upload
from stado_like.errors import NotFound, Refused, StoreUnavailable
from stado_like.job import keys
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Unknown, Write
from tests.builders_jobs import Clock


class Lossy(MemoryStore):
    """Loses the answers of the first `lost` writes; `lands`: whether those were carried out all the same."""

    lost = 0
    lands = False
    sent = 0

    def put_file(self, key: str, file: BinaryIO) -> Write:
        self.sent += 1
        if self.lost:
            self.lost -= 1
            file.read(1000)
            if self.lands:
                super().put_file(key, file)
            return Unknown("connection reset", retry_after_s=0.0)
        return super().put_file(key, file)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock, tmp_path: Path) -> Lossy:
    return Lossy(str(tmp_path), clock)


@pytest.fixture
def packed(tmp_path: Path) -> Iterator[Packed]:
    (tmp_path / "f").mkdir()
    (tmp_path / "f/a").write_bytes(bytes(range(256)) * 20)
    with pack(tmp_path / "f") as made:
        yield made


def lies_there(store: Lossy, packed: Packed) -> bool:
    found = store.get(keys.bundle(packed.digest))
    return found is not None and hashlib.sha256(found.body).hexdigest() == packed.digest


@pytest.mark.parametrize("lands", [False, True])
def test_a_lost_answer_is_asked_for_again(store: Lossy, clock: Clock, packed: Packed, lands: bool) -> None:
    store.lost, store.lands = TRIES - 1, lands
    told: list[tuple[int, int]] = []
    assert upload(store, packed, lambda done, whole: told.append((done, whole)), ambient=clock)
    assert lies_there(store, packed) and store.sent == TRIES
    assert told[-1] == (packed.size_bytes, packed.size_bytes)
    assert len(clock.slept_s) == TRIES - 1


def test_a_store_that_never_answers_is_said(store: Lossy, clock: Clock, packed: Packed) -> None:
    store.lost = 99
    with pytest.raises(StoreUnavailable, match=r"could not be sent in 4 tries; last: connection reset"):
        upload(store, packed, ambient=clock)


def test_what_is_there_is_not_sent_and_what_is_old_or_half_is(store: Lossy, clock: Clock, packed: Packed) -> None:
    assert upload(store, packed, ambient=clock) and not upload(store, packed, ambient=clock)
    clock.now_s += OLD_S - 1
    assert not upload(store, packed, ambient=clock)
    clock.now_s += 2
    assert upload(store, packed, ambient=clock)
    assert not upload(store, packed, ambient=clock)
    store.put(keys.bundle(packed.digest), b"half")
    assert upload(store, packed, ambient=clock) and lies_there(store, packed)


def test_keep_makes_an_old_one_young_and_leaves_a_young_one_alone(store: Lossy, clock: Clock, packed: Packed) -> None:
    with pytest.raises(NotFound, match="is not in the store any more"):
        keep(store, packed.digest, ambient=clock)
    upload(store, packed, ambient=clock)
    keep(store, packed.digest, ambient=clock)
    assert store.sent == 1
    clock.now_s += OLD_S + 1
    keep(store, packed.digest, ambient=clock)
    stat = store.head(keys.bundle(packed.digest))
    assert stat is not None and stat.last_modified == clock.now_s and lies_there(store, packed)


def test_keep_does_not_make_young_what_is_not_what_its_name_says(store: Lossy, clock: Clock, packed: Packed) -> None:
    store.put(keys.bundle(packed.digest), b"another body")
    clock.now_s += OLD_S + 1
    with pytest.raises(Refused, match="is not what its name says"):
        keep(store, packed.digest, ambient=clock)
    assert store.sent == 0


def test_what_is_in_the_archive_stays_what_it_was(tmp_path: Path) -> None:
    """Bytes before compression, pinned: whoever changes them gives every bundle another name, and sends all again."""
    (tmp_path / "f/sub/empty").mkdir(parents=True)
    (tmp_path / "f/a.txt").write_text("hello\n")
    (tmp_path / "f/run").write_text("#!/bin/sh\n")
    (tmp_path / "f/run").chmod(0o755)
    (tmp_path / "f/link").symlink_to("sub/../a.txt")
    with pack(tmp_path / "f") as packed:
        packed.archive.seek(0)
        plain = gzip.decompress(packed.archive.read())
    assert hashlib.sha256(plain).hexdigest()[:16] == "ad3868b2afe526db"
