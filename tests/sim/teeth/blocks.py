"""Probes of arrays in blocks: what a machine gives back, and under whose claim a rank goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim
from stado_worker.shim.block_goes_on import drop_own_claim
from tests.sim import scenarios_blocks as scene
from tests.sim.fault_store import Change
from tests.sim.fleet import Fleet
from tests.sim.play import id_of
from tests.sim.quiet import cluster, give, go, has_ended
from tests.sim.scenarios import ARRAY
from tests.sim.teeth.traces import stage

LASTING = 2
"""The rank that outlasts its block."""


class _Watcher:
    """Does something in the instant in which the claim of the lasting rank is created."""

    def __init__(self, fleet: Fleet, act: Callable[[str], None]) -> None:
        self.fleet, self.act, self.done = fleet, act, False
        fleet.shared.watchers.append(self)

    def changed(self, change: Change) -> None:
        if change.key.startswith(keys.RUNNING) and f".{LASTING:05d}." in change.key and not self.done:
            self.done = True
            self.fleet.world.at(self.fleet.world.now_s, lambda: self.act(change.key))

    def refused(self, key: str, standing: bytes, sent: bytes) -> None:
        """Nothing."""


@contextmanager
def _one_block(*, tick_every_s: float = 5.0) -> Iterator[tuple[Fleet, JobId]]:
    """Of three ranks, on a machine of one core: two take a tenth of a second, the third a minute."""
    with cluster(cores=1, tick_every_s=tick_every_s) as fleet:
        go(fleet, 10.0)
        j = give(fleet, "arr", 0.1, words=("third=60",), array={"size": 3, "block": 3})
        yield fleet, j


def rank_that_had_begun_is_lost_with_its_supervisor() -> None:
    """It is killed while the first of its ranks runs, and its agent goes by what it left on the disk."""
    with _one_block() as (fleet, j):
        _until_begun(fleet, j)
        host = fleet.hosts[0]
        host.supervisors[str(AttemptId(j, 3, 1))].die()
        go(fleet, 20.0)
        end = fleet.judge.seen.end_records[AttemptId(j, 3, 1)]
        assert "0" in end.carried and end.given_back == (1, 2), f"carried {sorted(end.carried)}, back {end.given_back}"
        go(fleet, 200.0)
        assert all(fleet.judge.seen.finished[j] >= {rank} for rank in range(3)), "not all came to an end"


def nothing_is_given_back_after_a_reboot() -> None:
    """What was written last may be gone with the power: any of its ranks may have begun."""
    with _one_block(tick_every_s=600.0) as (fleet, j):
        _until_begun(fleet, j)
        fleet.hosts[0].lose()
        go(fleet, 5.0)
        fleet.hosts[0].boot()
        go(fleet, 60.0)
        end = fleet.judge.seen.end_records[AttemptId(j, 3, 1)]
        assert end.given_back == (), f"given back {end.given_back}"


def _until_begun(fleet: Fleet, j: JobId) -> None:
    for _ in range(2000):
        go(fleet, 0.01)
        if fleet.judge.seen.starts[AttemptId(j, 0, 1)]:
            return
    raise AssertionError("its first rank never began")


def rank_whose_claim_was_taken_away_does_not_go_on() -> None:
    """Somebody removes it before its block has ended: it may be claimed by anybody from then on."""
    with _one_block(tick_every_s=600.0) as (fleet, j):
        store = fleet.shared.store

        def remove(key: str) -> None:
            fleet.shared.effect("person", "delete", key, lambda: store.delete(key))

        watcher = _Watcher(fleet, remove)
        go(fleet, 12.0)
        a = AttemptId(j, LASTING, 1)
        assert watcher.done and has_ended(fleet, j, 3), "the block is not over"
        assert not fleet.hosts[0].processes[str(a)].is_alive, "it runs on without a claim"


def rank_of_a_dead_supervisor_waits_for_its_block() -> None:
    """It was claimed to go on, and its block has not ended: both agent and supervisor are killed between the two."""
    with _one_block() as (fleet, j):
        host = fleet.hosts[0]

        def kill(key: str) -> None:
            host.kill_agent()
            host.supervisors[str(AttemptId(j, 3, 1))].die()
            fleet.world.at(fleet.world.now_s + 2.0, host.start_agent)

        watcher = _Watcher(fleet, kill)
        go(fleet, 60.0)
        assert watcher.done
        end = fleet.judge.seen.end_records[AttemptId(j, 3, 1)]
        assert str(LASTING) in end.carried, f"given back {end.given_back}"
        go(fleet, 200.0)
        assert has_ended(fleet, j, LASTING, 2), "its second attempt never ended"


def claim_of_another_is_left_alone() -> None:
    with stage() as play:
        scene._queued(play, play.hand("w0"))
        bucket, a = play.bucket("w1"), AttemptId(id_of(ARRAY), 0, 1)
        ours = Claim(nonce="ours", attempt=str(a), worker="w1")
        bucket.decide(keys.running(a), replace(ours, nonce="another's", worker="w2"))
        drop_own_claim(bucket, ours)
        assert bucket.claim(a) is not None, "another's claim was taken away"
