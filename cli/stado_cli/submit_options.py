"""The options with which a job is described: the same for `job submit` and `run`.

They fill in a `JobSpec`; what they mean is decided there and in the specification, not here.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from stado_like.errors import Refused, UsageError
from stado_like.jobspec import JobSpec, labels, variables

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("-J", "--name", default="", help="The job's name. Default: what it runs, and six random digits."),
    click.option("-w", "--workspace", default="", help="The workspace. Default: that of the settings."),
    click.option("--label", "label", multiple=True, metavar="K=V", help="A label; may be repeated."),
    click.option("-p", "--priority", type=int, help="Place in the queue, -1000 to 1000; higher first. Default 0."),
    click.option(
        "-e",
        "--env",
        "env",
        multiple=True,
        metavar="K=V | K",
        help="A variable; K alone copies it from here. Nothing else is.",
    ),
    click.option("--env-file", "env_file", multiple=True, metavar="FILE", help="Variables, one K=V or K a line."),
    click.option("-c", "--cpus", type=float, help="Cores per task; goes with --memory. Default 1 core and 1 GiB."),
    click.option("-m", "--memory", metavar="SIZE", help="Memory per task: 512MiB, 16GiB, 16G (= GiB)."),
    click.option("-G", "--gpus", type=int, metavar="N", help="GPUs: the run's total; in an array, per copy."),
    click.option("-a", "--array", metavar="N | 0-9 [%K]", help="Run N copies; %K: at most K at once."),
    click.option(
        "-t", "--time", "time_limit", metavar="D", help="Time limit per attempt: 90s, 2m, 1h30m, 4:00 (= 4 minutes)."
    ),
    click.option("--restarts", type=int, metavar="N", help="Restart after its own failures up to N times. Default 10."),
    click.option(
        "--max-task-failures", type=int, metavar="N", help="Tasks that may fail before the job does. Default 0."
    ),
    click.option("--stop-signal", metavar="SIG", help="Sent first on a stop. Default SIGTERM."),
    click.option("--stop-grace", metavar="D", help="From the stop signal to SIGKILL. Default 30s."),
    click.option("--pinned-host", metavar="WORKER", help="Only the worker of this id may run it."),
    click.option("--exclusive", is_flag=True, help="Start only on an idle machine, and alone on it."),
    click.option("--resident", is_flag=True, help="A service that runs until it is stopped."),
    click.option("--terminates-agent", is_flag=True, help="It ends by stopping the worker that runs it."),
    click.option("--workdir", metavar="DIR", help="Where it runs. Default, on a file:// store: this directory."),
    click.option(
        "--request-id", default="", metavar="ID", help="Submitting again under the same ID gives the same job."
    ),
    click.option(
        "-f", "--file", "file", metavar="FILE", help="A specification: run.yaml, run.json, or - for standard input."
    ),
)

SAME = (
    *(
        "name",
        "workspace",
        "priority",
        "cpus",
        "memory",
        "gpus",
        "array",
        "time_limit",
        "restarts",
        "max_task_failures",
    ),
    *("stop_signal", "stop_grace", "pinned_host", "exclusive", "resident", "terminates_agent", "workdir"),
)
"""Options that a `JobSpec` has under the same name."""


def submit_options(command: F) -> F:
    for option in reversed(OPTIONS):
        command = option(command)
    return click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD...")(command)


def spec_of(words: tuple[str, ...], options: dict[str, Any], *, is_local: bool) -> JobSpec:
    """The job that a command line describes. `is_local`: workers see this machine's files (a file:// store)."""
    env: dict[str, str] = {}
    for file in options["env_file"]:
        env |= variables(_lines(file), os.environ)
    env |= variables(options["env"], os.environ)
    document = _document(options["file"]) if options["file"] else {}
    if not words and not options["file"]:
        raise UsageError("no command was given", "Put it last: `stado submit -- python train.py`, or -f FILE.")
    return JobSpec(
        command=script_words(list(words), is_local=is_local),
        labels=labels(options["label"]),
        env=env,
        document=document,
        **{name: options[name] for name in SAME},
    )


def _lines(file: str) -> list[str]:
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"the file of variables {file} cannot be read: {error}", "Give a text file, one K=V a line."
        ) from None
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _document(file: str) -> dict[str, Any]:
    from stado_like.job.spec.reading import read_document

    if file == "-":
        return read_document(sys.stdin.buffer.read(), "standard input")
    try:
        return read_document(Path(file).read_bytes(), os.path.basename(file))
    except OSError as error:
        raise Refused(
            f"the specification {file} cannot be read: {error.strerror}", "Give a file, or - for standard input."
        ) from None


def script_words(words: list[str], *, is_local: bool) -> list[str]:
    """`script.sh` alone is a script and not a program of PATH: run it where it lies, by the interpreter it names."""
    if not words or "/" in words[0] or not os.path.isfile(words[0]):
        return words
    with open(words[0], "rb") as file:
        first = file.readline(256)
    if not first.startswith(b"#!") and not words[0].endswith(".sh"):
        return words
    if not is_local:
        raise Refused(
            f"the script {words[0]} lies on this machine, and this version sends no files to workers",
            "Name it by its absolute path on the worker, or use a file:// store.",
        )
    path = os.path.abspath(words[0])
    if os.access(path, os.X_OK) and first.startswith(b"#!"):
        return [path, *words[1:]]
    interpreter = shlex.split(first[2:].decode("utf-8", "replace").strip()) if first.startswith(b"#!") else ["sh"]
    return [*(interpreter or ["sh"]), path, *words[1:]]
