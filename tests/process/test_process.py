"""Real commands, real signals: started, told apart when they cannot be, and killed whole."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stado_worker.shim import process_table
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.environment import build
from stado_worker.shim.exit_status import decode
from stado_worker.shim.process import Child, CouldNotStart, StartFault, Tree, kill_attempt, start
from tests.process.as_supervisor import as_supervisor, dead, pids_in, wait_until

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and trees as Linux has them"),
]
ENV = {"PATH": os.environ["PATH"]}
NAME = f"stado-test-process-{os.getpid()}"


def _group_possible() -> bool:
    group = AttemptGroup.make(NAME + "-probe")
    if group is None:
        return False
    return group.remove()


WAYS = [
    pytest.param(
        True, id="cgroup", marks=pytest.mark.skipif(not _group_possible(), reason="no group can be made here")
    ),
    pytest.param(False, id="descendants"),
]


def run(
    command: list[str], cwd: Path, *, grouped: bool = False, env: dict[str, str] | None = None
) -> tuple[Child, Tree]:
    """Start in the calling supervisor, output to `<cwd>/log`."""
    group = AttemptGroup.join(f"{NAME}-{os.getpid()}") if grouped else None
    assert (group is not None) == grouped
    log = os.open(cwd / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = start(command, cwd=str(cwd), env=env or ENV, log_fd=log, group=group, attempt_id=f"t.{cwd.name}.1")
    os.close(log)
    return child, Tree(child, group)


def finish(tree: Tree, within_s: float = 5.0) -> dict[str, Any]:
    ended = tree.kill_and_reap(within_s)
    removed = tree.group.remove() if tree.group is not None else True
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert ended.status is not None
    end = decode(ended.status)
    return {
        "exit": end.exit_code,
        "signal": end.signal_name,
        "leftovers": ended.leftovers,
        "stuck": list(ended.stuck),
        "removed": removed,
    }


def ran(work: Callable[[], Any]) -> Any:
    return as_supervisor(work)


@pytest.mark.parametrize("grouped", WAYS)
def test_output_of_both_streams_reaches_the_log_and_input_is_empty(tmp_path: Path, grouped: bool) -> None:
    def work() -> Any:
        child, tree = run(["sh", "-c", "echo out; echo err >&2; cat; exit 7"], tmp_path, grouped=grouped)
        assert child.wait(5) is not None
        return finish(tree)

    assert ran(work) == {"exit": 7, "signal": None, "leftovers": 0, "stuck": [], "removed": True}
    assert (tmp_path / "log").read_bytes() == b"out\nerr\n"


@pytest.mark.parametrize("grouped", WAYS)
def test_leader_gone_grandchild_holds_output_is_over_at_once(tmp_path: Path, grouped: bool) -> None:
    """Case: the time limit passes and the runner hangs, for a grandchild keeps stdout open: `sh -c 'sleep 300 & exit
    0'` is over within 2 s of the leader's exit, the leftover group killed, its number noted.
    """

    def work() -> Any:
        child, tree = run(["sh", "-c", "sleep 300 & echo $! > pids; exit 0"], tmp_path, grouped=grouped)
        assert child.wait(5) is not None
        since = time.monotonic()
        end = finish(tree, 2.0)
        return [end, time.monotonic() - since < 2.0]

    assert ran(work) == [{"exit": 0, "signal": None, "leftovers": 1, "stuck": [], "removed": True}, True]
    assert dead(pids_in(tmp_path / "pids", 1))


@pytest.mark.parametrize("grouped", WAYS)
def test_setsid_grandchildren_die_with_the_tree(tmp_path: Path, grouped: bool) -> None:
    """Children that called setsid twice over, and one whose parent is gone, are of the tree all the same."""
    script = (
        "setsid sh -c 'echo $$ >> pids; setsid sleep 301 & echo $! >> pids; wait' &"
        "(setsid sh -c 'echo $$ >> pids; exec sleep 302' &) ; wait"
    )

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path, grouped=grouped)
        pids = pids_in(tmp_path / "pids", 3)
        assert set(pids) < tree.alive_pids()
        assert child.poll() is None
        return finish(tree)

    end = ran(work)
    assert (end["exit"], end["signal"], end["stuck"], end["removed"]) == (137, "SIGKILL", [], True)
    assert end["leftovers"] >= 3
    assert dead(pids_in(tmp_path / "pids", 3))


@pytest.mark.parametrize("grouped", WAYS)
def test_term_ignored_then_killed(tmp_path: Path, grouped: bool) -> None:
    """Case: a child that ignores SIGTERM: the room stays taken until the whole group is gone."""

    def work() -> Any:
        script = "trap '' TERM; echo ready > ready; while :; do sleep 1; done"
        child, tree = run(["sh", "-c", script], tmp_path, grouped=grouped)
        wait_until((tmp_path / "ready").exists)
        assert tree.signal(signal.SIGTERM)
        assert child.wait(0.3) is None
        assert tree.alive_pids()
        return finish(tree)

    end = ran(work)
    assert (end["exit"], end["signal"], end["stuck"]) == (137, "SIGKILL", [])


def test_signal_reaches_the_whole_group(tmp_path: Path) -> None:
    script = "sh -c 'trap \"echo inner >> got; exit 3\" TERM; echo >> ready; while :; do sleep 0.05; done' & " + (
        "trap 'echo outer >> got; wait; exit 4' TERM; echo >> ready; wait"
    )

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path)
        wait_until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text().count("\n") == 2)
        assert tree.signal(signal.SIGTERM)
        assert child.wait(5) is not None
        return finish(tree)

    assert ran(work)["exit"] == 4
    assert sorted((tmp_path / "got").read_text().split()) == ["inner", "outer"]


def test_zombie_leader_counts_as_exited(tmp_path: Path) -> None:
    """Case: a stop says 0 stopped although all are dead: a zombie leader is treated as exited."""

    def work() -> Any:
        child, tree = run(["sh", "-c", "exit 5"], tmp_path)
        wait_until(lambda: not process_table.is_alive(child.pid))
        assert Path(f"/proc/{child.pid}").exists(), "it is a zombie, and keeps its pid until it is reaped"
        assert tree.alive_pids() == set()
        assert process_table.same_process(child.pid, child.started) is False
        assert child.poll() == 5 << 8
        end = finish(tree)
        assert not tree.signal(signal.SIGTERM), "its pid may name another process now"
        return end

    assert ran(work)["exit"] == 5


@pytest.mark.parametrize(
    ("script", "exit_code", "signal_name"),
    [("exit 137", 137, None), ("kill -15 $$", 143, "SIGTERM"), ("kill -9 $$", 137, "SIGKILL")],
)
def test_exit_137_by_itself_and_death_by_signal_differ(
    tmp_path: Path, script: str, exit_code: int, signal_name: str | None
) -> None:
    """Case: a step that was killed recorded as success: SIGKILLed is failed, exit 137, signal SIGKILL."""

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path)
        assert child.wait(5) is not None
        return finish(tree)

    end = ran(work)
    assert (end["exit"], end["signal"]) == (exit_code, signal_name)


def test_orphans_are_reaped_while_the_leader_runs(tmp_path: Path) -> None:
    def work() -> Any:
        child, tree = run(
            ["sh", "-c", "(sh -c 'echo $$ >> pids' &); (sh -c 'echo $$ >> pids' &); exec sleep 303"], tmp_path
        )
        pids = pids_in(tmp_path / "pids", 2)

        def gone() -> bool:
            tree.reap_orphans()
            return not any(Path(f"/proc/{pid}").exists() for pid in pids)

        wait_until(gone)
        assert child.poll() is None
        return finish(tree)

    assert ran(work)["leftovers"] == 0


def _refusal(
    tmp_path: Path, command: list[str], cwd: str | None = None, env: dict[str, str] | None = None
) -> CouldNotStart:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        with pytest.raises(CouldNotStart) as caught:
            start(command, cwd=cwd or str(tmp_path), env=env or ENV, log_fd=log, group=None, attempt_id="t.1")
    finally:
        os.close(log)
    assert os.uname().nodename in caught.value.message
    return caught.value


def test_missing_directory_has_no_exit_code(tmp_path: Path) -> None:
    refusal = _refusal(tmp_path, ["true"], cwd=str(tmp_path / "nowhere"))
    assert (refusal.fault, refusal.command_exit) == (StartFault.DIRECTORY, None)
    assert str(tmp_path / "nowhere") in refusal.message
    (tmp_path / "file").touch()
    assert "is not a directory" in _refusal(tmp_path, ["true"], cwd=str(tmp_path / "file")).message


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "./missing", "/etc/hostname/x"])
def test_command_not_found_is_127(tmp_path: Path, command: str) -> None:
    refusal = _refusal(tmp_path, [command])
    assert (refusal.fault, refusal.command_exit) == (StartFault.NOT_FOUND, 127)
    assert command in refusal.message


@pytest.mark.parametrize(
    ("body", "mode", "said"),
    [
        ("#!/bin/sh\n", 0o644, "ermission denied"),
        ("echo no interpreter line\n", 0o755, "no interpreter line"),
        ("#!/no/such/interpreter -x\n", 0o755, "'/no/such/interpreter' does not exist"),
        ("#!/bin/sh\r\necho\r\n", 0o755, "'/bin/sh\\r' does not exist"),
        ("\x7fELF and nothing more", 0o755, "no interpreter line"),
    ],
)
def test_not_executable_is_126(tmp_path: Path, body: str, mode: int, said: str) -> None:
    script = tmp_path / "script"
    script.write_bytes(body.encode())
    script.chmod(mode)
    refusal = _refusal(tmp_path, ["./script"])
    assert (refusal.fault, refusal.command_exit) == (StartFault.NOT_EXECUTABLE, 126)
    assert said in refusal.message


def test_directory_as_command_is_126(tmp_path: Path) -> None:
    refusal = _refusal(tmp_path, [str(tmp_path)])
    assert (refusal.command_exit, "it is a directory" in refusal.message) == (126, True)


def test_too_long_and_nul_are_told(tmp_path: Path) -> None:
    refusal = _refusal(tmp_path, ["true", "x" * (200 << 10)])
    assert (refusal.fault, refusal.command_exit) == (StartFault.TOO_LONG, 126)
    assert _refusal(tmp_path, ["true", "a\0b"]).command_exit == 126


def test_command_is_found_in_the_jobs_own_path(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    def work() -> Any:
        child, tree = run(["tool"], tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
        assert child.wait(5) == 0
        return finish(tree)

    ran(work)
    assert (tmp_path / "log").read_text() == "mine\n"


@pytest.mark.parametrize("grouped", WAYS)
def test_a_variable_of_120_kib_arrives_unchanged(tmp_path: Path, grouped: bool) -> None:
    value = "ż" * (60 << 10)

    def work() -> Any:
        command = ["sh", "-c", 'printf %s "$BIG"']
        child, tree = run(command, tmp_path, grouped=grouped, env={**ENV, "BIG": value})
        assert child.wait(5) == 0
        return finish(tree)

    ran(work)
    assert (tmp_path / "log").read_bytes() == value.encode()


def test_bytes_are_kept_under_the_c_locale(tmp_path: Path) -> None:
    """Case: an encoding error in the log writer: `LC_ALL=C`, the job prints `zażółć`: no error, bytes kept."""

    def work() -> Any:
        child, tree = run(["printf", "%s", "zażółć"], tmp_path, env={**ENV, "LC_ALL": "C"})
        assert child.wait(5) == 0
        return finish(tree)

    ran(work)
    assert (tmp_path / "log").read_bytes() == "zażółć".encode()


def test_a_line_of_10_mib_is_kept_whole(tmp_path: Path) -> None:
    """Case: the log task dies on a long line: one 10 MiB line without newline is stored whole, exit 0."""

    def work() -> Any:
        child, tree = run(["sh", "-c", "head -c 10485760 /dev/zero | tr '\\0' x"], tmp_path)
        assert child.wait(10) == 0
        return finish(tree)

    ran(work)
    assert (tmp_path / "log").stat().st_size == 10 << 20


@pytest.mark.parametrize("grouped", WAYS)
def test_signals_are_as_a_shell_would_have_them(tmp_path: Path, grouped: bool) -> None:
    """SIGPIPE and SIGXFSZ (which Python ignores), and what the worker ignored or blocked, are default and unblocked."""

    def work() -> Any:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        child, tree = run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], tmp_path, grouped=grouped)
        assert child.wait(5) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGUSR1}
        return finish(tree)

    ran(work)
    assert (tmp_path / "log").read_text().split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]


@pytest.mark.parametrize("grouped", WAYS)
def test_nothing_of_ours_is_inherited(tmp_path: Path, grouped: bool) -> None:
    def work() -> Any:
        extra = os.open(tmp_path, os.O_RDONLY)
        os.set_inheritable(extra, True)
        child, tree = run(["sh", "-c", "ls /proc/$$/fd; ps -o sid= -p $$; echo $$"], tmp_path, grouped=grouped)
        assert child.wait(5) == 0
        return finish(tree)

    ran(work)
    *descriptors, session, pid = (tmp_path / "log").read_text().split()
    assert set(descriptors) <= {"0", "1", "2", "10"}, "10 is the shell's own"
    assert session == pid


def test_belt_leader_dies_with_its_supervisor(tmp_path: Path) -> None:
    """Without a control group the leader asks the kernel to die with the supervisor."""
    pid_file = tmp_path / "leader"

    def work() -> Any:
        child, _tree = run(["sleep", "304"], tmp_path)
        pid_file.write_text(str(child.pid))
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ValueError, match="Expecting value"):
        ran(work)
    wait_until(lambda: dead(pids_in(pid_file, 1)))


@pytest.mark.parametrize("grouped", WAYS)
def test_kill_attempt_after_a_dead_supervisor_leaves_nothing(tmp_path: Path, grouped: bool) -> None:
    """kill -9 of a supervisor whose children called setsid: nothing of it is left. Case: orphans survive a killed
    worker.
    """
    script = (
        "echo $$ >> pids; setsid sleep 305 & echo $! >> pids; (setsid sh -c 'echo $$ >> pids; exec sleep 306' &) ; wait"
    )

    def work() -> Any:
        run(["sh", "-c", script], tmp_path, grouped=grouped)
        pids_in(tmp_path / "pids", 3)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ValueError, match="Expecting value"):
        ran(work)
    pids = pids_in(tmp_path / "pids", 3)
    survivors = [pid for pid in pids if process_table.is_alive(pid)]
    assert survivors, "children in sessions of their own outlive a plain kill -9: or this test shows nothing"
    names = [path.name for path in _groups_of_this_test()]
    assert len(names) == (1 if grouped else 0)
    found = kill_attempt(f"t.{tmp_path.name}.1", names[0] if names else None)
    assert found.stuck == ()
    assert set(survivors) <= set(found.killed)
    assert dead(pids)
    assert _groups_of_this_test() == []
    assert kill_attempt(f"t.{tmp_path.name}.1", names[0] if names else None).killed == ()


def _groups_of_this_test() -> list[Path]:
    from stado_worker.machine.hierarchies import version_two

    tree = version_two()
    return sorted(tree.group.glob(f"{NAME}-[0-9]*")) if tree is not None else []


def test_kill_attempt_spares_the_same_id_of_another_store(tmp_path: Path) -> None:
    """Two workers on one machine with different stores may run attempts of one id: the stop file's path tells them
    apart.
    """

    def work() -> Any:
        ours, tree = run(["sleep", "307"], tmp_path, env={**ENV, "STADO_STOP_FILE": "/ours"})
        log = os.open(os.devnull, os.O_WRONLY)
        env = {**ENV, "STADO_STOP_FILE": "/theirs"}
        theirs = start(["sleep", "308"], cwd="/", env=env, log_fd=log, group=None, attempt_id=f"t.{tmp_path.name}.1")
        found = kill_attempt(f"t.{tmp_path.name}.1", None, marks={"STADO_STOP_FILE": "/ours"})
        assert found.killed == (ours.pid,)
        assert theirs.poll() is None
        return finish(tree)

    assert ran(work)["leftovers"] == 1


def test_kill_attempt_finds_children_that_dropped_the_environment(tmp_path: Path) -> None:
    def work() -> Any:
        _child, tree = run(["sh", "-c", "env -i /bin/sleep 309 & echo $! >> pids; wait"], tmp_path)
        pids = pids_in(tmp_path / "pids", 1)
        found = kill_attempt(f"t.{tmp_path.name}.1", None)
        assert set(pids) <= set(found.killed)
        return finish(tree)

    assert ran(work)["leftovers"] == 0


def test_an_unreadable_start_time_is_unknown_not_reused() -> None:
    """Case: a live process declared reused, for its start time was unreadable on one side: that is "unknown"."""
    own = process_table.started_ticks(os.getpid())
    assert process_table.same_process(os.getpid(), own) is True
    assert process_table.same_process(os.getpid(), None) is None
    assert process_table.same_process(os.getpid(), (own or 0) + 1) is False


@pytest.mark.parametrize("grouped", WAYS)
def test_a_tree_that_forks_away_is_caught(tmp_path: Path, grouped: bool) -> None:
    """Each process starts its successor in a new session and ends: no look at pids is ever up to date."""
    script = (
        "import os, time\n"
        "while True:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid(); open('hops', 'a').write('x'); time.sleep(0.003)\n"
    )

    def work() -> Any:
        child, tree = run([sys.executable, "-S", "-c", script], tmp_path, grouped=grouped)
        wait_until(lambda: (tmp_path / "hops").exists() and (tmp_path / "hops").stat().st_size > 20)
        assert child.wait(5) == 0
        return finish(tree)

    end = ran(work)
    assert (end["exit"], end["stuck"]) == (0, [])
    assert end["leftovers"] >= 1


def test_environment_passes_on_a_short_list_only() -> None:
    """Never the worker's credentials or Python paths; job over worker, ours over the job, RANK the job's if it says
    so.
    """
    worker = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_TIME": "C",
        "AWS_SECRET_ACCESS_KEY": "s",
        "PYTHONPATH": "/p",
        "FOO": "1",
    }
    job = {"HOME": "/j", "RANK": "7", "STADO_ATTEMPT_ID": "forged", "AWS_PROFILE": "own"}
    told = {"STADO_ATTEMPT_ID": "a", "STADO_ATTEMPT": "2", "RANK": "0", "WORLD_SIZE": "2"}
    assert build(worker, job, told) == {
        "PATH": "/bin",
        "HOME": "/j",
        "LC_TIME": "C",
        "AWS_PROFILE": "own",
        "RANK": "7",
        "WORLD_SIZE": "2",
        "STADO_ATTEMPT_ID": "a",
        "STADO_ATTEMPT": "2",
        "ASTRAEUS_ATTEMPT_ID": "a",
        "ASTRAEUS_ATTEMPT": "2",
    }
    assert build({}, {}, {})["PATH"], "a command must be found even under a worker without PATH"
