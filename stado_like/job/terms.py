"""What the machinery needs of a stored document, resolved once.

A worker looks at thousands of jobs and starts some of them: it must not load the models of the specification for that,
nor must six places each know that an array without `max_parallel` has 64 lanes or that `FailJob` means "never again".
The document was validated when it was submitted. It may come from an older version (a field is missing: its default
holds) or from a newer minor one (a field more: it is passed over); it is never judged here.

A job of several groups has several templates: `for_rank` gives the terms as one rank sees them. Ranks are global
across groups, in the order in which the groups are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from stado_like.job import demands, reasons
from stado_like.job.asked import After as After
from stado_like.job.asked import Ask as Ask
from stado_like.job.asked import Dependency as Dependency
from stado_like.job.asked import Group as Group
from stado_like.job.asked import LimitWarning as LimitWarning
from stado_like.job.asked import Stall as Stall
from stado_like.job.asked import Straggling as Straggling
from stado_like.job.hardware import ANY_GPU
from stado_like.job.shape import Shape, copy_of, shape_of
from stado_like.job.spec import limits

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Terms:
    """One job's terms. Times are seconds, sizes bytes; None is "none was asked for"."""

    workspace: str
    name: str
    labels: Mapping[str, str]
    priority: int
    several: bool
    """A several-task job by its specification; an array of size 1 counts as several."""
    tasks: int
    array_size: int
    """0 when it is not an array."""
    lane_width: int
    """K: ranks r, r+K, r+2K, … of a group are one lane. `max_parallel`, or 64 without one; of a gang all at once."""
    release_by_end: bool
    """True with `max_parallel`: a lane's next rank waits for a final end. False: for a claim."""
    ask: Ask
    command: tuple[str, ...]
    """The command and its arguments; with an image the command may be empty."""
    env: Mapping[str, str]
    cwd: str
    workdir: str
    restart_policy: str
    """OnFailure, Always or Never; `on_failure: FailJob` makes it Never, `lifetime: Service` Always."""
    on_failure: str
    max_task_failures: int
    max_restarts: int
    max_machine_restarts: int
    max_preemptions: int | None
    max_retries_preemption: int
    backoff_s: int
    max_backoff_s: int
    time_limit_s: int | None
    ttl_s: int
    stop_signal: str
    stop_grace_s: int | None
    stop_after_disconnect_s: int | None
    resident: bool
    terminates_agent: bool
    groups: tuple[Group, ...] = ()
    """In rank order; one without a name where the job has a single template."""
    leader: int = 0
    """The rank that leads: rank 0 of the leader group."""
    held: str = ""
    """Why only a placement may start the tasks, as they say it while they wait; empty: any worker they fit may."""
    trouble: str = ""
    """Why nobody may start the tasks, ever, as they stand: a total that the said number of tasks does not divide."""
    shaped: bool = True
    """False: how many tasks there are is for the scheduler to decide; `tasks` counts one for each such template."""
    start: str = "Independent"
    least: int = 0
    """How many tasks start together; the others come when there is room. 0: all."""
    service: bool = False
    health_check: bool = False
    """Whether a probe says when a task is healthy; without one it is while it runs."""
    complete_with: str = ""
    parent: str = ""
    after: tuple[After, ...] = ()
    scheduling_timeout_s: int | None = None
    deadline_s: float | None = None
    """UTC, seconds since 1970: who has not started by then never does."""
    bundle: str = ""
    collect: tuple[str, ...] = ()
    array_indices: tuple[int, ...] = ()
    """What STADO_ARRAY_TASK_ID says, by rank; empty: the rank itself."""
    array_entries: tuple[str, ...] = ()
    """What STADO_ENTRY says, by rank."""
    slurm_variables: bool = False
    output_file: str = ""
    secret_refs: tuple[Mapping[str, Any], ...] = ()
    configs: tuple[Mapping[str, Any], ...] = ()
    signal_before_limit: LimitWarning | None = None
    stall: Stall | None = None
    straggling: Straggling | None = None
    answer_path: str = ""
    checkpoint: Mapping[str, Any] | None = None
    """As the template says it; `checkpoint.wanted` reads it."""
    checkpoint_from: str = ""
    """The job, as STADO_JOB says it, whose checkpoints the first attempts start from."""
    preemptible_after_s: int | None = None
    """Its minimum runtime: not preempted before."""
    block: int = 0
    """How many ranks of an array one claim may carry while they are short; 0: each has its own."""
    variants: tuple[Terms, ...] = ()
    """The terms of each group's ranks, where there are several groups."""

    @property
    def gang(self) -> bool:
        """Whether what follows an end is decided by the ends of all its tasks: they start together, or one that fails
        restarts them all."""
        whole = self.on_failure == "RestartJob" and self.tasks > 1
        return (self.start != "Independent" or whole) and not self.array_size

    @property
    def units(self) -> int:
        """Tasks and blocks: every number below it may have a claim."""
        return self.tasks + (-(-self.tasks // self.block) if self.block else 0)

    @property
    def barrier(self) -> bool:
        """Whether its tasks wait for each other before they start."""
        return self.gang and self.start != "Independent"

    @property
    def watched(self) -> bool:
        """Whether `open/` names the job while it is not over: what only a tick sees must be found by one."""
        limited = self.scheduling_timeout_s is not None or self.deadline_s is not None
        return self.several or bool(self.after or self.parent) or limited

    def for_rank(self, rank: int) -> Terms:
        """As this rank sees them: its own group's template."""
        for group, variant in zip(self.groups, self.variants, strict=False):
            if rank in group.ranks:
                return variant
        return self

    def group_of(self, rank: int) -> Group:
        """The group of a rank, or of a block: an array has but one. Raises IndexError beyond both."""
        for group in self.groups:
            if rank in group.ranks:
                return group
        if self.tasks <= rank < self.units:
            return self.groups[0]
        raise IndexError(rank)

    def group(self, name: str) -> Group | None:
        return next((one for one in self.groups if one.name == name), None)


def terms_of(document: Mapping[str, Any]) -> Terms:
    """The terms of a document in its stored form, `{"metadata": …, "spec": …}`.

    KeyError when what no version may leave out is missing: the name, the template or the groups.
    """
    spec: Mapping[str, Any] = document["spec"]
    named = spec.get("task_groups") or ()
    templates = [group["task_template"] for group in named] if named else [spec["task_template"]]
    together = spec.get("start", "Independent") != "Independent"
    asked = [template.get("requested_resources") or _NOTHING for template in templates]
    shapes = [copy_of(asked[0])] if spec.get("array") else [shape_of(each, together=together) for each in asked]
    groups = _groups(named, shapes, (spec.get("array") or _NOTHING).get("size", 0))
    whole = _Whole(document["metadata"], spec, groups, shapes)
    seen = [_of_template(whole, *each) for each in zip(templates, shapes, groups, strict=True)]
    if not named:
        return seen[0]
    trouble = next((one.trouble for one in seen if one.trouble), "")
    held = trouble or next((one.held for one in seen if one.held), "")
    variants = tuple(replace(one, held=held, trouble=trouble) for one in seen)
    return replace(variants[0], variants=variants)


def _groups(named: Sequence[Mapping[str, Any]], shapes: Sequence[Shape], array_size: int) -> tuple[Group, ...]:
    if not named:
        return (Group("", 0, array_size or shapes[0].tasks),)
    groups: list[Group] = []
    first = 0
    for one, shape in zip(named, shapes, strict=True):
        depends_on = tuple(
            Dependency(each["group_name"], each.get("condition", "Running")) for each in one.get("depends_on") or ()
        )
        groups.append(Group(one["name"], first, shape.tasks, depends_on))
        first += shape.tasks
    return tuple(groups)


class _Whole:
    """What holds for every rank of a job, whatever its template."""

    def __init__(
        self,
        metadata: Mapping[str, Any],
        spec: Mapping[str, Any],
        groups: tuple[Group, ...],
        shapes: Sequence[Shape],
    ) -> None:
        self.metadata, self.spec, self.groups = metadata, spec, groups
        self.array: Mapping[str, Any] = spec.get("array") or _NOTHING
        self.name: str = metadata["name"]
        self.workspace: str = metadata.get("workspace", limits.DEFAULT_WORKSPACE)
        self.tasks = sum(group.tasks for group in groups)
        self.start: str = spec.get("start", "Independent")
        self.shaped = all(shape.decided for shape in shapes)
        self.service: bool = spec.get("lifetime", "Batch") == "Service"
        self.on_failure: str = spec.get("on_failure", "RestartTask")
        together = self.start != "Independent" or self.on_failure == "RestartJob"
        self.lanes = max(self.tasks if together and not self.array else 0, limits.LANES_WITHOUT_A_CAP)
        named = bool(groups[0].name)
        self.several = bool(self.array) or self.tasks > 1 or named or self.start != "Independent" or not self.shaped
        self.leader = next((group.first for group in groups if group.name == spec.get("leader_group")), 0)


def _of_template(whole: _Whole, template: Mapping[str, Any], shape: Shape, group: Group) -> Terms:
    spec, task, array = whole.spec.get, template.get, whole.array.get
    resilience = (task("resilience") or _NOTHING).get
    backoff_s = resilience("backoff_seconds", limits.DEFAULT_BACKOFF_S)
    cap = array("max_parallel", 0)
    return Terms(
        workspace=whole.workspace,
        name=whole.name,
        labels=whole.metadata.get("labels", _NOTHING),
        priority=spec("priority", 0),
        several=whole.several,
        tasks=whole.tasks,
        array_size=array("size", 0),
        lane_width=cap or whole.lanes,
        release_by_end=cap > 0,
        ask=_ask_of(whole, template, shape, group),
        command=_command(template),
        env=task("env", _NOTHING),
        cwd=spec("cwd") or "",
        workdir=spec("workdir") or "",
        restart_policy=_restart_policy(whole, task("restart_policy", "OnFailure")),
        on_failure=whole.on_failure,
        max_task_failures=spec("max_task_failures", 0),
        max_restarts=resilience("max_restarts", limits.DEFAULT_MAX_RESTARTS),
        max_machine_restarts=resilience("max_machine_restarts", limits.DEFAULT_MAX_MACHINE_RESTARTS),
        max_preemptions=resilience("max_preemptions"),
        max_retries_preemption=resilience("max_retries_preemption", limits.DEFAULT_MAX_RETRIES_PREEMPTION),
        backoff_s=backoff_s,
        max_backoff_s=resilience("max_backoff_seconds", max(limits.DEFAULT_MAX_BACKOFF_S, backoff_s)),
        time_limit_s=task("time_limit_seconds"),
        ttl_s=task("heartbeat_ttl_seconds", limits.DEFAULT_HEARTBEAT_TTL_S),
        stop_signal=resilience("stop_signal", "SIGTERM"),
        stop_grace_s=task("stop_grace_seconds"),
        stop_after_disconnect_s=resilience("stop_after_disconnect_seconds"),
        resident=spec("resident", False),
        terminates_agent=spec("terminates_agent", False),
        groups=whole.groups,
        leader=whole.leader,
        held=demands.why_held(whole.spec, template.get("requested_resources") or _NOTHING, shape, _together(whole)),
        trouble=reasons.cannot_plan(shape.trouble) if shape.trouble else "",
        shaped=whole.shaped,
        start=whole.start,
        least=spec("min_available") or 0,
        service=whole.service,
        health_check=bool(task("health_check")),
        complete_with=spec("complete_with") or "",
        parent=whole.metadata.get("parent") or "",
        after=tuple(After(one["job"], one.get("state", "Completed")) for one in spec("after") or ()),
        scheduling_timeout_s=spec("scheduling_timeout_seconds"),
        deadline_s=_moment_s(spec("deadline")),
        bundle=spec("bundle") or "",
        collect=tuple(spec("collect") or ()),
        array_indices=tuple(array("indices") or ()),
        array_entries=tuple(array("entries") or ()),
        slurm_variables=spec("slurm_variables", False),
        output_file=task("output_file") or "",
        secret_refs=tuple(task("secret_refs") or ()),
        configs=tuple(task("configs") or ()),
        signal_before_limit=_warning(resilience("signal_before_limit")),
        stall=_stall(resilience("stall"), shape.gpus_each),
        straggling=_straggling(resilience("straggler"), whole.start),
        answer_path=(task("outputs") or _NOTHING).get("answer_path") or "",
        preemptible_after_s=resilience("preemptible_after_seconds"),
        checkpoint=task("checkpoint") or None,
        checkpoint_from=spec("checkpoint_from") or "",
        block=_block(array("block", 1)),
    )


def _warning(said: Mapping[str, Any] | None) -> LimitWarning | None:
    return LimitWarning(said["signal"], said.get("seconds", limits.DEFAULT_SIGNAL_BEFORE_LIMIT_S)) if said else None


def _block(size: int) -> int:
    return size if size > 1 else 0


def _moment_s(said: str | None) -> float | None:
    return datetime.fromisoformat(said).timestamp() if said else None


def _stall(said: Mapping[str, Any] | None, gpus: int) -> Stall | None:
    """On for tasks with GPUs, and for those that ask for it; 0 seconds: never."""
    if said is None and not gpus:
        return None
    asked = said or _NOTHING
    after_s = asked.get("after_seconds", limits.DEFAULT_STALL_AFTER_S)
    return Stall(after_s, asked.get("restart", False)) if after_s else None


def _straggling(said: Mapping[str, Any] | None, start: str) -> Straggling | None:
    """On for tasks that start together, and for those that ask for it."""
    if said is None:
        return Straggling() if start != "Independent" else None
    return Straggling(
        said.get("behind_steps", limits.DEFAULT_STRAGGLER_STEPS),
        said.get("after_seconds", limits.DEFAULT_STRAGGLER_AFTER_S),
    )


def _together(whole: _Whole) -> int:
    """How many tasks concern each other: the copies of an array do not."""
    return 1 if whole.array else whole.tasks


def _command(template: Mapping[str, Any]) -> tuple[str, ...]:
    command = template.get("command")
    args: Sequence[str] = template.get("args", ())
    return (command, *args) if command else tuple(args)


def _restart_policy(whole: _Whole, said: str) -> str:
    if whole.on_failure == "FailJob":
        return "Never"
    return "Always" if whole.service else said


def _ask_of(whole: _Whole, template: Mapping[str, Any], shape: Shape, group: Group) -> Ask:
    resources = template.get("requested_resources") or _NOTHING
    chosen = resources.get("node_selection") or _NOTHING
    topology = resources.get("topology") or _NOTHING
    per_gpu = resources.get("per_gpu") or _NOTHING
    each = shape.gpus_each
    kind = demands.gpu_kind_of(resources) if each else ANY_GPU
    exact = chosen.get("mode", "Exact") == "Exact" or topology.get("spread") == "node"
    apart = shape.tasks > 1 and (exact or kind.every)  # one task takes all there is of its machine
    cores = per_gpu["cpu_cores"] * each if per_gpu else resources.get("cpu_cores", limits.DEFAULT_CORES)
    memory = per_gpu["memory_bytes"] * each if per_gpu else resources.get("memory_bytes", limits.DEFAULT_MEMORY_BYTES)
    if resources.get("node_fraction"):
        cores, memory = 0, 0
    return Ask(
        cpu_millis=round(cores * 1000),
        memory_bytes=memory,
        gpus=each,
        exclusive=whole.spec.get("exclusive", False),
        pinned_host=whole.spec.get("pinned_host") or "",
        names=tuple(chosen.get("names") or ()),
        labels=chosen.get("match_labels") or _NOTHING,
        apart=f"{whole.workspace}.{whole.name}/{group.name}" if apart and not whole.array else "",
        needs=demands.needs_of(template),
        gpu_kind=kind,
        ports=demands.ports_of(resources),
        node_share=demands.node_share_of(resources),
    )


def command_of(terms: Terms, rank: int) -> tuple[str, ...]:
    """The command of one rank: a word that is exactly `{}` is the rank's entry, where its array has entries."""
    if rank >= len(terms.array_entries):
        return terms.command
    return tuple(terms.array_entries[rank] if word == "{}" else word for word in terms.command)


def display_name(terms: Terms, rank: int) -> str:
    """`train-3`, with groups `train-worker-1`: what a person calls the task. A one-task job's task is `train-0`; a
    block's unit is `train-[64-127]`."""
    if terms.block and rank >= terms.tasks:
        first = (rank - terms.tasks) * terms.block
        return f"{terms.name}-[{first}-{min(first + terms.block, terms.tasks) - 1}]"
    for group in terms.groups:
        if group.name and rank in group.ranks:
            return f"{terms.name}-{group.name}-{rank - group.first}"
    return f"{terms.name}-{rank}"


def group_rank(terms: Terms, rank: int) -> int:
    """The number of a rank within its group."""
    return rank - terms.group_of(rank).first
