"""Commands started, told apart when they cannot be, and given only what is theirs."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from stado_worker.shim.environment import build
from stado_worker.shim.process import CouldNotStart, StartFault, start
from tests.process.as_supervisor import as_supervisor
from tests.process.commands import ENV, WAYS, finish, run

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and trees as Linux has them"),
]


@pytest.mark.parametrize("grouped", WAYS)
def test_output_of_both_streams_reaches_the_log_and_input_is_empty(tmp_path: Path, grouped: bool) -> None:
    def work() -> Any:
        child, tree = run(["sh", "-c", "echo out; echo err >&2; cat; exit 7"], tmp_path, grouped=grouped)
        assert child.wait(5) is not None
        return finish(tree)

    assert as_supervisor(work) == {"exit": 7, "signal": None, "leftovers": 0, "stuck": [], "removed": True}
    assert (tmp_path / "log").read_bytes() == b"out\nerr\n"


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

    as_supervisor(work)
    assert (tmp_path / "log").read_text() == "mine\n"


@pytest.mark.parametrize("grouped", WAYS)
def test_a_variable_of_120_kib_arrives_unchanged(tmp_path: Path, grouped: bool) -> None:
    value = "ż" * (60 << 10)

    def work() -> Any:
        command = ["sh", "-c", 'printf %s "$BIG"']
        child, tree = run(command, tmp_path, grouped=grouped, env={**ENV, "BIG": value})
        assert child.wait(5) == 0
        return finish(tree)

    as_supervisor(work)
    assert (tmp_path / "log").read_bytes() == value.encode()


def test_bytes_are_kept_under_the_c_locale(tmp_path: Path) -> None:
    """Case: an encoding error in the log writer: `LC_ALL=C`, the job prints `zażółć`: no error, bytes kept."""

    def work() -> Any:
        child, tree = run(["printf", "%s", "zażółć"], tmp_path, env={**ENV, "LC_ALL": "C"})
        assert child.wait(5) == 0
        return finish(tree)

    as_supervisor(work)
    assert (tmp_path / "log").read_bytes() == "zażółć".encode()


def test_a_line_of_10_mib_is_kept_whole(tmp_path: Path) -> None:
    """Case: the log task dies on a long line: one 10 MiB line without newline is stored whole, exit 0."""

    def work() -> Any:
        child, tree = run(["sh", "-c", "head -c 10485760 /dev/zero | tr '\\0' x"], tmp_path)
        assert child.wait(10) == 0
        return finish(tree)

    as_supervisor(work)
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

    as_supervisor(work)
    assert (tmp_path / "log").read_text().split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]


@pytest.mark.parametrize("grouped", WAYS)
def test_nothing_of_ours_is_inherited(tmp_path: Path, grouped: bool) -> None:
    def work() -> Any:
        extra = os.open(tmp_path, os.O_RDONLY)
        os.set_inheritable(extra, True)
        child, tree = run(["sh", "-c", "ls /proc/$$/fd; ps -o sid= -p $$; echo $$"], tmp_path, grouped=grouped)
        assert child.wait(5) == 0
        return finish(tree)

    as_supervisor(work)
    *descriptors, session, pid = (tmp_path / "log").read_text().split()
    assert set(descriptors) <= {"0", "1", "2", "10"}, "10 is the shell's own"
    assert session == pid


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
