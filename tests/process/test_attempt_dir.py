"""The local records of an attempt: whole or absent, one launch, one living supervisor, swept in time."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stado_like.errors import BadRecord, Conflict
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs, sweep, write_whole
from stado_worker.shim.stop_file import StopNotice, write_stop_file
from tests.process.as_supervisor import as_supervisor, wait_until

DAY_S = 86_400.0


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    return AttemptDir.make(tmp_path / "attempts", "default.train.1.00003.000002")


def test_records_come_back_and_absent_is_none(attempt: AttemptDir) -> None:
    assert attempt.read_claim() is attempt.read_exit() is attempt.read_pulse() is attempt.read_done() is None
    attempt.write_claim({"nonce": "a", "body": "ż"})
    attempt.write_exit({"exit": 1})
    assert attempt.read_claim() == {"nonce": "a", "body": "ż"}
    assert attempt.read_exit() == {"exit": 1}
    assert not attempt.is_done()
    attempt.write_done({})
    assert attempt.is_done()
    assert sorted(path.name for path in attempt.path.iterdir()) == ["claim.json", "done", "exit.json"]
    assert AttemptDir.make(attempt.path.parent, attempt.attempt_id) == attempt, "made twice is the same"


def test_followed_until_is_what_the_agent_wrote_last(attempt: AttemptDir) -> None:
    assert attempt.followed_until() == 0
    attempt.write_follow(5.5)
    attempt.write_follow(7.5)
    assert attempt.followed_until() == 7.5


def test_unreadable_is_not_absent(attempt: AttemptDir) -> None:
    (attempt.path / "claim.json").write_bytes(b"")
    assert attempt.read_claim() is None, "a crash of the machine took its bytes: never written"
    for body in (b'{"nonce": "a', b"[1]", b"\xff"):
        (attempt.path / "claim.json").write_bytes(body)
        with pytest.raises(BadRecord, match=r"claim\.json"):
            attempt.read_claim()


def test_a_write_cut_short_leaves_the_old_record(attempt: AttemptDir) -> None:
    attempt.write_claim({"old": True})
    (attempt.path / ".claim.json.123").write_bytes(b'{"new": tr')
    assert attempt.read_claim() == {"old": True}


def test_readers_never_see_a_part(attempt: AttemptDir) -> None:
    bodies = [bytes([65 + n]) * (1 << 16) for n in range(4)]
    write_whole(attempt.log, bodies[0])
    seen: set[bytes] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(attempt.log.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for round_ in range(200):
        write_whole(attempt.log, bodies[round_ % 4])
    stop.set()
    reader.join()
    assert seen <= set(bodies)


def test_launch_is_won_once(attempt: AttemptDir) -> None:
    won: list[int] = []
    together = threading.Barrier(8)

    def race(number: int) -> None:
        together.wait()
        if attempt.create_launch(f"racer {number}"):
            won.append(number)

    racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(won) == 1
    assert attempt.launched_by() == f"racer {won[0]}"
    assert not attempt.create_launch("later")
    assert attempt.launched_by() == f"racer {won[0]}"


def test_alive_follows_the_holder_and_ends_with_kill(attempt: AttemptDir) -> None:
    assert not attempt.is_alive()
    code = (
        "import sys, time; from pathlib import Path; from stado_worker.shim.attempt_dir import AttemptDir\n"
        "lock = AttemptDir(Path(sys.argv[1])).take_alive(); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(attempt.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert attempt.is_alive()
        assert attempt.is_alive(), "a look takes nothing away"
        with pytest.raises(Conflict, match="living supervisor"):
            attempt.take_alive(retry_s=0.05)
        holder.kill()
    assert not attempt.is_alive(), "an ended holder holds nothing, whoever buried it"


def test_a_look_does_not_keep_a_supervisor_out(attempt: AttemptDir) -> None:
    (attempt.path / "alive").touch()
    look = os.open(attempt.path / "alive", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, [look]).start()
    lock = attempt.take_alive()
    assert attempt.is_alive()
    lock.release()
    assert not attempt.is_alive()


def test_looks_do_not_mistake_each_other_for_a_supervisor(attempt: AttemptDir) -> None:
    (attempt.path / "alive").touch()
    look = os.open(attempt.path / "alive", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    assert not attempt.is_alive()
    os.close(look)


def test_the_lock_is_not_inherited_by_a_command(attempt: AttemptDir) -> None:
    lock = attempt.take_alive()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as command:
        lock.release()
        assert not attempt.is_alive()
        command.kill()


def test_could_not_ask_is_not_dead(attempt: AttemptDir) -> None:
    (attempt.path / "alive").symlink_to(attempt.path / "alive")
    with pytest.raises(OSError, match="symbolic links"):
        attempt.is_alive()


def _attempt(attempts: Path, name: str, *, done_at_s: float | None, log_bytes: int = 0) -> AttemptDir:
    attempt = AttemptDir.make(attempts, name)
    attempt.write_claim({"name": name})
    attempt.log.write_bytes(b"x" * log_bytes)
    (attempt.path / "work" / "deep").mkdir(parents=True)
    (attempt.path / "work" / "deep" / "file").write_text("kept by the task")
    if done_at_s is not None:
        attempt.write_done({})
        os.utime(attempt.path / "done", (done_at_s, done_at_s))
    return attempt


def test_sweep_keeps_a_day_and_never_what_is_not_done(tmp_path: Path) -> None:
    now_s = 10 * DAY_S
    _attempt(tmp_path, "old", done_at_s=now_s - DAY_S)
    _attempt(tmp_path, "young", done_at_s=now_s - DAY_S + 1)
    running = _attempt(tmp_path, "running", done_at_s=None)
    os.utime(running.path, (0, 0))
    swept = sweep(tmp_path, now_s)
    assert (swept.removed, swept.failed) == (["old"], {})
    assert sorted(one.attempt_id for one in attempt_dirs(tmp_path)) == ["running", "young"]


def test_sweep_removes_the_oldest_above_the_bound(tmp_path: Path) -> None:
    now_s = 10 * DAY_S
    for number in range(4):
        _attempt(tmp_path, f"a{number}", done_at_s=now_s - 100 + number, log_bytes=1 << 20)
    _attempt(tmp_path, "running", done_at_s=None, log_bytes=8 << 20)
    measured: dict[str, tuple[float, int]] = {}
    swept = sweep(tmp_path, now_s, most_bytes=(2 << 20) + (1 << 19), measured=measured)
    assert swept.removed == ["a0", "a1"]
    assert swept.kept_bytes <= (2 << 20) + (1 << 19)
    assert sorted(measured) == ["a2", "a3"]
    again = sweep(tmp_path, now_s, most_bytes=(2 << 20) + (1 << 19), measured=measured)
    assert (again.removed, again.kept_bytes) == ([], swept.kept_bytes)


def test_sweep_goes_on_after_a_removal_cut_short(tmp_path: Path) -> None:
    attempt = _attempt(tmp_path, "half", done_at_s=1.0)
    attempt.path.rename(tmp_path / ".gone.half")
    (tmp_path / ".gone.half" / "done").unlink()
    assert attempt_dirs(tmp_path) == []
    assert sweep(tmp_path, DAY_S).failed == {}
    assert list(tmp_path.iterdir()) == []
    assert sweep(tmp_path / "nowhere", DAY_S).removed == []


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, whom permissions bind")
def test_sweep_removes_what_a_task_left_read_only(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    for parent in tmp_path.parents:
        os.chmod(parent, os.stat(parent).st_mode | 0o001)

    def work() -> list[str]:
        os.setgid(65534)
        os.setuid(65534)
        attempt = _attempt(tmp_path / "attempts", "cache", done_at_s=1.0)
        os.chmod(attempt.path / "work" / "deep", 0o500)
        os.chmod(attempt.path / "work", 0o000)
        os.chmod(attempt.path / "work", 0o100)
        swept = sweep(tmp_path / "attempts", 1000.0, keep_s=1)
        return [*swept.removed, *swept.failed.values(), *os.listdir(tmp_path / "attempts")]

    assert as_supervisor(work) == ["cache"]


def test_stop_file_has_the_fields_and_is_whole_before_the_signal(tmp_path: Path) -> None:
    path = tmp_path / "stop"
    script = "trap 'cp stop seen; exit 0' TERM; touch ready; while :; do sleep 0.02; done"
    notice = StopNotice(
        cause="preempted",
        reason="Preempted by higher-priority work (urgent)",
        signal="SIGTERM",
        grace_seconds=120.0,
        deadline_s=1_791_383_530.5124,
        attempt=2,
        restarts=True,
    )
    with subprocess.Popen(["sh", "-c", script], cwd=tmp_path) as task:
        wait_until((tmp_path / "ready").exists)
        write_stop_file(path, notice)
        task.terminate()
        assert task.wait(5) == 0
    text = (tmp_path / "seen").read_text()
    assert json.loads(text) == {
        "cause": "preempted",
        "reason": "Preempted by higher-priority work (urgent)",
        "signal": "SIGTERM",
        "grace_seconds": 120,
        "deadline": "2026-10-07T14:32:10.512Z",
        "attempt": 2,
        "restarts": True,
    }
    assert text.index("cause") < text.index("reason") < text.index("deadline") < text.index("restarts")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_fork_that_does_not_exec_keeps_the_lock(attempt: AttemptDir) -> None:
    """Why nothing that holds a lock may fork without exec: the lock belongs to the open file, which both then have."""

    def work() -> bool:
        lock = attempt.take_alive()
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write_end)
            os.read(read_end, 1)
            os._exit(0)
        lock.release()
        still = attempt.is_alive()
        os.close(write_end)
        os.waitpid(child, 0)
        return still and not attempt.is_alive()

    assert as_supervisor(work)
