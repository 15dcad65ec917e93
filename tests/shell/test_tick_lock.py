"""One tick at a time: who is refused and in which words, who is taken over, and what becomes of a tick that was."""

from __future__ import annotations

import itertools
import os
import re
import threading
from pathlib import Path

import pytest

from stado_coordinator.lock import Lock
from stado_coordinator.process_identity import pid_namespace, started_at
from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.tick_report import last_tick_at
from stado_like.errors import Exit, StoreUnavailable, TickHeld
from stado_like.job import codec, keys
from stado_like.job.records import TickLock
from stado_like.store.local import LocalStore
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Unknown
from tests.builders_tick import BreakableStore, Stage, Virtual

_stores = itertools.count()
ME = os.getpid()


def seat(store: MemoryStore, clock: Virtual, *, pid: int = ME, host: str = "here", boot_id: str = "boot-1") -> Bucket:
    """The same store, seen by another process on the same clock."""
    other = Virtual(host, pid)
    other.boot_id = boot_id
    other.boot_s, other.wall_s, other.sleep = clock.boot_s, clock.wall_s, clock.sleep  # type: ignore[method-assign]
    other.token = clock.token  # type: ignore[method-assign]
    return Bucket(store, ambient=other)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def leave(stage: Stage, **different: object) -> TickLock:
    """A lock as a tick of this very process would have left it, but for what differs."""
    said: dict[str, object] = {
        "nonce": "left",
        "pid": ME,
        "host": "here",
        "boot_id": "boot-1",
        "started_at": started_at(ME) or 0.0,
        "since": stage.bucket.now(),
        "extra": {"pid_namespace": pid_namespace()},
        **different,
    }
    lock = TickLock(**said)  # type: ignore[arg-type]
    stage.store.put(keys.TICK_LOCK, codec.encode(lock))
    return lock


def standing(stage: Stage) -> TickLock | None:
    found = stage.store.get(keys.TICK_LOCK)
    return codec.decode(TickLock, found.body, keys.TICK_LOCK) if found else None


def test_second_tick_is_refused_with_the_holders_name(stage: Stage) -> None:
    Lock(seat(stage.store, stage.clock)).acquire()
    with pytest.raises(TickHeld) as refused:
        Tick(seat(stage.store, stage.clock, pid=ME)).step()
    assert re.fullmatch(
        rf"refused: another tick holds this store: pid {ME} on here since 2023-11-14T22:13:20Z "
        r"\(state/coordinator/tick-lock\.json\); it ends when that tick does",
        refused.value.message,
    )
    assert refused.value.exit_code is Exit.CONFLICT


def test_lock_of_another_host_says_how_to_remove_it(stage: Stage) -> None:
    leave(stage, host="elsewhere", pid=17)
    with pytest.raises(TickHeld) as refused:
        Lock(stage.bucket).acquire()
    assert "pid 17 on elsewhere" in refused.value.message
    assert "stado storage rm state/coordinator/tick-lock.json" in refused.value.next_step
    assert standing(stage) is not None


def test_another_pid_namespace_of_the_same_host_name_is_another_host(stage: Stage) -> None:
    """Replicas collide under one node name: pid 1 of another container is not the pid 1 that is seen here."""
    leave(stage, pid=4_194_305, extra={"pid_namespace": "pid:[1]"})
    with pytest.raises(TickHeld):
        Lock(stage.bucket).acquire()


@pytest.mark.parametrize(
    "different",
    [
        {"pid": 4_194_305},
        {"boot_id": "boot-0"},
        {"started_at": 12.0},
    ],
    ids=["process gone", "host restarted", "pid used again"],
)
def test_dead_holder_on_this_host_is_taken_over(stage: Stage, different: dict[str, object]) -> None:
    """Lock held forever after a crash (pid used again): start time or boot id differ, so it is taken over."""
    leave(stage, **different)
    mine = Lock(stage.bucket).acquire()
    assert standing(stage) == mine


@pytest.mark.parametrize("different", [{"started_at": 0.0}, {"boot_id": ""}, {"extra": {}}])
def test_what_cannot_be_compared_is_never_gone(stage: Stage, different: dict[str, object]) -> None:
    leave(stage, **different)
    with pytest.raises(TickHeld):
        Lock(stage.bucket).acquire()


def test_live_holder_that_refreshes_is_not_robbed_after_twenty_minutes(stage: Stage) -> None:
    """Live holder robbed after N seconds: staleness by age only."""
    held = Lock(seat(stage.store, stage.clock))
    held.acquire()
    for _ in range(20):
        stage.clock.pass_s(60)
        assert held.still_ours()
    with pytest.raises(TickHeld, match=f"pid {ME} on here since 2023-11-14T22:13:20Z"):
        Lock(stage.bucket).acquire()


@pytest.mark.parametrize("host", ["here", "elsewhere"])
def test_lock_not_refreshed_for_ten_minutes_is_taken_over(stage: Stage, host: str) -> None:
    leave(stage, host=host)
    stage.clock.pass_s(600)
    with pytest.raises(TickHeld):
        Lock(stage.bucket).acquire()
    stage.clock.pass_s(1)
    assert standing(stage) != Lock(stage.bucket).acquire()


