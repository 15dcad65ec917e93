"""What a worker leaves in the open queue though it fits: room that is held for the head, work under a quota or of other
pools. And what it costs: nothing while nobody holds anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stado_like.bucket import holding
from stado_like.bucket.workspaces import Workspaces
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import BellEvent, Claim
from stado_like.job.workspace import Edit
from stado_like.planning.board import Hold
from stado_like.planning.fit import Machine
from stado_worker.candidates import Candidates
from stado_worker.holdings import Holding
from stado_worker.offer import Offer
from stado_worker.queue_rules import QueueRules
from stado_worker.shim.attempt_dir import AttemptDir
from tests.builders_queue import GIB, Waiting

HEAD = JobId("default", "head", 1)
ROOM: dict[str, Any] = {"total_cpu_millis": 4000, "total_memory_bytes": 16 * GIB}
MACHINE = Machine("w1", "host", 4000, 16 * GIB, 0, 0, **ROOM)


class At:
    """One worker and its rules on a store."""

    def __init__(self, stage: Waiting, tmp_path: Path) -> None:
        self.stage = stage
        self.logged: list[str] = []
        self.offer = Offer("w1", "host", None, stage.clock, tmp_path)  # type: ignore[arg-type]
        self.rules = QueueRules(stage.bucket, "w1", self.offer, self.logged.append)
        self.candidates = Candidates(stage.bucket)

    def hold(self, *, cores: float = 4, starts_in_s: float = 0.0, worker: str = "w1", job: JobId = HEAD) -> Hold:
        now = self.stage.bucket.now()
        starts_at = now + starts_in_s if starts_in_s else 0.0
        made = Hold(job, worker, int(cores * 1000), GIB, 0, 0, starts_at, created_ms=1)
        holding.write(self.stage.bucket, (), (made,))
        return made

    def lets(self, j: JobId, machine: Machine = MACHINE, held: tuple[Holding, ...] = ()) -> bool:
        self.candidates.sweep()
        entry = next(one for one in self.candidates.in_order() if one.attempt.job == j)
        ask = self.candidates.ask_of(entry)
        assert ask is not None
        return self.rules.let_claim(entry, ask, machine, held, self.candidates)

    def ring(self, what: str = "w1") -> None:
        self.rules.heard(BellEvent(nonce="n", kind="holds", what=what))
        self.rules.answer(self.stage.clock.boot_s())


@pytest.fixture
def at(tmp_path: Path) -> At:
    return At(Waiting(), tmp_path)


def test_without_holds_everything_passes_and_they_are_asked_for_once(at: At) -> None:
    j = at.stage.put("one")
    assert at.lets(j)
    at.stage.clock.pass_s(30)
    with at.stage.store.failing(keys.HOLDS):
        assert at.lets(j), "an idle fleet without holds pays nothing"


def test_work_behind_the_head_leaves_its_room(at: At) -> None:
    j = at.stage.put("small")
    at.hold()
    assert not at.lets(j)
    assert at.offer.holds_nonce == holding.read(at.stage.bucket).nonce


def test_the_heads_own_job_passes_and_so_does_what_is_ahead_of_it(at: At) -> None:
    j, urgent = at.stage.put("head"), at.stage.put("small")
    at.hold(job=j)
    assert at.lets(j)
    holding.write(at.stage.bucket, (), (Hold(HEAD, "w1", 4000, GIB, 0, 0, created_ms=9_999_999_999_999),))
    at.stage.clock.pass_s(2)
    assert at.lets(urgent)


def test_what_fits_beside_the_hold_passes(at: At) -> None:
    j = at.stage.put("small", cores=1)
    at.hold(cores=3)
    assert at.lets(j)
    large = at.stage.put("large", cores=2)
    assert not at.lets(large)


def test_what_ends_before_the_head_starts_passes_by_its_time_limit(at: At) -> None:
    """EASY backfill: only what cannot delay the head."""
    short = at.stage.put("short", cores=2, task={"time_limit_seconds": 600})
    long = at.stage.put("long", cores=2, task={"time_limit_seconds": 7200})
    endless = at.stage.put("endless", cores=2)
    at.hold(starts_in_s=3600)
    assert [at.lets(one) for one in (short, long, endless)] == [True, False, False]


def test_running_work_that_ends_before_the_start_makes_room_beside(at: At, tmp_path: Path) -> None:
    j = at.stage.put("small", cores=1)
    runs = AttemptId(at.stage.put("runs", cores=3), 0, 1)
    claim = Claim(nonce="c", attempt=str(runs), worker="w1", since=at.stage.bucket.now())
    _, terms = at.stage.job(runs.job)
    folder = AttemptDir.make(tmp_path / "attempts", str(runs))
    one = Holding(runs, claim, b"", folder, terms.ask, 0.0, time_limit_s=600)
    left = Machine("w1", "host", 1000, 16 * GIB, 0, 1, **ROOM)
    at.hold(cores=3, starts_in_s=3600)
    assert at.lets(j, left, (one,))


def test_holds_of_other_machines_concern_nobody_here(at: At) -> None:
    j = at.stage.put("small")
    at.hold(worker="w2")
    assert at.lets(j)


def test_a_hold_is_read_again_when_the_last_sight_is_older_than_a_second(at: At) -> None:
    j = at.stage.put("small")
    at.hold(worker="w2")
    assert at.lets(j)
    at.hold()
    assert at.lets(j), "seen this very second"
    at.stage.clock.pass_s(1.1)
    assert not at.lets(j)


def test_a_ring_that_was_lost_is_made_good_by_the_sweep(at: At) -> None:
    j = at.stage.put("small")
    assert at.lets(j)
    at.hold()
    assert at.lets(j), "no bell, and nothing was held"
    at.rules.sweep()
    assert not at.lets(j)


def test_a_ring_is_answered_with_an_echo_at_once(at: At) -> None:
    at.hold()
    assert not at.offer.echo
    at.ring("w2")
    assert not at.offer.echo
    at.ring("w0,w1")
    assert at.offer.echo == at.offer.holds_nonce == holding.read(at.stage.bucket).nonce


def test_holds_that_cannot_be_read_change_nothing(at: At) -> None:
    j = at.stage.put("small")
    at.hold()
    assert not at.lets(j)
    at.stage.store.put(keys.HOLDS, b"{not json")
    at.stage.clock.pass_s(2)
    assert not at.lets(j) and at.logged


def test_work_under_a_quota_is_left_to_ticks_and_taken_again_without_one(at: At) -> None:
    j = at.stage.put("mine")
    edit = Workspaces(at.stage.bucket, lambda: None, lambda: "ada").edit
    edit("default", Edit(quota={"max_cpus": 100}))
    assert not at.lets(j)
    edit("default", Edit(quota={"max_cpus": None}))
    assert not at.lets(j), "a workspace is asked for once a minute"
    at.stage.clock.pass_s(61)
    assert at.lets(j)


def test_work_of_a_workspace_with_pools_goes_to_their_machines(at: At) -> None:
    j = at.stage.put("mine")
    Workspaces(at.stage.bucket, lambda: None, lambda: "ada").edit("default", Edit(pools={"pool": "a"}))
    assert not at.lets(j)
    assert at.lets(j, Machine("w1", "host", 4000, 16 * GIB, 0, 0, labels={"pool": "a"}, **ROOM))


def test_a_workspace_that_cannot_be_read_may_have_a_quota(at: At) -> None:
    j = at.stage.put("mine")
    at.stage.store.put(keys.workspace("default"), b"{not json")
    assert not at.lets(j) and at.logged


def test_holds_that_no_tick_renewed_hold_nothing(at: At) -> None:
    """A coordinator that is gone must not keep machines idle for ever."""
    j = at.stage.put("small")
    at.hold()
    assert not at.lets(j)
    at.stage.clock.pass_s(601)
    assert at.lets(j)
