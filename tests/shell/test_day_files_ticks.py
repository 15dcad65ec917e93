"""Whatever becomes of day files (old, doubled, damaged, of another version, half written, written by two), a list says
what it would say without them; and what writing them costs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stado_coordinator.compaction import CRON_EVERY_S, JOINED_FROM, QUIET_MOST_S, RESIDENT_EVERY_S
from stado_coordinator.tick import Tick
from stado_like.bucket import days
from stado_like.job import day_rows
from stado_like.store.protocol import Unknown
from tests.builders_days import Yard, many, over


@pytest.fixture
def yard() -> Yard:
    return Yard()


def _cut_off(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _no_file(body: bytes) -> bytes:
    return b"<html>"


def _one_bit(body: bytes) -> bytes:
    return body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]


@pytest.mark.parametrize("damage", [_cut_off, _no_file, _one_bit])
def test_damaged_file_is_as_if_it_were_not_there(yard: Yard, damage: Callable[[bytes], bytes]) -> None:
    many(yard, 20)
    yard.compact(times=2)
    (key,) = yard.files()
    body = yard.bucket.store.get(key)
    assert body is not None
    yard.bucket.store.put(key, damage(body.body))
    yard.check()
    other = Tick(yard.bucket, resident=True)
    assert yard.compact(other, times=2)["rows"] == 20
    assert len(yard.rows()) == 20


def test_file_of_another_version_and_strangers_are_passed_over(yard: Yard) -> None:
    many(yard, 20)
    yard.bucket.store.put("days/default/2026-01-01.99.0123456789abcdef0123456789abcdef.gz", b"from the future")
    yard.bucket.store.put("days/default/notes.txt", b"mine")
    yard.compact(times=2)
    yard.check()
    assert len(yard.files()) == 3


# ---- several files, several ticks


def test_small_files_of_a_day_become_one(yard: Yard) -> None:
    jobs = []
    for at in range(JOINED_FROM):
        jobs.append(over(yard, f"job-{at}"))
        yard.compact(times=1)
    assert yard.rows() == jobs
    assert len({key.split("/")[2][:10] for key in yard.files()}) == 1 and len(yard.files()) < JOINED_FROM
    yard.check()


def test_two_ticks_that_write_the_same_rows_write_one_file(yard: Yard) -> None:
    """Both listed the files before there were any."""
    jobs = many(yard, 20)
    over_again = Tick(yard.bucket, resident=True)
    for tick in (yard.tick, over_again):
        tick.step()
    yard.clock.now_s += RESIDENT_EVERY_S
    memory = over_again._compaction._memory
    memory.begin(yard.bucket)
    assert yard.tick.step().passes["days"]["files"] == 1
    assert over_again.step().passes["days"]["files"] == 1
    assert len(yard.files()) == 1 and yard.rows() == jobs


def test_join_that_was_cut_short_leaves_rows_twice_and_tells_them_once(yard: Yard) -> None:
    many(yard, 20)
    yard.compact(times=2)
    ((where, (part,)),) = days.parts(yard.bucket).items()
    half = [day_rows.read("default", line) for line in days.lines(yard.bucket, part)][:10]
    days.write(yard.bucket, *where, half)
    assert len(yard.files()) == 2
    assert len(yard.check()) == 20
    yard.compact(times=3)
    yard.check()


def test_tick_whose_store_takes_no_file_defers_and_writes_it_later(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = many(yard, 20)
    create = yard.tick.bucket.store.create
    yard.tick.step()
    with monkeypatch.context() as broken:
        broken.setattr(
            yard.tick.bucket.store,
            "create",
            lambda key, body: Unknown("no answer") if key.startswith("days/") else create(key, body),
        )
        yard.clock.now_s += RESIDENT_EVERY_S
        report = yard.tick.step()
        assert [what for what, _ in report.deferred] == ["days"]
    yard.compact(times=2)
    assert yard.rows() == jobs
    yard.check()


def test_ticks_from_cron_write_every_ten_minutes(yard: Yard) -> None:
    jobs = many(yard, 20)
    assert "days" not in Tick(yard.bucket).step().passes
    yard.clock.now_s += CRON_EVERY_S / 2
    assert "days" not in Tick(yard.bucket).step().passes
    yard.clock.now_s += CRON_EVERY_S / 2
    assert Tick(yard.bucket).step().passes["days"] == {"rows": 20, "files": 1}
    assert yard.rows() == jobs
    yard.clock.now_s += CRON_EVERY_S
    assert Tick(yard.bucket).step().passes["days"] == {}


def test_quiet_bucket_is_gone_through_once_an_hour(yard: Yard) -> None:
    """Its page and the files' listing: nothing else, once nothing new turned up a few times."""
    many(yard, 20)
    yard.compact(times=6)
    spent = []
    for _ in range(2):
        before = yard.tick.meter.snapshot()
        yard.clock.now_s += QUIET_MOST_S / 2
        yard.tick.step()
        spent.append(yard.tick.meter.snapshot() - before)
    without, with_a_round = spent
    assert with_a_round["list"] - without["list"] == 2 and with_a_round.total - without.total == 2
