"""Blocks of an array on real workers: short tasks carried together, long ones let go, stops of all kinds. Each rank's
effects are counted: none runs twice under one number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, workers
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.states import Cause, Outcome, TaskState
from tests.process.blocks_rig import ONE, all_over, begun, blocks, clean, effects, folders, stuck_at, unit, unit_end
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial


def test_short_tasks_of_an_array_are_carried_together_each_with_its_own_words(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    said = 'echo "$RANK $STADO_ARRAY_TASK_ID $STADO_ATTEMPT_ID $STADO_ATTEMPT $STADO_TASK $1"; ls -A; basename $PWD'
    j = rig.submit("arr", ["sh", "-c", said, "sh", "{}"], cores=1, array={"entries": ["a", "b", "c"], "block": 2})
    for rank, (n, end) in all_over(rig, j, 3).items():
        assert (n, end.outcome, end.exit_code, end.worker) == (1, Outcome.COMPLETED, 0, "w1")
        expected = f"{rank} {rank} {keys.AttemptId(j, rank, 1)} 1 arr-{rank} {'abc'[rank]}\nscratch\n"
        assert rig.output(j, rank) == expected.encode()
        assert end.started_at and end.running_at and end.ended_at >= end.running_at
    for b, carried in ((0, {"0", "1"}), (1, {"2"})):
        end = unit_end(rig, j, 3, b)
        assert (set(end.carried), end.given_back, end.goes_on) == (carried, (), None)
        assert end.outcome is Outcome.COMPLETED
    assert folders(rig) == {str(unit(j, 3)), str(unit(j, 3, 1))}  # their outputs travelled: no folder is kept
    clean(rig, j)


def test_tasks_that_fail_in_a_block_are_tried_again_by_themselves(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    script = 'echo "$RANK.$STADO_ATTEMPT"; [ $RANK != 1 ] || [ $STADO_ATTEMPT = 2 ]'
    j = blocks(rig, script, size=4, block=4)
    found = all_over(rig, j, 4)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 2, 2: 1, 3: 1}
    failed = rig.end(j, 1)
    assert (failed.outcome, failed.exit_code, failed.budgets.failures) == (Outcome.FAILED, 1, 1)
    assert failed.last_failure is not None
    assert failed.last_failure.log == "1.1"
    assert rig.output(j, 1, 2) == b"1.2\n"
    clean(rig, j)


def test_commands_that_cannot_start_are_their_own_tasks_end(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j = rig.submit("arr", ["/nowhere/{}"], cores=1, array={"size": 3, "block": 3}, resilience={"max_restarts": 0})
    for n, end in all_over(rig, j, 3).values():
        assert (n, end.outcome, end.exit_code) == (1, Outcome.FAILED, 127)


def test_task_that_takes_longer_goes_on_by_itself_and_the_rest_is_given_back(rig: Rig) -> None:
    """Half a second is over: it runs on as the same process under a claim of its own, and others run meanwhile."""
    rig.worker("w1", *ONE)
    log, gate = rig.folder / "effects", rig.folder / "gate"
    wait = f"[ $RANK != 1 ] || while [ ! -e {gate} ]; do sleep 0.05; done"
    j = blocks(rig, f"echo $RANK.$STADO_ATTEMPT.$$ >> {log}; {wait}; echo done", size=4, block=4)
    end = unit_end(rig, j, 4)
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0"}, (1, 2, 3), 1)
    assert (end.outcome, end.cause) == (Outcome.COMPLETED, Cause.NONE)
    beat = rig.running(j, 1)
    assert [change.state for change in beat.history.changes] == ["Preparing", "Starting", "Running"]
    assert rig.bucket.end(AttemptId(j, 2, 1)) is None  # the room is still taken
    second = rig.worker("w2", *ONE, state=rig.folder / "state-w2")
    for rank in (2, 3):
        assert rig.end(j, rank).worker == second.worker
    gate.touch()
    found = all_over(rig, j, 4)
    assert {n for n, _ in found.values()} == {1}
    assert found[1][1].worker == "w1"
    assert rig.output(j, 1) == b"done\n"
    assert sorted(line.rpartition(".")[0] for line in effects(log)) == ["0.1", "1.1", "2.1", "3.1"]
    clean(rig, j)


def test_time_limit_counts_for_the_task_that_goes_on(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j = blocks(rig, "[ $RANK = 0 ] || exec sleep 60", size=2, block=2, time_limit_s=2)
    found = all_over(rig, j, 2)
    end = found[1][1]
    assert (end.cause, end.is_final) == (Cause.TIME_LIMIT, True)
    assert 1.9 < end.ended_at - end.running_at < 4


def test_outputs_that_a_record_does_not_take_are_uploaded_under_their_own_attempts(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    script = "head -c $((RANK * 100000)) /dev/zero | tr '\\0' x; [ $RANK != 3 ]"
    j = blocks(rig, script, size=4, block=4, resilience={"max_restarts": 0})
    found = all_over(rig, j, 4)
    for rank in range(4):
        assert rig.output(j, rank) == b"x" * rank * 100000
    assert found[3][1].last_failure is not None
    assert found[3][1].last_failure.log.startswith("xxx")
    assert len(unit_end(rig, j, 4).carried) == 4
    assert {str(AttemptId(j, rank, 1)) for rank in (1, 2, 3)} <= folders(rig)
    until(lambda: rig.worker_folder(j, 1).is_done(), 5, "its folder goes after a day like every other")
    clean(rig, j)


def test_what_tasks_say_of_themselves_is_in_their_ends(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j = blocks(rig, 'echo "best=$RANK" >> $STADO_OUTPUTS; echo left > mine', size=3, block=3)
    for rank, (_, end) in all_over(rig, j, 3).items():
        assert end.outputs == {"best": str(rank)}
        assert (rig.worker_folder(j, rank).path / "scratch" / "mine").read_text() == "left\n"


def test_background_children_of_a_task_do_not_outlive_it(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    log = rig.folder / "effects"
    script = f"echo $RANK.$STADO_ATTEMPT >> {log}; setsid sleep 1000 & echo $! >> {rig.folder}/pids; exit 0"
    j = blocks(rig, script, size=6, block=6)
    for n, end in all_over(rig, j, 6).values():
        assert (n, end.outcome) == (1, Outcome.COMPLETED)
        assert any("outlived the command" in note for note in end.notes)
    for pid in (rig.folder / "pids").read_text().split():
        assert not Path(f"/proc/{pid}/cmdline").exists() or b"1000" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(6)})


def test_cancel_ends_what_runs_and_what_was_not_begun(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 2)
    begun(rig, log, "2.1")
    cancel.cancel_job(rig.bucket, j)
    found = all_over(rig, j, 6)
    assert {rank: end.state for rank, (_, end) in found.items()} == {
        **dict.fromkeys((0, 1), TaskState.COMPLETED),
        **dict.fromkeys((2, 3, 4, 5), TaskState.CANCELLED),
    }
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "2.1": 1})
    clean(rig, j)


@pytest.mark.parametrize("rank", [1, 3])
def test_stop_of_one_task_of_a_block_stops_that_one(rig: Rig, rank: int) -> None:
    """The one that runs, and one that was not begun."""
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1)
    begun(rig, log, "1.1")
    cancel.stop_task(rig.bucket, j, rank)
    if rank != 1:
        end = unit_end(rig, j, 6)
        assert (set(end.carried), end.goes_on) == ({"0"}, 1)
        (rig.folder / "gate").touch()
    found = all_over(rig, j, 6)
    assert {one for one, (_, end) in found.items() if end.state is TaskState.CANCELLED} == {rank}
    assert {n for n, _ in found.values()} == {1}
    assert effects(log)[f"{rank}.1"] == (1 if rank == 1 else 0)


def test_drain_moves_the_task_that_runs_and_gives_back_the_others(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1)
    begun(rig, log, "1.1")
    workers.drain(rig.bucket, "w1", reason="rest")
    moved = rig.end(j, 1)
    assert (moved.outcome, moved.cause) == (Outcome.CANCELLED, Cause.MOVED)
    rig.worker("w2", *ONE, state=rig.folder / "state-w2")
    found = all_over(rig, j, 6)
    assert {rank: n for rank, (n, _) in found.items()} == {0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1}
    assert effects(log) == Counter({"0.1": 1, "1.1": 1, "1.2": 1, "2.1": 1, "3.1": 1, "4.1": 1, "5.1": 1})
    clean(rig, j)


def test_many_ranks_through_two_workers_each_runs_once(rig: Rig) -> None:
    log = rig.folder / "effects"
    for name in ("w1", "w2"):
        rig.worker(name, "--cpus", "2", "--memory", "2GiB", state=rig.folder / f"state-{name}")
    j = blocks(rig, f"echo $RANK.$STADO_ATTEMPT >> {log}", size=300, block=16)
    found = all_over(rig, j, 300, within_s=60)
    assert {end.state for _, end in found.values()} == {TaskState.COMPLETED}
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(300)})
    clean(rig, j)


def test_tick_finds_nothing_to_mend_beside_a_block(rig: Rig) -> None:
    rig.worker("w1", *ONE)
    j, log = stuck_at(rig, 1)
    begun(rig, log, "1.1")
    rig.running(j, 1)
    Tick(rig.bucket).step()
    (rig.folder / "gate").touch()
    all_over(rig, j, 6)
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(6)})
