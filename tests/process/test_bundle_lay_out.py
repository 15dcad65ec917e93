"""A worker's cache of bundles: fetched once, checked each time, bounded, shared by supervisors; stops and outages."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stado_like.bucket.bucket import Bucket
from stado_like.bundle import limits
from stado_like.bundle.archive import pack
from stado_like.bundle.upload import upload
from stado_like.errors import CredentialsRefused, StoreUnavailable
from stado_like.job import keys
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.url import open_store
from stado_worker import bundles
from stado_worker.bundles import BundleMissing, BundleRefused, Room, lay_out
from stado_worker.shim.preparing import GivenUp
from tests.builders_jobs import Clock

ROOM = Room(most_bytes=1 << 30, cache_bytes=1 << 30)


class Bench:
    """A store, a cache, and what was said."""

    def __init__(self, place: Path, store: Any = None) -> None:
        self.place = place
        self.meter = Meter()
        clock = Clock()
        self.inner = store or MemoryStore(clock.token() + str(place), clock)
        self.bucket = Bucket(MeteredStore(self.inner, self.meter))
        self.cache = place / "cache"
        self.said: list[str] = []
        self.paused: list[float] = []
        self.stop_after = 10**9
        self.targets = 0

    def send(self, name: str, size_bytes: int = 10) -> str:
        folder = self.place / "sources" / name
        folder.mkdir(parents=True)
        (folder / name).write_bytes(os.urandom(size_bytes))
        with pack(folder) as packed:
            upload(self.inner, packed)
            return packed.digest

    def pause(self, seconds: float) -> bool:
        self.paused.append(seconds)
        return len(self.paused) >= self.stop_after

    def lay_out(self, digest: str, room: Room = ROOM) -> Path:
        self.targets += 1
        target = self.place / f"target-{self.targets}"
        lay_out(self.bucket, digest, self.cache, target, self.said.append, self.pause, room=room)
        return target

    @property
    def kept(self) -> set[str]:
        return {name for name in os.listdir(self.cache) if not name.startswith(".lock")}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_it_is_fetched_once_and_laid_out_for_each_attempt(bench: Bench) -> None:
    digest = bench.send("a", 5000)
    first = bench.lay_out(digest)
    (first / "a").write_text("an attempt may do as it likes")
    asked = bench.meter.snapshot()
    second = bench.lay_out(digest)
    assert (second / "a").stat().st_size == 5000
    assert (bench.meter.snapshot() - asked).total == 0
    assert asked.counts == {"head": 1, "get": 1}
    assert bench.said == [f"Looking for the bundle {digest[:12]}", f"Fetching the bundle {digest[:12]} (5.1 KiB)"][1:]
    assert bench.kept == {digest}


def test_a_large_one_comes_in_pieces(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "PIECE_BYTES", 1000)
    digest = bench.send("a", 9500)
    bench.lay_out(digest)
    assert bench.meter.snapshot()["get"] == 10


def test_one_that_is_gone_spends_nothing_and_says_so(bench: Bench) -> None:
    with pytest.raises(BundleMissing) as gone:
        bench.lay_out("0f" * 32)
    assert gone.value.message == "bundle 0f0f0f0f0f0f is not in the store: submit again with --workdir"
    assert bench.kept == set() and not (bench.place / "target-1").exists()


def test_what_is_not_what_its_name_says_is_refused_and_not_kept(bench: Bench) -> None:
    bench.inner.put(keys.bundle("0f" * 32), gzip.compress(b"something else"))
    with pytest.raises(BundleRefused, match="Bundle 0f0f0f0f0f0f is not what its name says"):
        bench.lay_out("0f" * 32)
    assert bench.kept == set()


def test_a_bad_archive_under_its_right_name(bench: Bench) -> None:
    import hashlib

    body = gzip.compress(b"x" * 3000)
    digest = hashlib.sha256(body).hexdigest()
    bench.inner.put(keys.bundle(digest), body)
    with pytest.raises(
        BundleRefused, match=f"Bundle {digest[:12]} was not laid out: it is no archive that can be read"
    ):
        bench.lay_out(digest)


def test_a_cache_that_lost_a_bit_costs_a_download_and_no_wrong_run(bench: Bench) -> None:
    digest = bench.send("a", 5000)
    bench.lay_out(digest)
    kept = bench.cache / digest
    body = bytearray(kept.read_bytes())
    body[2500] ^= 1
    kept.write_bytes(body)
    assert (bench.lay_out(digest) / "a").stat().st_size == 5000
    assert bench.meter.snapshot()["get"] == 2


def test_more_than_this_machine_takes(bench: Bench) -> None:
    digest = bench.send("a", 50_000)
    with pytest.raises(
        BundleRefused, match=r"unpacks to more than 40\.0 KiB, the most on this machine \(setting bundle_m"
    ):
        bench.lay_out(digest, Room(40 << 10, 1 << 30))
    assert not any((bench.place / "target-1").iterdir())


def test_far_too_much_is_not_even_fetched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = bench.send("a", 50_000)
    monkeypatch.setattr(bundles, "ENVELOPE_BYTES", 0)
    with pytest.raises(BundleRefused, match="and this machine takes"):
        bench.lay_out(digest, Room(40 << 10, 1 << 30))
    assert bench.meter.snapshot()["get"] == 0


def test_what_was_longest_unused_goes_first(bench: Bench) -> None:
    a, b, c = (bench.send(name, 10_000) for name in "abc")
    room = Room(1 << 30, 25_000)
    for digest, used_at in ((a, 100), (b, 200)):
        bench.lay_out(digest, room)
        os.utime(bench.cache / digest, (used_at, used_at))
    bench.lay_out(a, room)  # used again, so `b` is the older one now
    bench.lay_out(c, room)
    assert bench.kept == {a, c}


def test_one_larger_than_the_cache_is_used_and_not_kept(bench: Bench) -> None:
    digest = bench.send("a", 10_000)
    target = bench.lay_out(digest, Room(1 << 30, 5_000))
    assert (target / "a").stat().st_size == 10_000 and bench.kept == set()


def test_what_a_killed_supervisor_left_goes_after_a_day(bench: Bench) -> None:
    bench.cache.mkdir()
    for name, written_at in ((".part.1.a", 1_000), (".part.2.b", 200_000)):
        (bench.cache / name).write_text("")
        os.utime(bench.cache / name, (written_at, written_at))
    digest = bench.send("a")
    bench.lay_out(digest)
    assert ".part.1.a" not in bench.kept


class Away(MemoryStore):
    """Does not answer while `away` is above zero."""

    away = 0
    error: Callable[[], Exception] = staticmethod(lambda: StoreUnavailable("the store rests", ""))

    def head(self, key: str) -> Any:
        if self.away:
            self.away -= 1
            raise self.error()
        return super().head(key)

    get_range_away = 0

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        if self.get_range_away:
            self.get_range_away -= 1
            raise self.error()
        return super().get_range(key, start, size_bytes)


def test_an_outage_is_waited_for_and_said(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Away(str(tmp_path), Clock()))
    digest = bench.send("a", 5000)
    bench.inner.away = bench.inner.get_range_away = 2
    assert (bench.lay_out(digest) / "a").exists()
    away = f"The bundle {digest[:12]} cannot be fetched yet: the store rests"
    fetching = f"Fetching the bundle {digest[:12]} (5.1 KiB)"
    assert bench.said == [away, away, f"Looking for the bundle {digest[:12]}", fetching, away, away, fetching]
    assert [pause for pause in bench.paused if pause] == [0.5, 1.0, 0.5, 1.0]


def test_refused_credentials_are_no_outage(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Away(str(tmp_path), Clock()))
    digest = bench.send("a")
    bench.inner.error = lambda: CredentialsRefused("no", "")
    bench.inner.away = 1
    with pytest.raises(CredentialsRefused):
        bench.lay_out(digest)


def test_a_stop_ends_an_outage_a_download_and_a_laying_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "PIECE_BYTES", 1000)
    bench = Bench(tmp_path, Away(str(tmp_path), Clock()))
    digest = bench.send("a", 10 << 20)
    bench.inner.away = 10**9
    for stop_after, away in ((3, 10**9), (5, 0)):
        bench.inner.away, bench.stop_after = away, stop_after
        bench.paused.clear()
        with pytest.raises(GivenUp):
            bench.lay_out(digest)
        assert len(bench.paused) == stop_after and bench.kept == set()
    monkeypatch.setattr(bundles, "PIECE_BYTES", limits.PIECE_BYTES)
    bench.stop_after = 10**9
    bench.lay_out(digest)
    bench.paused.clear()
    bench.stop_after = 2
    with pytest.raises(GivenUp):
        bench.lay_out(digest)
    assert list((tmp_path / f"target-{bench.targets}").iterdir()) == [] and bench.kept == {digest}


def test_two_at_once_fetch_once_and_neither_waits_for_ever(bench: Bench) -> None:
    digest = bench.send("a", 200_000)
    line = threading.Barrier(4)

    def one(n: int) -> int:
        line.wait(10)
        target = bench.place / f"t{n}"
        rest = threading.Event()
        lay_out(bench.bucket, digest, bench.cache, target, lambda _: None, rest.wait, room=ROOM)
        return (target / "a").stat().st_size

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [200_000] * 4
    assert bench.meter.snapshot()["get"] == 1 and bench.kept == {digest}


def test_whoever_waits_for_anothers_download_says_so_and_can_be_stopped(bench: Bench) -> None:
    digest = bench.send("a")
    bench.cache.mkdir()
    held = bundles._Cache(bench.cache, bench.bucket).lock(digest)
    assert held is not None
    bench.stop_after = 3
    with pytest.raises(GivenUp):
        bench.lay_out(digest)
    os.close(held)
    assert bench.said == [f"Waiting for the bundle {digest[:12]}, which another task fetches"]
    bench.stop_after = 10**9
    bench.lay_out(digest)


@pytest.mark.serial
def test_a_supervisor_that_dies_in_a_download_leaves_no_lock_and_no_half(tmp_path: Path) -> None:
    """Killed after the first piece: the next one fetches it whole."""
    url = f"file://{tmp_path}/store?durable=0"
    bench = Bench(tmp_path, open_store(url))
    digest = bench.send("a", 500_000)
    program = f"""
