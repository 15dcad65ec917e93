"""Nodes, tasks, cores, memory and GPUs -> one task, or a gang.

Slurm allocates for all tasks and starts the script once, on the first node; `srun` inside it starts the tasks. There
is no srun here, so who runs the script is decided by what it was written for:

| asked for            | the script calls no srun                      | it calls srun                       |
|----------------------|-----------------------------------------------|-------------------------------------|
| one node, one task   | one task                                      | one task                            |
| one node, n tasks    | one task with the cores of all n              | a gang of n                         |
| N nodes, N tasks     | a gang of N, one on each of N machines        | the same                            |
| N nodes, n > N tasks | a gang of N, each with the cores of its share | a gang of n, on at most N machines  |

Every member of a gang runs the whole script, with SLURM_PROCID and the like of its own. An array's tasks are one
machine's each: with several nodes an array is refused, and `srun` makes no gang of it.

Memory: `--mem` is per node, so members that share one share it. Cores without memory get 1 GiB each (Slurm would take
the cluster's default); memory without cores gets one core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stado_like.job.spec import limits, units
from stado_like.sbatch import quantities
from stado_like.sbatch.directives import Directive
from stado_like.sbatch.machine_names import machine_names

Say = Callable[[Directive, str], None]

_MEMORY: Final = ("mem", "mem-per-cpu", "mem-per-gpu")


@dataclass(slots=True)
class Shape:
    """Pieces of the document. `env`: what SLURM_* variables cannot be read off the document again."""

    spec: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """`members` tasks here stand for `tasks` of Slurm's on `nodes` of its nodes, `per_task` cores each."""

    nodes: int
    tasks: int
    members: int
    per_task: int

    @property
    def on_one_node(self) -> int:
        """Slurm's tasks of one node, at most."""
        return -(-self.tasks // self.nodes)

    @property
    def together(self) -> int:
        """Members of one node, at most."""
        return -(-self.members // self.nodes)


def shape(given: Mapping[str, Directive], say: Say, *, srun: bool) -> Shape:
    """`given`: the directive that holds, by name. Raises `UsageError`."""
    names = machine_names(given["nodelist"]) if "nodelist" in given else ()
    gpus = _Gpus(given, say)
    found = Shape()
    tasks = _tasks(given, say, names, gpus, srun=srun)
    gpu_total = gpus.total(tasks)
    cores = _cores(given, say, tasks, gpu_total)
    memory = _memory(given, say, tasks, cores, gpu_total)
    if memory is not None:
        found.resources |= {"cpu_cores": cores, "memory_bytes": memory}
    if gpu_total:
        models = {"models": list(gpus.models)} if gpus.models else {}
        found.resources["gpu_requests"] = {"count": gpu_total, **models}
    if tasks.members > 1:
        found.spec["start"] = "Gang"
        _place_gang(found, given, say, tasks, names)
    elif len(names) == 1:
        found.spec["pinned_host"] = names[0]
    if at := _whole_machine(given, say):
        if tasks.together > 1:
            say(at, "tasks that share a machine cannot each have it alone: other jobs may run beside them")
        else:
            found.spec["exclusive"] = True
    _variables(found, given, tasks, cores)
    return found


# ---- how many


def _tasks(given: Mapping[str, Directive], say: Say, names: tuple[str, ...], gpus: _Gpus, *, srun: bool) -> _Tasks:
    per_task = quantities.count(given["cpus-per-task"]) if "cpus-per-task" in given else 1
    per_node = quantities.count(given["ntasks-per-node"]) if "ntasks-per-node" in given else 0
    tasks = quantities.count(given["ntasks"]) if "ntasks" in given else 0
    nodes, most = quantities.nodes(given["nodes"]) if "nodes" in given else (0, 0)
    if most > nodes:
        say(given["nodes"], f"the job takes {nodes}: the smaller number")
    if len(names) > max(nodes, 1):
        if nodes:
            say(given["nodelist"], f"{len(names)} machines are named, so the job takes {len(names)}, not {nodes}")
        nodes = len(names)
    if not tasks and not per_node:
        tasks = gpus.tasks()
    if not nodes:
        nodes = -(-tasks // per_node) if tasks and per_node else 1
    tasks = tasks or nodes * (per_node or 1)
    if tasks < nodes:
        at = given.get("nodes") or given.get("nodelist") or given["ntasks"]
        say(at, f"{tasks} task{'s need' if tasks > 1 else ' needs'} no more than {tasks} of {nodes} nodes")
        nodes = tasks
    if "array" in given:
        if nodes > 1:
            at = given.get("nodes") or given.get("nodelist") or given["ntasks-per-node"]
            raise at.refused(
                f"with --array each of the array's tasks would take {nodes} machines, which is not possible here",
                "an array of tasks of one machine each, or one gang without --array",
            )
        return _Tasks(1, tasks, 1, per_task)
    return _Tasks(nodes, tasks, tasks if srun else nodes, per_task)


def _cores(given: Mapping[str, Directive], say: Say, tasks: _Tasks, gpu_total: int) -> int:
    if "cpus-per-gpu" in given and "cpus-per-task" in given:
        say(given["cpus-per-gpu"], f"--cpus-per-task says the cores, in line {given['cpus-per-task'].line}")
    elif "cpus-per-gpu" in given:
        each = quantities.count(given["cpus-per-gpu"])
        if not gpu_total:
            raise given["cpus-per-gpu"].refused("the script asks for no GPU", "it together with --gpus or --gres=gpu:N")
        return each * (gpu_total // tasks.members)
    return tasks.per_task * (tasks.on_one_node // tasks.together or 1)


def _memory(given: Mapping[str, Directive], say: Say, tasks: _Tasks, cores: int, gpu_total: int) -> int | None:
    """Bytes per member; None: nothing was said of cores or memory."""
    said = [given[name] for name in _MEMORY if name in given]
    if len(said) > 1:
        raise said[1].refused(
            f"--{said[0].name} in line {said[0].line} says the memory already", "one of --" + ", --".join(_MEMORY)
        )
    size = quantities.memory_bytes(said[0]) if said else 0
    if said and size:
        name = said[0].name
        if name == "mem":
            return size // tasks.together
        if name == "mem-per-cpu":
            return size * cores
        if not gpu_total:
            raise said[0].refused("the script asks for no GPU", "it together with --gpus or --gres=gpu:N")
        return size * (gpu_total // tasks.members)
    size = cores * limits.DEFAULT_MEMORY_BYTES
    if said:
        say(
            said[0],
            f"all memory of a machine cannot be asked for: {units.size_words(size)} per task, on a machine of its own; "
            "say how much it needs, so that it lands on one that has it",
        )
        return size
    for name in ("cpus-per-task", "ntasks", "ntasks-per-node", "cpus-per-gpu", "gpus-per-task"):
        if name in given and (cores > 1 or name == "cpus-per-task"):
            say(given[name], f"no --mem beside it: {units.size_words(size)} per task, 1 GiB for each core")
            return size
    return size if cores > 1 else None


def _whole_machine(given: Mapping[str, Directive], say: Say) -> Directive | None:
    """The directive that asks for whole machines."""
    if "exclusive" in given:
        if given["exclusive"].value:
            say(given["exclusive"], "the job has its machines alone; sharing with some is not possible")
        return given["exclusive"]
    return given["mem"] if "mem" in given and quantities.memory_bytes(given["mem"]) == 0 else None


# ---- GPUs


class _Gpus:
    """What the four options say of GPUs, by option."""

    def __init__(self, given: Mapping[str, Directive], say: Say) -> None:
        self.models: tuple[str, ...] = ()
        self.at: Directive | None = None
        self.asked: dict[str, int] = {}
        for name in ("gpus", "gpus-per-node", "gpus-per-task", "gres"):
            if name not in given:
                continue
            asked: quantities.Gpus | None
            if name == "gres":
                asked, others = quantities.gres(given[name])
                if others:
                    say(given[name], f"only GPUs are counted, not {', '.join(others)}")
            else:
                asked = quantities.gpus(given[name])
            if asked is None:
                continue
            self.at = given[name]
            self.asked[name] = asked.count
            if asked.models:
                self.models = tuple(dict.fromkeys((*self.models, *asked.models)))
                say(given[name], f"a GPU whose model's name contains {' or '.join(asked.models)}, in any case")

    def tasks(self) -> int:
        """How many tasks follow from a total and a number for each; 0: none do."""
        each = self.asked.get("gpus-per-task", 0)
        return self.asked.get("gpus", 0) // each if each else 0

    def total(self, tasks: _Tasks) -> int:
        if self.at is None:
            return 0
        times = {"gpus": 1, "gpus-per-node": tasks.nodes, "gpus-per-task": tasks.tasks, "gres": tasks.nodes}
        totals = {name: count * times[name] for name, count in self.asked.items()}
        if len(set(totals.values())) > 1:
            told = ", ".join(f"--{name} makes {total}" for name, total in totals.items())
            raise self.at.refused(f"the GPUs of the job are said twice, and differ: {told}", "one of them")
        total = max(totals.values())
        if total % tasks.members:
            raise self.at.refused(
                f"{total} GPUs cannot be split evenly over {tasks.members} tasks",
                f"a number that {tasks.members} divides, or another number of tasks",
            )
        return total


# ---- where


def _place_gang(found: Shape, given: Mapping[str, Directive], say: Say, tasks: _Tasks, names: tuple[str, ...]) -> None:
    apart = tasks.members == tasks.nodes
    if names and apart and len(names) == tasks.members:
        found.resources["node_selection"] = {"mode": "Exact", "names": list(names)}
        return
    if names and len(names) < tasks.nodes:
        say(given["nodelist"], f"{len(names)} of {tasks.nodes} machines are named: any machine may be taken; name all")
        names = ()
    if apart:
        found.resources["machines"] = tasks.nodes
        return
    found.resources["node_selection"] = {
        "mode": "Any",
        "count": tasks.members,
        **({"names": list(names)} if names else {}),
    }
    if "nodes" in given or names:
        found.resources["topology"] = {"keep_within": "node"} if tasks.nodes == 1 else {"max_nodes": tasks.nodes}


def _variables(found: Shape, given: Mapping[str, Directive], tasks: _Tasks, cores: int) -> None:
    env = found.env
    if tasks.tasks != tasks.members:
        env |= {"SLURM_NTASKS": str(tasks.tasks), "SLURM_NPROCS": str(tasks.tasks)}
        times = f"(x{tasks.nodes})" if tasks.nodes > 1 else ""
        env["SLURM_TASKS_PER_NODE"] = f"{tasks.on_one_node}{times}"
    if "ntasks-per-node" in given:
        env["SLURM_NTASKS_PER_NODE"] = str(tasks.on_one_node)
    if tasks.per_task != cores:
        env["SLURM_CPUS_PER_TASK"] = str(tasks.per_task)
    if tasks.nodes != tasks.members:
        env |= {"SLURM_NNODES": str(tasks.nodes), "SLURM_JOB_NUM_NODES": str(tasks.nodes)}
    for option, variable in (("mem-per-cpu", "SLURM_MEM_PER_CPU"), ("mem-per-gpu", "SLURM_MEM_PER_GPU")):
        if option in given:
            env[variable] = str(quantities.memory_bytes(given[option]) >> 20)
