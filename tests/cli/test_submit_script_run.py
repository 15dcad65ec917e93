"""Scripts, lines and variables as they arrive: jobs submitted by the command line and run by a real worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stado_like.client import Client

pytestmark = pytest.mark.serial


def stado(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "stado_cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_what_runs_is_what_was_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that is edited while its job waits: the job runs the text that was submitted, in the submitter's
    directory, with its arguments and its name; so does a script of another language, from a file of its own.
    """
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "go.sh").write_text('#!/bin/bash -eu\npwd; echo "$0|$1|$#|$A"; false || echo kept\n')
    (tmp_path / "go.py").write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "print(sys.argv[1:], os.path.basename(__file__), os.getcwd())\nsys.exit(3)\n"
    )
    (tmp_path / "lines").write_text("a  b\n\n$HOME\n")
    value = "one\n two 'x' \"$y\" \\ é"
    for words in (
        ("-J", "shell", "-e", f"A={value}", "go.sh", "a b", "--c"),
        ("-J", "python", "--restarts", "0", "./go.py", "a b"),
        ("-J", "lines", "--each-line", "lines", "printf", "<%s>", "{}"),
    ):
        done = stado("submit", *words)
        assert done.returncode == 0, done.stderr
    (tmp_path / "go.sh").write_text("echo another one\n")
    (tmp_path / "go.py").unlink()
    worked = stado("worker", "start", "--until-idle", "0.5s", "--cpus", "4", "--memory", "8GiB")
    assert worked.returncode == 0, worked.stderr
    with Client() as client:
        assert client.job("shell").wait(30) == "Completed"
        assert client.logs("shell") == f"{tmp_path}\ngo.sh|a b|2|{value}\nkept\n"
        assert client.job("python").wait(30) == "Failed"
        assert client.logs("python") == f"['a b'] go.py {tmp_path}\n"
        assert client.view("python").tasks[0].exit_code == 3
        assert client.job("lines").wait(30) == "Completed"
        assert [client.logs("lines", task=rank) for rank in range(2)] == ["<a  b>", "<$HOME>"]