import os, signal
from pathlib import Path
from stado_like.bucket.bucket import Bucket
from stado_like.store.url import open_store
from stado_worker import bundles
bundles.PIECE_BYTES = 1000
def pause(seconds):
    os.kill(os.getpid(), signal.SIGKILL)
room = bundles.Room(1 << 30, 1 << 30)
bundles.lay_out(Bucket(open_store({url!r})), {digest!r}, Path({str(bench.cache)!r}), Path({str(tmp_path / "t")!r}),
                lambda text: None, pause, room=room)
"""
    died = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert died.returncode == -9, died.stderr
    assert len(bench.kept) == 1 and digest not in bench.kept
    assert (bench.lay_out(digest) / "a").stat().st_size == 500_000


def test_limits_come_from_the_settings(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_BUNDLE_MAX", "1KiB")
    digest = bench.send("a", 5000)
    with pytest.raises(BundleRefused, match=r"1\.0 KiB"):
        lay_out(bench.bucket, digest, bench.cache, bench.place / "t", bench.said.append, bench.pause)


def test_a_settings_file_that_broke_meanwhile_fails_no_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Room.here() == Room(512 << 20, 4 << 30)
    broken = Path.home() / ".config/stado/config.toml"
    broken.parent.mkdir(parents=True)
    broken.write_text("bundle_max = ")
    monkeypatch.setenv("STADO_BUNDLE_CACHE", "1GiB")
    assert Room.here() == Room(512 << 20, 4 << 30)
    broken.write_text('bundle_max = "1.5 GB"')
    assert Room.here() == Room(1_500_000_000, 1 << 30)
