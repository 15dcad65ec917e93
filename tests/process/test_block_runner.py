"""A block under `Control` and its I/O, with scripted ranks and a clock of the test's own: what is begun, what is let
go, what is given back, and what is kept on the disk for whoever comes after."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stado_like.bucket.end import commit
from stado_like.job import blocks, codec, keys, reasons
from stado_like.job.keys import AttemptId
from stado_like.job.records import MOST_BYTES, Claim, End, Verdict
from stado_like.job.states import Cause, Decision, JobState, Outcome, TaskState
from stado_worker.shim import block_report
from stado_worker.shim.block_ran import RAN, Ran, RankEnd, read_ran, with_output
from stado_worker.shim.block_runner import BLOCK_S
from stado_worker.shim.could_not_start import CouldNotStart, StartFault
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.report import Facts
from tests.builders_block_bench import TASKS, Bench
from tests.builders_blocks import end_block


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def machine_fault() -> CouldNotStart:
    return CouldNotStart("no processes left", "x", fault=StartFault.MACHINE, command_exit=None)


DONE = (Outcome.COMPLETED, Cause.NONE)


def test_ranks_run_one_after_the_other_and_end_with_one_record(bench: Bench) -> None:
    bench.step(0, 1, 0, 0)
    assert bench.control.is_over
    end = bench.report()
    assert bench.made == [0, 1, 2, 3]
    assert (end.outcome, end.given_back, end.goes_on) == (Outcome.COMPLETED, (), None)
    assert bench.ends() == {0: DONE, 1: (Outcome.FAILED, Cause.FAILURE), 2: DONE, 3: DONE}
    assert bench.folder.is_done()
    assert bench.bucket.claim(bench.a) is None


def test_descriptor_and_stop_file_are_those_of_the_rank_that_runs(bench: Bench) -> None:
    bench.step()
    seen = []
    for _ in range(2):
        seen.append((bench.block.runner.wait_fd(), bench.block.stop_file().parent.name, bench.block.runner.turn))
        bench.step(0)
    assert seen == [(1000 + rank, str(AttemptId(bench.j, rank, 1)), rank + 1) for rank in range(2)]


def test_rank_that_runs_when_the_time_is_up_goes_on_under_its_own_claim(bench: Bench) -> None:
    bench.step(0)
    bench.pass_s(BLOCK_S)
    assert bench.control.is_over
    assert bench.scripts[1].did == ["start"]
    bench.io.step()
    end = bench.bucket.end(bench.a)
    assert end is not None
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0"}, (1, 2, 3), 1)
    claim = bench.bucket.claim(AttemptId(bench.j, 1, 1))
    assert claim is not None and claim.record.worker == "w1"
    assert bench.handed_over == [str(AttemptId(bench.j, 1, 1))]
    assert bench.folder.is_done() and not bench.rank_folder(1).is_done()
    queued = {keys.attempt_of_entry(row.key).rank for row in bench.bucket.store.list(keys.QUEUED_OPEN).rows}
    assert queued == {2, 3}  # not the one that is held
    rank = bench.block.rank
    assert rank is not None
    rank.control.step()
    bench.scripts[1].exits = Exit(3)
    rank.control.step()
    assert bench.drive()
    assert bench.ends()[1] == (Outcome.FAILED, Cause.FAILURE)
    assert bench.bucket.claim(AttemptId(bench.j, 1, 1)) is None


def test_no_rank_is_begun_once_the_time_is_up(bench: Bench) -> None:
    bench.step()
    bench.clock.now_s += BLOCK_S
    bench.scripts[0].exits = Exit(0)  # at the very moment
    bench.control.step()
    bench.control.step()
    assert bench.made == [0]
    end = bench.report()
    assert (set(end.carried), end.given_back, end.goes_on) == ({"0"}, (1, 2, 3), None)


def test_mark_of_a_stopped_rank_hurries_the_block(bench: Bench) -> None:
    bench.step(0)
    bench.block.hurry()
    bench.step()
    end = bench.report()
    assert (set(end.carried), end.goes_on) == ({"0"}, 1)


def test_ends_that_fill_the_record_end_the_block(bench: Bench, tmp_path: Path) -> None:
    bench.block._ran.taken_bytes = blocks.ROOM_BYTES
    bench.step()
    bench.control.step()
    assert bench.made == []
    assert bench.report().given_back == (0, 1, 2, 3)


def test_verdict_ends_the_rank_that_runs_and_cancels_those_not_begun(bench: Bench) -> None:
    bench.step(0)
    bench.bucket.decide(
        keys.verdict(bench.j), Verdict(nonce="v", state=JobState.CANCELLED, reason="enough", by="x", at=1.0)
    )
    bench.life.nudge()
    bench.io.step()
    bench.control.step()
    assert bench.scripts[1].did[:2] == ["start", "SIGTERM"]
    assert (bench.rank_folder(1).path / "stop").exists()
    bench.step(0)
    end = bench.report()
    cancelled = (Outcome.CANCELLED, Cause.REQUESTED)
    assert bench.ends() == {0: DONE, 1: cancelled, 2: cancelled, 3: cancelled}
    assert end.given_back == ()
    assert bench.made == [0, 1]


def test_order_of_the_machinery_ends_the_rank_that_runs_and_gives_back_the_others(bench: Bench) -> None:
    bench.step(0)
    bench.life.ask_stop(Cause.PREEMPTED, "for others")
    bench.step(143)
    end = bench.report()
    assert (set(end.carried), end.given_back) == ({"0", "1"}, (2, 3))
    assert bench.ends()[1] == (Outcome.CANCELLED, Cause.PREEMPTED)


def test_machine_that_can_start_nothing_gives_everything_back(bench: Bench) -> None:
    bench.scripts[0].refuses = machine_fault()
    bench.step()
    end = bench.report()
    assert (end.cause, end.given_back) == (Cause.UNDELIVERED, (1, 2, 3))
    assert bench.ends() == {0: (Outcome.DOWN, Cause.UNDELIVERED)}  # it may have begun


def test_machine_that_fails_half_way_keeps_what_ran(bench: Bench) -> None:
    bench.scripts[2].refuses = machine_fault()
    bench.step(0, 0)
    end = bench.report()
    assert (end.cause, end.given_back) == (Cause.NONE, (3,))
    assert bench.ends() == {0: DONE, 1: DONE, 2: (Outcome.DOWN, Cause.UNDELIVERED)}


def test_command_that_is_not_there_is_each_ranks_own_end(bench: Bench) -> None:
    for script in bench.scripts.values():
        script.refuses = CouldNotStart("no such", "x", fault=StartFault.NOT_FOUND, command_exit=127)
    bench.step()
    bench.control.step()
    bench.report()
    assert set(bench.ends().values()) == {(Outcome.FAILED, Cause.FAILURE)}
    first = bench.bucket.end(AttemptId(bench.j, 0, 1))
    assert first is not None and first.exit_code == 127


def test_disk_that_takes_no_word_of_it_lets_nothing_begin(bench: Bench) -> None:
    """What may have begun must be known before it begins."""
    bench.step(0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # no file may grow, as on a full disk
    try:
        bench.step(0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    end = bench.report()
    assert (set(end.carried), end.given_back) == ({"0", "1"}, (2, 3))
    assert bench.made == [0, 1]


def test_process_that_will_not_die_lets_nothing_begin_beside_it(bench: Bench) -> None:
    bench.scripts[1].stuck = (77,)
    bench.step(0, 0)
    end = bench.report()
    assert (set(end.carried), end.given_back) == ({"0", "1"}, (2, 3))
    assert any("77 would not die" in note for note in end.notes)


def test_block_ended_by_others_takes_the_rank_with_it_that_was_to_go_on(bench: Bench) -> None:
    bench.step(0)
    bench.pass_s(BLOCK_S)
    end_block(bench.bucket, bench.a, dict.fromkeys(range(TASKS), 1))
    assert bench.drive()
    assert bench.scripts[1].did[-1] == "finish"
    assert bench.bucket.claim(AttemptId(bench.j, 1, 1)) is None
    assert bench.rank_folder(1).is_done()
    assert bench.handed_over == []


def test_claim_that_is_anothers_ends_the_rank_within_its_block(bench: Bench) -> None:
    bench.step(0)
    a = AttemptId(bench.j, 1, 1)
    bench.bucket.decide_bytes(keys.running(a), codec.encode(Claim(nonce="x", attempt=str(a), worker="w2")))
    bench.pass_s(BLOCK_S)
    assert bench.drive()
    assert bench.scripts[1].did[-1] == "finish"
    assert bench.ends()[1] == (Outcome.DOWN, Cause.UNDELIVERED)
    standing = bench.bucket.claim(a)
    assert standing is not None and standing.record.nonce == "x"


def test_claim_that_is_gone_after_the_block_fences_the_rank(bench: Bench) -> None:
    bench.step(0)
    bench.pass_s(BLOCK_S)
    a = AttemptId(bench.j, 1, 1)
    dropped: list[bool] = []

    def drop(rank: object) -> None:
        bench.bucket.drop(keys.running(a))
        dropped.append(True)

    bench.block._handed_over = drop
    assert bench.drive()
    assert dropped
    assert bench.scripts[1].did[-1] == "finish"
    assert bench.bucket.end(a) is None
    assert bench.rank_folder(1).is_done()


def test_rank_that_ends_before_its_claim_is_sent_is_carried(bench: Bench) -> None:
    bench.step(0)
    bench.pass_s(BLOCK_S)
    rank = bench.block.rank
    assert rank is not None
    bench.scripts[1].exits = Exit(0)
    rank.control.step()
    end = bench.report()
    assert (set(end.carried), end.goes_on) == ({"0", "1"}, None)
    assert bench.ends()[1] == DONE
    assert bench.bucket.claim(AttemptId(bench.j, 1, 1)) is None


def test_order_for_the_block_reaches_the_rank_that_goes_on(bench: Bench) -> None:
    bench.step(0)
    bench.pass_s(BLOCK_S)
    bench.folder.write_order({"cause": "moved", "reason": "drained"})
    bench.io.step()
    rank = bench.block.rank
    assert rank is not None and rank.life.stop is not None
    assert rank.life.stop.cause is Cause.MOVED


def test_what_is_on_the_disk_says_what_had_begun(bench: Bench) -> None:
    bench.step(0, 1)
    ran = read_ran(bench.folder)
    assert ran is not None
    assert (set(ran.ended), ran.begun, ran.whole) == ({0, 1}, 2, True)
    assert (ran.ended[0].cause, ran.ended[1].exit_code) == (Cause.NONE, 1)


def test_pairs_of_many_ranks_do_not_burst_the_record(bench: Bench) -> None:
    """Each may say 4 KiB of outputs and 4 KiB of progress: after some of them the block is full."""
    bench.step()
    for rank in range(TASKS):
        if bench.block.runner.rank is None:
            break
        for name in ("outputs", "progress"):
            said = "".join(f"key{i}={'x' * 120}\n" for i in range(60))
            (bench.rank_folder(rank).path / name).write_text(said)
        bench.scripts[rank].exits = Exit(0)
        bench.control.step()
    end = bench.report()
    assert end.given_back == (3,)
    assert len(codec.encode(end)) < MOST_BYTES


@pytest.mark.parametrize("hurt", [lambda raw: b"\0" * 40 + b"\n" + raw, lambda raw: raw.replace(b'"begun"', b'"bgn"')])
def test_disk_that_was_hurt_knows_of_nothing_that_it_was_never_begun(
    bench: Bench, hurt: Callable[[bytes], bytes]
) -> None:
    bench.step(0)
    path = bench.folder.path / RAN
    path.write_bytes(hurt(path.read_bytes()))
    ran = read_ran(bench.folder)
    assert ran is not None and not ran.whole


def test_last_line_that_was_cut_short_was_never_relied_upon(bench: Bench) -> None:
    bench.step(0)
    path = bench.folder.path / RAN
    path.write_bytes(path.read_bytes()[:-3])
    ran = read_ran(bench.folder)
    assert ran is not None
    assert (set(ran.ended), ran.begun, ran.whole) == ({0}, None, True)


def test_size_of_an_end_is_never_less_than_what_it_takes(bench: Bench, tmp_path: Path) -> None:
    """The room of a record is counted before the record is made."""
    folder = bench.rank_folder(0)
    folder.path.mkdir()
    read = bench.block._place.read
    facts = Facts(cause=Cause.NONE, reason=reasons.exited(0), by="w1", ended_at=bench.clock.now_s)
    for body in (b"", b"\x00" * 900, b'"' * 1024, b"\xff" * 50_000, "ü\n".encode() * 300):
        folder.log.write_bytes(body)
        for cause in (Cause.NONE, Cause.FAILURE):
            code = 0 if cause is Cause.NONE else 3
            bare = RankEnd(rank=0, cause=cause, reason=reasons.exited(code), exit_code=code, started_at=1e9 + 0.123456)
            one = with_output(folder, replace(bare, running_at=bare.started_at, ended_at=bare.started_at))
            end, _ = block_report.compose(bench.bucket, read, facts, Ran(ended={0: one}), bench.attempts)
            took = len(codec.encode(end)) - len(codec.encode(replace(end, carried={})))
            assert took <= one.size_bytes, (body[:3], cause, took, one.size_bytes)


def test_rank_runs_under_the_number_that_its_block_gave_it(bench: Bench) -> None:
    """Another supervisor of the same rank cannot have ended it: its own end is decided by one create."""
    bench.step()
    bench.pass_s(BLOCK_S)
    bench.io.step()
    rank = bench.block.rank
    assert rank is not None and rank.handed_over
    standing = rank.read.task.claim
    assert standing.attempt == str(AttemptId(bench.j, 0, 1))
    end = End(
        nonce="z",
        attempt=standing.attempt,
        outcome=Outcome.DOWN,
        decision=Decision.RETRY,
        state=TaskState.DOWN,
        reason="r",
    )
    commit(bench.bucket, rank.a, codec.encode(end))
    rank.life.nudge()
    assert bench.drive()
    assert bench.scripts[0].did[-1] == "finish"
