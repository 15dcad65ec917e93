"""Every option of `job submit`: what it puts into the document, what is said back, and what is refused by its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from stado_cli.commands.job_submit import command
from stado_cli.submit_command import FORMS
from stado_cli.submit_options import GROUPS, SECTIONS
from stado_like.asking import moments
from stado_like.job.spec import units
from tests.cli.conftest import Said, Stado

T = "spec.task_template"
R = f"{T}.requested_resources"
L = f"{T}.resilience"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def dry(stado: Stado, *words: str, stdin: bytes = b"") -> Said:
    return stado("job", "submit", "--dry-run", "--json", *words, stdin=stdin)


TABLE: list[tuple[list[str], dict[str, Any], str]] = [
    (["-J", "a"], {"metadata.name": "a"}, ""),
    (["--name", "a"], {"metadata.name": "a"}, ""),
    (["-w", "lab"], {"metadata.workspace": "lab"}, ""),
    (["--label", "k=v", "--label", "x="], {"metadata.labels": {"k": "v", "x": ""}}, ""),
    (["-p", "-7"], {"spec.priority": -7}, ""),
    (["--image", "busybox"], {f"{T}.image": "busybox"}, ""),
    (["-e", "A=1=2", "--env", "B="], {f"{T}.env": {"A": "1=2", "B": ""}}, ""),
    (
        ["-c", "2.5", "-m", "16G"],
        {f"{R}.cpu_cores": 2.5, f"{R}.memory_bytes": 16 << 30},
        "memory: 16 GiB per task",
    ),
    (["-c", "1", "-m", "24GB"], {f"{R}.memory_bytes": 24 * 10**9}, "memory: 24 GB (22.35 GiB) per task"),
    (
        ["-c", "1", "-m", "4096"],
        {f"{R}.memory_bytes": 4096},
        "memory: 4 KiB per task\n4096 without a unit is 4096 bytes; write 4096MiB for 4 GiB",
    ),
    (["-G", "4"], {f"{R}.gpu_requests.count": 4}, ""),
    (["--gpus", "H100:4"], {f"{R}.gpu_requests.count": 4, f"{R}.gpu_requests.models": ["H100"]}, ""),
    (["-G", "1", "--gpu-model", "A", "--gpu-model", "B"], {f"{R}.gpu_requests.models": ["A", "B"]}, ""),
    (
        ["-G", "1", "--gpu-memory", "80GB"],
        {f"{R}.gpu_requests.min_memory_gb": 80},
        "GPU memory: at least 80 GB each",
    ),
    (["-N", "2"], {f"{R}.machines": 2, "spec.start": "Independent"}, ""),
    (["--gang", "-N", "2"], {"spec.start": "Gang", "spec.on_failure": "RestartJob"}, ""),
    (["-a", "3"], {"spec.array.size": 3, "spec.array.indices": None}, "array: 3 tasks, indices 0 to 2"),
    (
        ["-a", "0-9%4"],
        {"spec.array.size": 10, "spec.array.max_parallel": 4, "spec.array.indices": None},
        "array: 10 tasks, indices 0 to 9, at most 4 at once",
    ),
    (
        ["--array", "1-5:2"],
        {"spec.array.size": 3, "spec.array.indices": [1, 3, 5]},
        "array: 3 tasks, indices 1, 3, 5",
    ),
    (["-t", "4:00"], {f"{T}.time_limit_seconds": 240}, "time limit: 4 minutes"),
    (["--time", "2-12"], {f"{T}.time_limit_seconds": 216_000}, "time limit: 2 days 12 hours"),
    (
        ["--deadline", "2099-01-31 12:00"],
        {"spec.deadline": "2099-01-31T12:00:00Z"},
        "deadline: 2099-01-31 12:00:00 UTC",
    ),
    (
        ["--scheduling-timeout", "90m"],
        {"spec.scheduling_timeout_seconds": 5400},
        "scheduling timeout: 1 hour 30 minutes",
    ),
    (["--restarts", "3"], {f"{L}.max_restarts": 3, f"{T}.restart_policy": "OnFailure"}, ""),
    (["--max-task-failures", "2"], {"spec.max_task_failures": 2}, ""),
    (["--stop-signal", "usr1"], {f"{L}.stop_signal": "SIGUSR1"}, ""),
    (["--stop-grace", "2m"], {f"{T}.stop_grace_seconds": 120}, "stop grace: 2 minutes"),
    (["--min-runtime", "30m"], {f"{L}.preemptible_after_seconds": 1800}, "minimum runtime: 30 minutes"),
    (
        ["--signal", "USR1@120", "-t", "1h"],
        {f"{L}.signal_before_limit": {"signal": "SIGUSR1", "seconds": 120}},
        "time limit: 1 hour\nsignal: SIGUSR1 2 minutes before the time limit",
    ),
    (["--stall-after", "10m"], {f"{L}.stall.after_seconds": 600}, "stalled after: 10 minutes"),
    (["--restart-stalled"], {f"{L}.stall.restart": True}, ""),
    (["--pinned-host", "w-1"], {"spec.pinned_host": "w-1"}, ""),
    (["--exclusive"], {"spec.exclusive": True}, ""),
    (["--resident"], {"spec.resident": True}, ""),
    (["--terminates-agent"], {"spec.terminates_agent": True}, ""),
    (["--checkpoint-dir", "ckpt"], {f"{T}.checkpoint.dir": "ckpt"}, ""),
    (["--collect", "out/", "--collect", "m.json"], {"spec.collect": ["out/", "m.json"]}, ""),
    (
        ["--torchrun", "-G", "8"],
        {f"{T}.command": "torchrun", f"{T}.args": ["--standalone", "--nproc-per-node=8", "prog", "--x", "$y"]},
        "torchrun: torchrun --standalone --nproc-per-node=8 prog --x $y",
    ),
    (
        ["--torchrun", "-G", "8", "-N", "2"],
        {f"{T}.command": "bash", "spec.start": "Gang"},
        "torchrun: torchrun prog --x $y on each machine, started together",
    ),
]


@pytest.mark.parametrize(("words", "stored", "echo"), TABLE, ids=lambda one: " ".join(one) if one is list else None)
def test_option_is_stored_and_said_back(
    stado: Stado, here: Path, words: list[str], stored: dict[str, Any], echo: str
) -> None:
    """24GB asked, 22,888 MiB given: what was understood is echoed, and stands in the record."""
    said = dry(stado, *words, "--", "prog", "--x", "$y")
    assert said.code == 0, said.err
    assert {path: at(said.value, path) for path in stored} == stored
    told = [line for line in said.err.splitlines() if not line.startswith("accepted, not yet acted upon")]
    assert told == echo.splitlines()
    assert list(here.iterdir()) == [], "a dry run wrote something"


def test_every_option_is_in_the_table_or_has_a_test_of_its_own() -> None:
    elsewhere = {"file", "from_sbatch", "workdir", "env_file", "each_line", "request_id", "after", "detached"}
    listed = {names.split()[-1] for group in GROUPS.values() for names, _, _ in group}
    shorts = {names.split()[0]: names.split()[-1] for group in GROUPS.values() for names, _, _ in group}
    tried = {shorts.get(word, word) for words, _, _ in TABLE for word in words}
    assert {f"--{one.replace('_', '-')}" for one in elsewhere} | tried >= listed


def test_help_names_every_form_and_what_is_per_task() -> None:
    """The format accepted differs from the help text elsewhere: here both come from one place."""
    with click.Context(command, info_name="submit", terminal_width=400, max_content_width=400) as context:
        text = command.get_help(context)
    for form in (units.DURATION_FORMS, units.SIZE_FORMS, units.ARRAY_FORMS, moments.FORMS, *FORMS.values()):
        assert form in text
    assert "Memory per task" in text and "Cores per task" in text and "the run's total" in text
    assert text.count("\n  -J, --name") == 1 and "what was submitted" in text
    sections = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections[:-2] == list(SECTIONS) and sections[-2:] == ["Options", "Forms"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-a", "3", "--gang"], ["--array", "--gang"]),
        (["-a", "3", "--each-line", "f"], ["--array", "--each-line"]),
        (["--each-line", "f", "--gang"], ["--each-line", "--gang"]),
        (["-a", "3", "-N", "2"], ["--array", "--machines"]),
        (["-G", "H100:2", "--gpu-model", "A100"], ["--gpus H100:2", "--gpu-model"]),
        (["--gpu-model", "H100"], ["--gpu-model", "--gpus"]),
        (["--gpu-memory", "80"], ["--gpu-memory", "--gpus"]),
        (["--signal", "USR1@60"], ["--signal", "--time"]),
        (["-f", "-", "--each-line", "-"], ["--file", "--each-line", "standard input"]),
        (["-f", "r.yaml", "--from-sbatch", "f"], ["--from-sbatch", "--file"]),
        (["-t", "4h:00"], ["Accepted forms", "2-12:30:15"]),
        (["-m", "16Q"], ["Accepted forms", "16GiB"]),
        (["-a", "0-10000"], ["at most 10000"]),
        (["-a", "1-10:0"], ["Accepted forms", "1,3,7"]),
        (["--deadline", "tomorrow"], ["Accepted forms", "+2h"]),
        (["--deadline", "2020-01-01 00:00"], ["passed", "ago"]),
        (["-G", "many"], ["H100:4"]),
        (["--after", "a:Running"], ["JOB:Failed"]),
        (["-e", "NOT_SET_HERE"], ["NOT_SET_HERE"]),
        (["--label", "k"], ["KEY=VALUE"]),
        (["--ram", "8G"], ["--memory"]),
        (["--provider", "aws"], ["no option --provider"]),
    ],
    ids=lambda one: " ".join(one),
)
def test_words_that_mean_nothing_are_refused_before_anything_is_written(
    stado: Stado, here: Path, words: list[str], named: list[str]
) -> None:
    (here / "f").write_text("a\n")
    said = stado("job", "submit", "--json", *words, "--", "true")
    assert said.code == 2
    assert set(said.error) == {"code", "message", "detail", "next_step"}
    told = " ".join([said.error["message"], said.error["next_step"], *said.error["detail"]])
    assert [one for one in named if one not in told] == []
    assert said.out == "" and "Traceback" not in said.err
    assert [path.name for path in here.iterdir()] == ["f"]


def test_what_nothing_acts_upon_yet_is_said(stado: Stado) -> None:
    said = stado("job", "submit", "--json", "-J", "a", "--image", "busybox", "--", "true")
    assert said.code == 0
    assert [line for line in said.err.splitlines() if line.startswith("accepted, not yet acted upon: ")]
    assert "not yet" not in said.out


def test_nothing_is_said_of_a_plain_job(stado: Stado) -> None:
    said = stado("job", "submit", "-J", "a", "--", "true")
    assert (said.code, said.out, said.err) == (0, "a\n", "")


def test_dry_run_prints_a_document_that_is_accepted_again(stado: Stado, here: Path) -> None:
    (here / "go.sh").write_text('#!/bin/bash\nset -e\n  no: "yes"  # 0x10\n\necho 1e3\n')
    words = [
        "-J",
        "a",
        "-e",
        "A=no",
        "-e",
        "B=1e3",
        "-e",
        "C= x\ny ",
        "-e",
        "D=0o17",
        "-a",
        "1,3",
        "go.sh",
        "null",
        "~",
    ]
    printed = stado("job", "submit", "--dry-run", *words).out_bytes
    again = stado("job", "submit", "--dry-run", "-f", "-", stdin=printed)
    assert again.out_bytes == printed, again.err
    assert dry(stado, "-f", "-", stdin=printed).value == dry(stado, *words).value
    assert b"\n      set -e\n" in printed, "the script can be read"
    assert not (here / "store").exists()


def test_help_of_submit_imports_nothing_heavy() -> None:
    program = (
        "import sys; from stado_cli.main import main; code = main(['job', 'submit', '--help']);"
        "print(code, sorted({'boto3', 'pydantic', 'yaml', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.stderr.strip() == "0 []"
