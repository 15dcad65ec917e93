"""What becomes of each option of a batch script: a piece of the document, a note with its line, or a refusal."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.errors import Exit, UsageError
from stado_like.job.spec import limits
from stado_like.job.spec.validate import validate
from stado_like.sbatch import Imported, read_script
from stado_like.sbatch.options import OPTIONS, Takes

MIB, GIB = 1 << 20, 1 << 30
MISSING = object()


def imported(directives: str, body: str = "echo hello") -> Imported:
    lines = "".join(f"#SBATCH {line}\n" for line in directives.split("\n"))
    return read_script(f"#!/bin/bash\n{lines}{body}\n", "job.sh")


def at(document: dict[str, Any], path: str) -> Any:
    """The value at `task_template.env.X`, below `spec` unless it begins with metadata."""
    here: Any = document if path.startswith("metadata") else document["spec"]
    for part in path.split("."):
        if not isinstance(here, dict) or part not in here:
            return MISSING
        here = here[part]
    return here


LIMIT, TEMPLATE = "task_template.time_limit_seconds", "task_template"
ASKED, RESILIENCE = f"{TEMPLATE}.requested_resources", f"{TEMPLATE}.resilience"
GPUS = f"{ASKED}.gpu_requests"

CARRIED: list[tuple[str, str, Any]] = [
    ("--job-name=train", "metadata.name", "train"),
    ("-J my.job/1", "metadata.name", "my-job-1"),
    ("--array=0-9", "array", {"size": 10}),
    ("-a 0-9%3", "array", {"size": 10, "max_parallel": 3}),
    ("-a 1-10:3", "array", {"size": 4, "indices": [1, 4, 7, 10]}),
    ("-a 5", "array", {"size": 1, "indices": [5]}),
    ("-a 0", "array", {"size": 1}),
    ("-a 3,1,1", "array", {"size": 2, "indices": [1, 3]}),
    ("-a [1-3]", "array", {"size": 3, "indices": [1, 2, 3]}),
    ("-a 1,2%9", "array", {"size": 2, "indices": [1, 2], "max_parallel": 2}),
    ("--time=10", LIMIT, 600),
    ("--time=4:00", LIMIT, 240),
    ("--time=1:00:00", LIMIT, 3_600),
    ("--time=2-12", LIMIT, 216_000),
    ("--time=2-12:30", LIMIT, 217_800),
    ("--time=2-12:30:15", LIMIT, 217_815),
    ("--time=1-", LIMIT, 86_400),
    ("--time=0:240:0", LIMIT, 14_400),
    ("--time=0:30", LIMIT, 60),
    ("--time=0", LIMIT, MISSING),
    ("--time=UNLIMITED", LIMIT, MISSING),
    ("--time=infinite", LIMIT, MISSING),
    ("--time=-1", LIMIT, MISSING),
    ("-c 4", f"{ASKED}.cpu_cores", 4),
    ("-c 4", f"{ASKED}.memory_bytes", 4 * GIB),
    ("--mem=4096", f"{ASKED}.memory_bytes", 4096 * MIB),
    ("--mem=4096", f"{ASKED}.cpu_cores", 1),
    ("--mem=500K", f"{ASKED}.memory_bytes", 500 << 10),
    ("--mem=16g", f"{ASKED}.memory_bytes", 16 * GIB),
    ("--mem=16GB", f"{ASKED}.memory_bytes", 16 * GIB),
    ("--mem=1T", f"{ASKED}.memory_bytes", 1 << 40),
    ("--mem=0", "exclusive", True),
    ("--mem-per-cpu=2G -c 3", f"{ASKED}.memory_bytes", 6 * GIB),
    ("--mem-per-cpu=100", f"{TEMPLATE}.env.SLURM_MEM_PER_CPU", "100"),
    ("--mem-per-gpu=8G --gpus=2", f"{ASKED}.memory_bytes", 16 * GIB),
    ("--gres=gpu", GPUS, {"count": 1}),
    ("--gres=gpu:2", GPUS, {"count": 2}),
    ("--gres=gpu:a100", GPUS, {"count": 1, "models": ["a100"]}),
    ("--gres=gpu:a100:4,nvme:1", GPUS, {"count": 4, "models": ["a100"]}),
    ("--gres=gres:gpu:2", GPUS, {"count": 2}),
    ("--gpus=3", GPUS, {"count": 3}),
    ("-G v100:2", GPUS, {"count": 2, "models": ["v100"]}),
    ("-G v100:2,a100:1", GPUS, {"count": 3, "models": ["v100", "a100"]}),
    ("--gpus-per-node=4 -N 2", GPUS, {"count": 8}),
    ("--gpus-per-task=1 -n 4", GPUS, {"count": 4}),
    ("--gpus-per-task=2 --gpus=8", f"{TEMPLATE}.env.SLURM_NTASKS", "4"),
    ("--cpus-per-gpu=6 --gpus=2", f"{ASKED}.cpu_cores", 12),
    ("--gpus-per-node=2 --gres=gpu:2", GPUS, {"count": 2}),
    ("--ntasks=4", f"{ASKED}.cpu_cores", 4),
    ("--ntasks=4 -c 2", f"{ASKED}.cpu_cores", 8),
    ("--ntasks=4 -c 2", f"{TEMPLATE}.env.SLURM_CPUS_PER_TASK", "2"),
    ("--ntasks=4", "start", MISSING),
    ("--nodes=1", "start", MISSING),
    ("--nodes=2", "start", "Gang"),
    ("--nodes=2", f"{ASKED}.machines", 2),
    ("--nodes=2-4", f"{ASKED}.machines", 2),
    ("--nodes=1k", f"{ASKED}.machines", 1024),
    ("-n 8 --ntasks-per-node=4", f"{ASKED}.machines", 2),
    ("-n 8 --ntasks-per-node=4 -c 2", f"{ASKED}.cpu_cores", 8),
    ("-N 2 --ntasks-per-node=4", f"{TEMPLATE}.env.SLURM_NTASKS", "8"),
    ("-N 4 -n 2", f"{ASKED}.machines", 2),
    ("--exclusive", "exclusive", True),
    ("--exclusive=user", "exclusive", True),
    ("-d afterok:prepare", "after", [{"job": "prepare", "state": "Completed"}]),
    ("-d afternotok:a:b", "after", [{"job": "a", "state": "Failed"}, {"job": "b", "state": "Failed"}]),
    ("-d afterany:default.a.1", "after", [{"job": "default.a.1", "state": "Ended"}]),
    ("-d prepare", "after", [{"job": "prepare", "state": "Ended"}]),
    ("-d singleton", "after", MISSING),
    ("-t 60 --signal=B:USR1@120", f"{RESILIENCE}.signal_before_limit", {"signal": "SIGUSR1", "seconds": 120}),
    ("-t 60 --signal=12", f"{RESILIENCE}.signal_before_limit", {"signal": "SIGUSR2", "seconds": 60}),
    ("-t 60 --signal=sigterm@90", f"{RESILIENCE}.signal_before_limit", {"signal": "SIGTERM", "seconds": 90}),
    ("-t 1 --signal=USR1@900", f"{RESILIENCE}.signal_before_limit", {"signal": "SIGUSR1", "seconds": 59}),
    ("-t 60 --signal=INT@0", f"{RESILIENCE}.stop_signal", "SIGINT"),
    ("--signal=USR1", f"{RESILIENCE}.signal_before_limit", MISSING),
    ("--requeue", f"{RESILIENCE}.max_machine_restarts", limits.DEFAULT_MAX_MACHINE_RESTARTS),
    ("--requeue", f"{RESILIENCE}.max_restarts", 0),
    ("--no-requeue", f"{RESILIENCE}.max_machine_restarts", 0),
    ("--no-requeue", f"{RESILIENCE}.max_retries_preemption", 0),
    ("--no-requeue\n--requeue", f"{RESILIENCE}.max_retries_preemption", MISSING),
    ("-o %x-%j.out", f"{TEMPLATE}.output_file", "%x-%j.out"),
    ("-o out -e err", f"{TEMPLATE}.output_file", "out"),
    ("-e err", f"{TEMPLATE}.output_file", "err"),
    ("-o /dev/null", f"{TEMPLATE}.output_file", MISSING),
    ("--export=A=1,B=x y", f"{TEMPLATE}.env.A", "1"),
    ("--export=NONE", f"{TEMPLATE}.env.SLURM_EXPORT_ENV", "NONE"),
    ("--chdir=/data/run", "workdir", "/data/run"),
    ("-w gpu1", "pinned_host", "gpu1"),
    ("-w gpu[1-2]", f"{ASKED}.node_selection", {"mode": "Exact", "names": ["gpu1", "gpu2"]}),
    ("-N 2 -w a,b", f"{ASKED}.node_selection.names", ["a", "b"]),
    ("-p gpu", f"{TEMPLATE}.env.SLURM_JOB_PARTITION", "gpu"),
    ("-A lab", f"{TEMPLATE}.env.SLURM_JOB_ACCOUNT", "lab"),
    ("-q short", f"{TEMPLATE}.env.SLURM_JOB_QOS", "short"),
]


@pytest.mark.parametrize(("directives", "path", "value"), CARRIED, ids=[f"{row[0]} {row[1]}" for row in CARRIED])
def test_a_directive_becomes_a_piece_of_the_document(directives: str, path: str, value: Any) -> None:
    document = imported(directives.replace("x y", "'x y'")).document
    assert at(document, path) == value
    validate({**document, "metadata": {"name": "imported", **document["metadata"]}})


def test_every_option_that_is_carried_over_has_a_row() -> None:
    told = " ".join(row[0] for row in CARRIED)
    known = {one.name for one in OPTIONS.values() if not one.note}
    missing = [
        name for name in known if f"--{name}" not in told and f"-{OPTIONS[name].short} " not in f"{told} ".lstrip()
    ]
    assert [name for name in missing if name not in ("output", "error", "dependency", "nodelist")] == []


NOTED = [
    ("-t 0:30", "line 2: --time=0:30: raised to 60 seconds"),
    ("-t UNLIMITED", "line 2: --time=UNLIMITED: no time limit"),
    ("-t 10\n-t 20", "line 2: --time=10: line 3 overrides it"),
    ("--requeue\n--no-requeue", "line 2: --requeue: line 3 overrides it"),
    ("-J 'my job'", "line 2: --job-name=my job: a job's name has letters"),
    ("-J ':-)'", "line 2: --job-name=:-): nothing of it can be"),
    ("-c 8", "line 2: --cpus-per-task=8: no --mem beside it: 8 GiB per task"),
    ("--mem=0", "line 2: --mem=0: all memory of a machine cannot"),
    ("-N 2-4", "line 2: --nodes=2-4: the job takes 2"),
    ("-N 4 -n 2", "line 2: --nodes=4: 2 tasks need no more than 2"),
    ("-N 3 -w a,b", "line 2: --nodelist=a,b: 2 of 3 machines are named"),
    ("-G a100:1", "line 2: --gpus=a100:1: a GPU whose model's name contains a100"),
    ("--gres=gpu:1,nvme:2", "line 2: --gres=gpu:1,nvme:2: only GPUs are counted, not nvme:2"),
    ("--exclusive=mcs", "line 2: --exclusive=mcs: the job has its machines alone"),
    ("-d afterok:123", "line 2: --dependency=afterok:123: 123 is taken for a job's name"),
    ("-d singleton", "line 2: --dependency=singleton: a job's name is taken until"),
    ("-d aftercorr:a", "line 2: --dependency=aftercorr:a: each task waits for the whole"),
    ("--signal=USR1", "line 2: --signal=USR1: without a time limit"),
    ("-t 9 --signal=USR1@60", "line 2: --signal=USR1@60: it goes to the script"),
    ("-t 1 --signal=B:USR1@600", "line 2: --signal=B:USR1@600: the time limit is 60 seconds"),
    ("-o a -e b", "line 2: --error=b: standard output and error are one stream"),
    ("--export=ALL", "line 2: --export=ALL: the caller's environment is not shipped"),
    ("--export=HOME,A=1", "line 2: --export=HOME,A=1: the caller's environment is not shipped; to copy from it: --env"),
    ("-c 4 --cpus-per-gpu=2 --gpus=1", "line 2: --cpus-per-gpu=2: --cpus-per-task says the cores"),
    ("--foreign=1", "line 2: --foreign=1: it is not an option of sbatch's manual"),
]


@pytest.mark.parametrize(("directives", "note"), NOTED, ids=[row[0] for row in NOTED])
def test_what_changes_or_means_nothing_is_noted_with_its_line(directives: str, note: str) -> None:
    assert [one for one in imported(directives).notes if one.startswith(note)] != []


@pytest.mark.parametrize("option", [one for one in OPTIONS.values() if one.note], ids=lambda one: one.name)
def test_an_option_without_a_counterpart_is_one_note(option: Any) -> None:
    value = "" if option.takes is Takes.NOTHING else "=3"
    found = imported(f"--{option.name}{value}")
    assert found.notes == (f"line 2: --{option.name}{value}: {option.note}",)


REFUSED = [
    ("-t junk", "line 2: --time=junk: is not a time", "2-12 (days-hours)"),
    ("-t 10m", "line 2: --time=10m: is not a time", "10 (minutes)"),
    ("-t 1:2:3:4", "line 2: --time=1:2:3:4: is not a time", "UNLIMITED"),
    ("-t 1.5", "line 2: --time=1.5: is not a time", "10 (minutes)"),
    ("--mem=1.5G", "line 2: --mem=1.5G: is not a size", "4096 (MiB)"),
    ("--mem=lots", "line 2: --mem=lots: is not a size", "16G"),
    ("--mem=1G --mem-per-cpu=1G", "line 2: --mem-per-cpu=1G: --mem in line 2 says the memory already", "--mem"),
    ("--mem-per-gpu=1G", "line 2: --mem-per-gpu=1G: the script asks for no GPU", "--gpus"),
    ("-c 0", "line 2: --cpus-per-task=0: is not a count", "at least 1"),
    ("-n four", "line 2: --ntasks=four: is not a count", "at least 1"),
    ("-N 4-2", "line 2: --nodes=4-2: is not a number of nodes", "2-4"),
    ("-G some", "line 2: --gpus=some: is not a number of GPUs", "a100:2"),
    ("--gpus=4 --gpus-per-node=2", "line 2: --gpus-per-node=2: the GPUs of the job are said twice", "one of them"),
    ("--gpus-per-node=2 --gres=gpu:3", "line 2: --gres=gpu:3: the GPUs of the job are said twice", "one of them"),
    ("-N 2 --gpus=3", "line 2: --gpus=3: 3 GPUs cannot be split evenly over 2 tasks", "2 divides"),
    ("-a 5-3", "line 2: --array=5-3: ", "0-15"),
    ("-a 1-3 -N 2", "line 2: --nodes=2: with --array each of the array's tasks would take 2 machines", "one gang"),
    ("-d after:a", "line 2: --dependency=after:a: 'after' is not a kind", "afterok:JOB"),
    ("-d afterok:a?afterok:b", "line 2: --dependency=afterok:a?afterok:b: waits for any one", "afterok:JOB"),
    ("-d afterok:$JOB", "line 2: --dependency=afterok:$JOB: '$JOB' is not a job", "afterok:JOB"),
    ("-t 9 --signal=KILL", "line 2: --signal=KILL: is not a signal that can be asked for", "USR1"),
    ("--export=1A=2", "line 2: --export=1A=2: '1A' is not the name of a variable", "NAME=value"),
    ("-w ./hosts", "line 2: --nodelist=./hosts: names a file", "gpu[1-3,7]"),
    ("-w gpu[1", "line 2: --nodelist=gpu[1: is not a list of machines", "gpu[1-3,7]"),
]


@pytest.mark.parametrize(("directives", "message", "accepted"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_value_that_cannot_be_read_is_refused_with_what_is_accepted(
    directives: str, message: str, accepted: str
) -> None:
    with pytest.raises(UsageError) as refused:
        imported(directives)
    assert refused.value.message.startswith(message)
    assert accepted in refused.value.next_step
    assert refused.value.exit_code == Exit.REFUSED


def test_all_wrong_directives_are_refused_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        imported("-t junk\n-a 5-3\n--mem=lots")
    assert list(refused.value.detail) == ["line 2", "line 3", "line 4"]
    assert all("Accepted: " in sentence for sentence in refused.value.detail.values())


@given(st.lists(st.sampled_from([row[0] for row in CARRIED] + [row[0] for row in NOTED]), min_size=1, max_size=6))
def test_no_directive_vanishes(chosen: list[str]) -> None:
    """A later line may override an earlier one, and some combinations are refused; nothing is lost without a word."""
    lines = [line.replace("x y", "'x y'") for one in chosen for line in one.split("\n")]
    whole = _said(lines)
    for number, line in enumerate(lines):
        if isinstance(whole, str):
            assert whole
            return
        noted = any(note.startswith(f"line {number + 2}: ") for note in whole[0])
        without = _said([*lines[:number], "", *lines[number + 1 :]])
        assert noted or whole != without or line in SAID_TWICE or lines.count(line) > 1, line


SAID_TWICE = {
    *("--nodes=1", "-N 4 -n 2", "-N 2 -w a,b", "--nodes=2", "--nodes=2-4", "-n 8 --ntasks-per-node=4"),
    *("--mem=0", "--exclusive", "--requeue", "--ntasks=4", "-w gpu[1-2]", "--gpus-per-task=1 -n 4"),
    *("--gpus-per-node=2 --gres=gpu:2", "--gres=gpu:2", "--gres=gres:gpu:2", "--gres=gpu", "--gpus=3"),
    *("-a 5", "-a 0", "-c 4", "-c 8", "--gpus-per-task=2 --gpus=8", "--gpus-per-node=4 -N 2"),
}
"""What another line may have said already, or what one task on one machine is anyway."""


def _said(lines: list[str]) -> tuple[Any, ...] | str:
    """The notes, and the document without the script itself; of a script that is refused, why."""
    try:
        found = imported("\n".join(lines))
    except UsageError as refused:
        return refused.message
    template = {**found.document["spec"]["task_template"], "args": []}
    return found.notes, {**found.document, "spec": {**found.document["spec"], "task_template": template}}


# ---- who runs the script


SHAPES = [
    ("-N1 -n1", "echo", "Independent", {}),
    ("-N1 -n1", "srun ./a", "Independent", {}),
    ("-n 4", "mpirun ./a", "Independent", {"cpu_cores": 4, "memory_bytes": 4 * GIB}),
    ("-n 4 --mem=8G", "srun ./a", "Gang", {"node_selection": {"mode": "Any", "count": 4}, "memory_bytes": 2 * GIB}),
    ("-N1 -n 4", "srun ./a", "Gang", {"topology": {"keep_within": "node"}, "cpu_cores": None}),
    ("-N2 -n 2 -c 8 --mem=8G", "echo", "Gang", {"machines": 2, "cpu_cores": 8, "memory_bytes": 8 * GIB}),
    ("-N2 -n 2 -c 8", "srun ./a", "Gang", {"machines": 2, "cpu_cores": 8}),
    ("-N2 -n 8 --mem=8G", "echo", "Gang", {"machines": 2, "cpu_cores": 4, "memory_bytes": 8 * GIB}),
    ("-N2 -n 8", "srun ./a", "Gang", {"node_selection": {"mode": "Any", "count": 8}, "topology": {"max_nodes": 2}}),
    ("-N2 --ntasks-per-node=4 --gpus-per-node=4", "srun ./a", "Gang", {"gpu_requests": {"count": 8}}),
    ("-a 1-3 -n 4", "srun ./a", "Independent", {"cpu_cores": 4}),
]


@pytest.mark.parametrize(("directives", "body", "start", "asked"), SHAPES, ids=[f"{row[0]} {row[1]}" for row in SHAPES])
def test_nodes_and_tasks_become_one_task_or_a_gang(
    directives: str, body: str, start: str, asked: dict[str, Any]
) -> None:
    document = imported(f"{directives}\n-J a", body).document
    assert document["spec"].get("start", "Independent") == start
    resources = document["spec"]["task_template"].get("requested_resources", {})
    assert {name: resources.get(name) for name in asked} == asked
    validate(document)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("srun ./a", "srun"),
        ("  time srun -n 4 ./a &", "srun"),
        ("X=1 Y='2' srun ./a", "srun"),
        ("if ! srun ./a; then exit 1; fi", "srun"),
        ("out=$(scontrol show job 1)", "scontrol"),
        ("/usr/bin/mpirun -np 4 ./a", "mpirun"),
        ("cd x && mpiexec ./a", "mpiexec"),
        ("./a | srun b", "srun"),
    ],
)
def test_a_line_that_calls_what_is_not_here_is_noted(line: str, command: str) -> None:
    assert [note for note in imported("-J a", line).notes if note.startswith(f"line 3: {command}: ")] != []


@pytest.mark.parametrize(
    "line", ["echo srun", "# srun ./a", "echo 1 # srun ./a", "srun_all=1", "mysrun ./a", "x-srun y"]
)
def test_a_word_that_is_no_call_is_not_noted(line: str) -> None:
    assert imported("-J a", line).notes == ()


def test_a_gang_cannot_have_a_machine_alone_for_each_of_its_tasks() -> None:
    found = imported("-N2 -n8 --exclusive", "srun ./a")
    assert "exclusive" not in found.document["spec"]
    assert any("cannot each have it alone" in note for note in found.notes)


# ---- the body


def test_the_body_travels_whole_up_to_the_limit_of_one_argument() -> None:
    head = "#!/bin/bash\n#SBATCH -J a\n"
    text = head + "#" * (limits.ONE_STRING_MAX_BYTES - len(head))
    template = read_script(text, "dir/job.sh").document["spec"]["task_template"]
    assert [template["command"], *template["args"]] == ["/bin/bash", "-c", text, "dir/job.sh"]
    with pytest.raises(UsageError, match="at most 120 KiB travel with a job"):
        read_script(text + "#", "job.sh")
    with pytest.raises(UsageError, match="holds a zero byte"):
        read_script(head + "echo \0\n", "job.sh")


def test_a_script_without_a_name_says_what_one_may_be_made_of() -> None:
    found = read_script("#!/bin/bash\necho\n", "runs/fit.model.sh")
    assert (found.stem, found.document["metadata"], found.notes) == ("fit", {}, ())
    assert found.document["spec"]["task_template"]["env"] == {"SLURM_JOB_NAME": "fit.model.sh"}


@pytest.mark.parametrize("piece", [";", "{", "(", "{A=", "a/", "srun", " ", "'", "$(", "gpu[", "|x/"])
def test_a_long_line_takes_no_time(piece: str) -> None:
    body = piece * (limits.ONE_STRING_MAX_BYTES // len(piece) - 100)
    began = time.perf_counter()
    imported("-J a", body)
    assert time.perf_counter() - began < 2.0


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60))
def test_whatever_stands_in_a_directive_is_an_answer(text: str) -> None:
    line = text.replace("\n", " ")
    for directive in (line, f"--time={line}", f"-w {line}", f"--gres=gpu:{line}", f"-a {line}", f"-d {line}"):
        try:
            assert imported(directive).document["spec"]["slurm_variables"] is True
        except UsageError as refused:
            assert refused.message