def test_unreadable_lock_is_respected_for_ten_minutes(stage: Stage) -> None:
    stage.store.put(keys.TICK_LOCK, b"{")
    with pytest.raises(TickHeld, match="cannot be read"):
        Lock(stage.bucket).acquire()
    stage.clock.pass_s(601)
    Lock(stage.bucket).acquire()


def test_superseded_tick_stops_and_leaves_the_others_lock(stage: Stage) -> None:
    first = Lock(stage.bucket)
    first.acquire()
    stage.clock.pass_s(700)
    second = Lock(seat(stage.store, stage.clock))
    mine = second.acquire()
    assert not first.still_ours()
    assert first.release() == ""
    assert standing(stage) == mine
    assert second.release() == "" and standing(stage) is None


def test_superseded_tick_carries_out_nothing_more(stage: Stage) -> None:
    stage.submit(size=2)
    tick = Tick(stage.bucket)
    loaded = tick.look

    def slow() -> object:
        found = loaded()
        stage.clock.pass_s(700)
        leave(stage, nonce="the next one")
        return found

    tick.look = slow  # type: ignore[method-assign,assignment]
    report = tick.step()
    assert report.superseded and report.exit_code is Exit.PARTLY
    assert stage.keys(keys.TICK_REPORT) == []
    left = standing(stage)
    assert left is not None and left.nonce == "the next one"


def test_store_that_does_not_answer_supersedes_nobody(stage: Stage) -> None:
    lock = Lock(stage.bucket)
    lock.acquire()
    stage.clock.pass_s(100)
    with stage.store.failing(keys.TICK_LOCK):
        assert lock.still_ours()


def test_lock_that_could_not_be_released_is_our_own_at_the_next_tick(stage: Stage) -> None:
    lock = Lock(seat(stage.store, stage.clock))
    lock.acquire()
    with stage.store.failing(keys.TICK_LOCK):
        assert "no answer" in lock.release()
    lock.acquire()
    assert lock.release() == "" and standing(stage) is None


def test_pass_that_raises_releases_the_lock(stage: Stage) -> None:
    tick = Tick(stage.bucket)

    def broken() -> object:
        raise StoreUnavailable("gone")

    tick.look = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(StoreUnavailable):
        tick.step()
    assert standing(stage) is None


def test_store_without_replace_is_taken_over_by_delete_and_create(stage: Stage) -> None:
    class Plain(BreakableStore):
        @property
        def can_replace(self) -> bool:
            return False

    stage.store = Plain(stage.clock)
    stage.bucket = Bucket(stage.store, ambient=stage.clock)
    leave(stage, pid=4_194_305)
    lock = Lock(stage.bucket)
    mine = lock.acquire()
    assert standing(stage) == mine
    stage.clock.pass_s(100)
    assert lock.still_ours()


def test_stale_lock_has_one_winner(tmp_path: Path) -> None:
    """Breaker deletes a fresh lock: of many that see one dead lock exactly one takes it, every time."""
    for run in range(25):
        store = LocalStore(str(tmp_path / str(run)), durable=False)
        dead = TickLock(nonce="dead", pid=4_194_305, host=Bucket(store).ambient.host, boot_id="", started_at=0, since=0)
        store.put(keys.TICK_LOCK, codec.encode(dead))
        won: list[str] = []
        begin = threading.Barrier(6)

        def contend(store: LocalStore = store, won: list[str] = won, begin: threading.Barrier = begin) -> None:
            lock = Lock(Bucket(store))
            begin.wait()
            try:
                won.append(lock.acquire().nonce)
            except TickHeld:
                return

        threads = [threading.Thread(target=contend) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        found = store.get(keys.TICK_LOCK)
        assert found is not None and codec.decode(TickLock, found.body, "").nonce == won[0]


def test_last_tick_is_known_to_readers(stage: Stage) -> None:
    assert last_tick_at(stage.bucket) is None
    stage.clock.pass_s(50)
    Tick(stage.bucket).step()
    ticked_at = stage.bucket.now()
    stage.clock.pass_s(5000)
    assert last_tick_at(stage.bucket) == ticked_at


def test_own_lock_that_arrives_long_after_its_tick_gave_up_blocks_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was stopped carries out what it had received when it goes on: seen after an outage of five minutes,
    when the resident coordinator, alive and idle, kept itself and everybody else from ticking for ten more."""
    sent: list[bytes] = []
    create = stage.store.create

    def unanswered(key: str, body: bytes) -> object:
        if key != keys.TICK_LOCK:
            return create(key, body)
        sent.append(body)
        return Unknown("timed out")

    lock = Lock(stage.bucket)
    monkeypatch.setattr(stage.store, "create", unanswered)
    with pytest.raises(StoreUnavailable):
        lock.acquire()
    monkeypatch.undo()
    lock.acquire()  # the store is back; a whole tick goes by
    lock.release()
    stage.store.put(keys.TICK_LOCK, sent[-1])  # and now the old request arrives
    mine = lock.acquire()
    assert standing(stage) == mine
