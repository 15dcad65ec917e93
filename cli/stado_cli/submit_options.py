"""The options with which a job is described: the same for `job submit` and `run`.

They fill in a `JobSpec`; what they mean is decided there and in the specification, not here. Forms that help names are
the texts of the code that reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from stado_cli import submit_files as files
from stado_cli.submit_command import AFTER_DASHES
from stado_like.asking import script
from stado_like.asking.variables import labels, variables
from stado_like.errors import UsageError
from stado_like.job.spec import units
from stado_like.jobspec import JobSpec

F = TypeVar("F", bound=Callable[..., Any])
Options = tuple[tuple[str, str, dict[str, Any]], ...]

WHAT: Options = (
    (
        "-f --file",
        "FILE",
        {"help": "A specification: run.yaml, run.json, or - for standard input. Options win over it."},
    ),
    ("--from-sbatch", "FILE", {"help": "A script with #SBATCH lines: they are read, and CMD is its arguments."}),
    ("--torchrun", "", {"help": "CMD is a PyTorch program: start it by torchrun, one process for each GPU."}),
    ("--image", "IMAGE", {"help": "A container image. Default: none, a process of the machine."}),
    (
        "--workdir",
        "DIR",
        {
            "help": "Where it runs. On a file:// store DIR itself, by default this directory; elsewhere what DIR holds "
            "is shipped with the job, by default nothing."
        },
    ),
    ("-e --env", "K=V | K", {"multiple": True, "help": "A variable; K alone copies it from here. Nothing else is."}),
    (
        "--env-file",
        "FILE",
        {"multiple": True, "help": "Variables: lines K=V, quotes as a shell has them, # comments; --env wins."},
    ),
    ("--collect", "PATH", {"multiple": True, "help": "A file to keep of each task when it ends; may be repeated."}),
    ("--checkpoint-dir", "DIR", {"help": "Where it saves its state: kept, and there again after a restart."}),
)
NAMED: Options = (
    ("-J --name", "NAME", {"default": "", "help": "The job's name. Default: what it runs, and six random digits."}),
    ("-w --workspace", "NAME", {"default": "", "help": "The workspace. Default: that of the settings."}),
    ("--label", "K=V", {"multiple": True, "help": "A label; may be repeated."}),
    ("--request-id", "ID", {"default": "", "help": "Submitting again under the same ID gives the same job."}),
)
NEEDS: Options = (
    ("-c --cpus", "N", {"type": float, "help": "Cores per task; goes with --memory. Default 1 core and 1 GiB."}),
    ("-m --memory", "SIZE", {"help": "Memory per task; a bare number is bytes."}),
    ("-G --gpus", "N | MODEL:N", {"help": "GPUs: the run's total, over all its tasks; in an array, per copy."}),
    ("--gpu-model", "MODEL", {"multiple": True, "help": "Only GPUs whose model name contains this; may be repeated."}),
    ("--gpu-memory", "GB", {"help": "Only GPUs with at least so many GB each."}),
    ("-N --machines", "N", {"type": int, "help": "Exactly so many machines, one task on each, GPUs split evenly."}),
    ("--gang", "", {"help": "All tasks start together, or none does."}),
    ("--exclusive", "", {"help": "Start only on an idle machine, and alone on it."}),
    ("--pinned-host", "WORKER", {"help": "Only the worker of this id may run it."}),
)
SEVERAL: Options = (
    ("-a --array", "ARRAY", {"help": "One task for each index: N, 0-9, 1-10:2 or 1,3,7; %K: at most K at once."}),
    (
        "--each-line",
        "FILE",
        {
            "help": "One task for each line of FILE or - (standard input), which is in STADO_ENTRY and stands for an "
            "argument {}. With -a %K: at most K at once."
        },
    ),
    ("--max-task-failures", "N", {"type": int, "help": "Tasks that may fail before the job does. Default 0."}),
)
WHEN: Options = (
    ("-p --priority", "N", {"type": int, "help": "Place in the queue, -1000 to 1000; higher first. Default 0."}),
    ("--after", "JOB[:STATE]", {"multiple": True, "help": "Wait until this job has Completed (or Failed, or Ended)."}),
    ("--deadline", "WHEN", {"help": "Tasks not started by this moment never are."}),
    ("--scheduling-timeout", "D", {"help": "Given up when it could not start for so long."}),
    ("-t --time", "D", {"help": "Time limit per attempt, counted from when it runs. Past it, it fails."}),
)
ENDS: Options = (
    ("--restarts", "N", {"type": int, "help": "Restart after its own failures up to N times. Default 10."}),
    ("--stop-signal", "SIG", {"help": "Sent first on a stop. Default SIGTERM."}),
    ("--stop-grace", "D", {"help": "From the stop signal to SIGKILL. Default 30s."}),
    ("--signal", "SIG@D", {"help": "A signal so long before the time limit."}),
    ("--min-runtime", "D", {"help": "Not preempted before each attempt has run so long."}),
    ("--stall-after", "D", {"help": "Stalled when it shows no progress for so long."}),
    ("--restart-stalled", "", {"help": "Restart a stalled task."}),
    ("--resident", "", {"help": "A service that runs until it is stopped."}),
    ("--terminates-agent", "", {"help": "It ends by stopping the worker that runs it."}),
    ("--detached", "", {"help": "Submitted inside a job: not that job's child."}),
)
GROUPS: dict[str, Options] = {
    "What it runs": WHAT,
    "What it is called": NAMED,
    "What each task needs (--cpus, --memory) and the whole run (--gpus)": NEEDS,
    "Several tasks": SEVERAL,
    "When": WHEN,
    "How it ends": ENDS,
}


def _name(names: str) -> str:
    return names.split()[-1].lstrip("-").replace("-", "_")


SECTIONS = {title: [_name(names) for names, _, _ in group] for title, group in GROUPS.items()}

SAME = (
    *("name", "workspace", "priority", "image", "torchrun", "cpus", "memory", "gpus", "gpu_memory", "machines", "gang"),
    *("deadline", "scheduling_timeout", "restarts", "max_task_failures", "stop_signal", "stop_grace", "min_runtime"),
    *("signal", "stall_after", "restart_stalled", "pinned_host", "exclusive", "resident", "terminates_agent"),
    *("workdir", "checkpoint_dir", "collect", "after", "detached"),
)
"""Options that a `JobSpec` has under the same name."""


def submit_options(command: F) -> F:
    for names, metavar, more in reversed([one for group in GROUPS.values() for one in group]):
        form: dict[str, Any] = {"metavar": metavar} if metavar else {"is_flag": True}
        command = click.option(*names.split(), _name(names), **form, **more)(command)
    return click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD...")(command)


@dataclass(frozen=True, slots=True)
class Asked:
    """The job that a command line describes, and what is to be said back to whoever typed it."""

    spec: JobSpec
    notes: list[str] = field(default_factory=list)
    renumber: bool = False
    """The name is a batch script's, which is submitted again and again: where it is taken, the next free one."""


