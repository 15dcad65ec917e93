"""Blocks whose agents and supervisors are killed, whose claims are refused, whose disks are full: results are kept, and
nothing runs twice under one number."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause, Outcome, TaskState
from tests.process.blocks_rig import ONE, all_over, begun, blocks, clean, effects, stuck_at, unit, unit_end
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MiB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(place)], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted: {done.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_supervisor_killed_in_a_block_keeps_results_and_nothing_runs_twice_under_one_number(rig: Rig) -> None:
    """Finished work is neither lost nor doubled, whoever dies."""
    worker = rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 3)
    begun(rig, log, "3.1")
    os.kill(worker.supervisor(unit(j, 6)), signal.SIGKILL)
    end = unit_end(rig, j, 6)
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0", "1", "2", "3"}, (4, 5), None)
    lost = rig.end(j, 3)
    assert (lost.outcome, lost.cause, lost.budgets.machine) == (Outcome.DOWN, Cause.MACHINE_LOST, 1)
    found = all_over(rig, j, 6)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "2.1": 1, "3.1": 1, "3.2": 1, "4.1": 1, "5.1": 1})
    clean(rig, j)


def test_agent_killed_in_a_block_changes_nothing(rig: Rig) -> None:
    worker = rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1)
    begun(rig, log, "1.1")
    worker.kill()
    end = unit_end(rig, j, 6)  # its supervisor needs no agent
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0"}, (1, 2, 3, 4, 5), 1)
    rig.running(j, 1)
    again = rig.worker("w1", *ONE)
    until(lambda: f"{AttemptId(j, 1, 1)}: found, running" in again.said(), 5, "the next agent adopts what goes on")
    (rig.folder / "gate").touch()
    found = all_over(rig, j, 6)
    assert {n for n, _ in found.values()} == {1}
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(6)})
    clean(rig, j)


def test_agent_and_supervisor_killed_in_a_block(rig: Rig) -> None:
    worker = rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 2)
    begun(rig, log, "2.1")
    supervisor = worker.supervisor(unit(j, 6))
    worker.kill()
    os.kill(supervisor, signal.SIGKILL)
    rig.worker("w1", *ONE)
    found = all_over(rig, j, 6)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "2.1": 1, "2.2": 1, "3.1": 1, "4.1": 1, "5.1": 1})
    clean(rig, j)


def test_supervisor_killed_between_the_claim_of_what_goes_on_and_the_end_of_its_block(rig: Rig) -> None:
    """The block's record cannot be written: a file lies where its folder should be."""
    worker = rig.worker("w1", *ONE)
    in_the_way = rig.folder / "store" / keys.end(unit(j := JobId("default", "arr", 1), 6)).rpartition("/")[0]
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    in_the_way.write_text("")
    log = rig.folder / "effects"
    made, log = stuck_at(rig, 1)
    assert made == j
    claim = until(lambda: rig.bucket.claim(AttemptId(j, 1, 1)), 10, "the rank that goes on is claimed")
    kept = worker.folder(unit(j, 6))
    until(kept.read_exit, 10, "the block's record is kept")
    os.kill(worker.supervisor(unit(j, 6)), signal.SIGKILL)
    assert rig.bucket.claim(AttemptId(j, 1, 1)) is not None
    in_the_way.unlink()
    end = unit_end(rig, j, 6)
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0"}, (1, 2, 3, 4, 5), 1)
    lost = rig.end(j, 1)
    assert (lost.outcome, lost.cause, lost.worker) == (Outcome.DOWN, Cause.MACHINE_LOST, claim.record.worker)
    found = all_over(rig, j, 6)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1}
    assert effects(log)["1.1"] == effects(log)["1.2"] == 1
    clean(rig, j)


def test_supervisor_killed_before_the_claim_of_what_goes_on_reached_the_store(rig: Rig) -> None:
    """Nothing can be claimed: a folder lies where the claim should be."""
    worker = rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1, size=3, block=3)
    begun(rig, log, "1.1")
    in_the_way = rig.folder / "store" / keys.running(AttemptId(j, 1, 1))
    in_the_way.mkdir()
    until(lambda: rig.worker_folder(j, 1).read_claim(), 10, "it tries to claim what goes on")
    os.kill(worker.supervisor(unit(j, 3)), signal.SIGKILL)
    end = unit_end(rig, j, 3)
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0", "1"}, (2,), None)
    in_the_way.rmdir()
    found = all_over(rig, j, 3)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 2, 2: 1}
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "1.2": 1, "2.1": 1})
    until(lambda: rig.worker_folder(j, 1).is_done(), 10, "its folder is done with: its block carried it")
    clean(rig, j)


