"""Real processes on a real directory: the resident coordinator holds the lock only while it ticks, is refused while
another does, and what a kill leaves is taken over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from stado_coordinator.lock import Lock
from stado_coordinator.tick import Tick
from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.tick_report import last_tick_at, read_report
from stado_like.errors import TickHeld
from stado_like.job import codec, keys
from stado_like.job.records import TickLock
from stado_like.store.local import LocalStore

pytestmark = pytest.mark.serial

HOLD = """
import sys
from stado_coordinator.lock import Lock
from stado_like.bucket.bucket import Bucket
from stado_like.store.local import LocalStore
lock = Lock(Bucket(LocalStore(sys.argv[1])))
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
print(lock.release() or "released", flush=True)
"""


def until(true: Callable[[], object], *, within_s: float = 20.0) -> None:
    deadline = REAL.boot_s() + within_s
    while not true():
        assert REAL.boot_s() < deadline, "it did not happen in time"
        REAL.sleep(0.02)


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(LocalStore(str(tmp_path / "store")))


def holder(bucket: Bucket) -> TickLock | None:
    found = bucket.store.get(keys.TICK_LOCK)
    return codec.decode(TickLock, found.body, keys.TICK_LOCK) if found else None


def test_two_processes_one_lock(bucket: Bucket, tmp_path: Path) -> None:
    with process("-c", HOLD, str(tmp_path / "store")) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(TickHeld, match=f"pid {child.pid} on {REAL.host} since"):
            Tick(bucket).step()
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "released\n"
    Tick(bucket).step()
    assert holder(bucket) is None


def test_killed_holder_is_taken_over_at_once(bucket: Bucket, tmp_path: Path) -> None:
    with process("-c", HOLD, str(tmp_path / "store")) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
        until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        Tick(bucket).step()  # not yet waited for by its parent: dead all the same
        assert holder(bucket) is None


def test_stopped_holder_is_alive_and_refused(bucket: Bucket, tmp_path: Path) -> None:
    with process("-c", HOLD, str(tmp_path / "store")) as child:
        assert child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(TickHeld):
            Tick(bucket).step()
        os.kill(child.pid, signal.SIGCONT)


def test_resident_ticks_reports_and_ends_on_sigterm(bucket: Bucket, tmp_path: Path) -> None:
    with process("-m", "stado_coordinator", f"file://{tmp_path / 'store'}") as child:
        until(lambda: read_report(bucket))
        until(lambda: holder(bucket) is None)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=20) == 0
    report = read_report(bucket)
    assert report is not None and report["exit_code"] == 0 and report["v"] == 1
    assert last_tick_at(bucket) is not None
    assert holder(bucket) is None


def test_resident_says_that_its_tick_was_skipped(bucket: Bucket, tmp_path: Path) -> None:
    lock = Lock(bucket)
    lock.acquire()
    with process("-m", "stado_coordinator", f"file://{tmp_path / 'store'}") as child:
        assert child.stderr is not None
        line = child.stderr.readline()
        assert line.startswith(
            f"tick skipped: refused: another tick holds this store: pid {os.getpid()} on {REAL.host}"
        )
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=20)
    assert lock.release() == ""