def asked(words: tuple[str, ...], options: dict[str, Any], now: Callable[[], float]) -> Asked:
    """Reads the files that the options name. `now` is asked for a deadline. Raises `UsageError`, `Refused`."""
    _one_description(options)
    notes: list[str] = []
    document: dict[str, Any] = {}
    if options["from_sbatch"]:
        document, command, stem = _batch_script(options["from_sbatch"], words, notes)
    else:
        command, stem = _command(words, options, notes)
    if options["file"]:
        document = files.document(options["file"])
    array, cap = options["array"], None
    lines: tuple[str, ...] = ()
    if options["each_line"]:
        read = files.lines(options["each_line"])
        lines = read.entries
        notes.append(read.words)
        if array is not None and array.startswith("%"):
            cap, array = units.array_shape(f"{len(lines)}{array}").max_parallel, None
    spec = JobSpec(
        command=command,
        stem=stem,
        labels=labels(options["label"]),
        env=_env(options),
        gpu_models=options["gpu_model"],
        array=array,
        max_parallel=cap,
        entries=lines,
        time_limit=options["time"],
        document=document,
        **{name: options[name] for name in SAME},
    ).settled(now)
    spec.as_document()  # what cannot be read is told before what was understood
    renumber = bool(options["from_sbatch"] and not options["name"])
    return Asked(spec, [*notes, *spec.understood()], renumber)


def _one_description(options: dict[str, Any]) -> None:
    """Raises `UsageError` where two options would each say what runs, or read one standard input."""
    for other in ("file", "torchrun"):
        if options["from_sbatch"] and options[other]:
            raise UsageError(
                f"--from-sbatch and --{other} exclude each other: each says what runs", "Give one of them."
            )
    given = {name: options[name] or "" for name in ("file", "from_sbatch", "each_line")}
    given |= {"env_file": "-"} if "-" in options["env_file"] else {}
    files.only_one_is_standard_input({f"--{name.replace('_', '-')}": file for name, file in given.items()})


def _batch_script(file: str, words: tuple[str, ...], notes: list[str]) -> tuple[dict[str, Any], list[str], str]:
    """The document of a script's #SBATCH lines, its command with `words` for arguments, and what a name is made of."""
    from stado_like.sbatch import read_script

    imported = read_script(files.script_text(file), files.called(file))
    notes += imported.notes
    template = imported.document["spec"]["task_template"]
    return imported.document, [template["command"], *template["args"], *words], imported.stem


def _env(options: dict[str, Any]) -> dict[str, str]:
    env: dict[str, str] = {}
    for file in options["env_file"]:
        env |= files.env_file(file)
    return env | variables(options["env"], os.environ)


def _command(words: tuple[str, ...], options: dict[str, Any], notes: list[str]) -> tuple[list[str], str]:
    """The command, and what a name is made of."""
    if not words:
        if not options["file"] and not options["image"]:
            raise UsageError(
                "no command was given", "Put it last: `stado job submit -- python train.py`, or -f FILE, or a script."
            )
        return [], ""
    after_dashes = click.get_current_context().meta[AFTER_DASHES]
    if options["torchrun"]:
        return list(words), _program(words)
    if after_dashes or not files.is_script(words[0]):
        return list(words), words[0]
    text = files.script_text(words[0])
    if script.reads_sbatch(text):
        notes.append(f"the #SBATCH lines of {words[0]} are not read: `--from-sbatch {words[0]}` reads them")
    return script.command(text, words[0], words[1:]), words[0]


def _program(words: tuple[str, ...]) -> str:
    """`train.py` of `python -m train.py --lr 3`."""
    return next((word for word in words if word not in ("python", "python3", "-u", "-m")), words[0])