def test_task_that_ends_while_its_block_cannot_claim_it_is_carried(rig: Rig) -> None:
    """Nothing can be claimed: a folder lies where the claim should be. The block waits for its task, and carries it."""
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1, size=3, block=3)
    begun(rig, log, "1.1")
    in_the_way = rig.folder / "store" / keys.running(AttemptId(j, 1, 1))
    in_the_way.mkdir()
    until(lambda: rig.worker_folder(j, 1).read_claim(), 10, "it tries to claim what goes on")
    (rig.folder / "gate").touch()
    until(lambda: rig.worker_folder(j, 1).read_exit(), 10, "the task has ended")
    in_the_way.rmdir()
    found = all_over(rig, j, 3)
    assert {n for n, _ in found.values()} == {1}
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(3)})
    clean(rig, j)


def test_claim_of_what_goes_on_that_is_anothers_kills_it(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1, size=3, block=3)
    begun(rig, log, "1.1")
    a = AttemptId(j, 1, 1)
    standing = rig.bucket.claim(unit(j, 3))
    assert standing is not None
    other = replace(standing.record, nonce="another", attempt=str(a), worker="w9")
    rig.bucket.decide_bytes(keys.running(a), codec.encode(other))
    end = rig.end(j, 1)
    assert (end.outcome, end.cause) == (Outcome.DOWN, Cause.UNDELIVERED)
    rig.bucket.drop(keys.running(a))
    found = all_over(rig, j, 3)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 2, 2: 1}
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "1.2": 1, "2.1": 1})


def test_full_disk_lets_nothing_begin_and_loses_nothing(rig: Rig, tiny: Path) -> None:
    """Disk full: the agent keeps accepting jobs and failing them."""
    worker = rig.worker("w1", *ONE, state=tiny / "state")
    log = rig.folder / "effects"
    full = f"dd if=/dev/zero of={tiny}/filler bs=64k 2>/dev/null; true"
    wait = f"[ $RANK.$STADO_ATTEMPT != 1.1 ] || {{ {full}; while [ ! -e {rig.folder}/gate ]; do sleep 0.02; done; }}"
    j = blocks(rig, f"echo $RANK.$STADO_ATTEMPT >> {log}; {wait}", size=4, block=4)
    begun(rig, log, "1.1")
    until(lambda: rig.beat(j, 4), 10, "the block proves life for its task")
    assert rig.bucket.claim(AttemptId(j, 1, 1)) is None  # what cannot be kept is not claimed
    (rig.folder / "gate").touch()
    end = unit_end(rig, j, 4)
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0", "1"}, (2, 3), None)
    (tiny / "filler").unlink()
    found = all_over(rig, j, 4)
    assert {end.state for _, end in found.values()} == {TaskState.COMPLETED}
    assert {n for rank, (n, _) in found.items() if rank < 2} == {1}  # others may have been claimed, and not delivered
    assert max(effects(log).values()) == 1
    assert worker.process.poll() is None


def test_task_that_removes_the_folders_of_its_block_runs_nothing_twice(rig: Rig) -> None:
    worker = rig.worker("w1", *ONE)
    log = rig.folder / "effects"
    attempts = rig.state / "w1" / "attempts"
    wait = f"[ $RANK.$STADO_ATTEMPT != 1.1 ] || {{ rm -rf {attempts}/*; kill -9 $PPID; exec sleep 1000; }}"
    j = blocks(rig, f"echo $RANK.$STADO_ATTEMPT >> {log}; {wait}", size=4, block=4)
    begun(rig, log, "1.1")
    end = unit_end(rig, j, 4)
    assert end.given_back == ()  # what was never begun is not known any more
    all_over(rig, j, 4)
    assert max(effects(log).values()) == 1
    assert worker.process.poll() is None


def test_folder_of_a_rank_that_a_block_carries_is_no_claim_of_unknown_origin(rig: Rig) -> None:
    """Its supervisor lives and its agent is another: only the block is found. Where the block is over, so is it."""
    worker = rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1)
    in_the_way = rig.folder / "store" / keys.running(AttemptId(j, 1, 1))
    in_the_way.mkdir(parents=True)
    begun(rig, log, "1.1")
    worker.kill()
    left = worker.folder(AttemptId(j, 5, 1))
    left.path.mkdir()
    again = rig.worker("w1", *ONE)
    until(lambda: f"{unit(j, 6)}: found, running" in again.said(), 10, "the block is found")
    assert str(left.attempt_id) not in again.said()
    assert not left.is_done()
    (rig.folder / "gate").touch()
    in_the_way.rmdir()
    unit_end(rig, j, 6)
    again.kill()
    left.path.mkdir(exist_ok=True)
    third = rig.worker("w1", *ONE)
    until(left.is_done, 10, f"it is done with: {third.said()}")
