"""A job as a person asks for it: only what was said, in the words of the command line, turned into a document.

`stado job submit`, `stado run` and `Client.submit` are three ways to fill in one `JobSpec`, so an option means the
same in all of them. What was not said is not written: the specification's own defaults hold, and a document from a
file keeps what the file says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.asking import choices, launcher, moments
from stado_like.asking.flags import exclusions
from stado_like.asking.overlay import laid_over
from stado_like.errors import UsageError
from stado_like.job.spec import units

Duration = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What to run and how. Durations and sizes may be texts (`1h30m`, `16GiB`) or plain numbers of seconds and bytes.

    `gpus` is the run's total, `cpus` and `memory` are per task. `document` is a specification to start from; what is
    said beside it wins.
    """

    command: Sequence[str] | str = ()
    """The program and its arguments; there is no shell. A text is one program without arguments."""
    torchrun: bool = False
    """`command` is a PyTorch program: start it by torchrun, one process for each GPU. On several machines: a gang."""
    name: str = ""
    stem: str = ""
    """What a name is made of when none is given; default: the command."""
    workspace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int | None = None
    image: str | None = None
    """A container image; without one the command runs as a process of the machine."""
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory: str | int | None = None
    gpus: int | str | None = None
    """4, or "H100:4": of GPUs whose model name contains H100."""
    gpu_models: Sequence[str] = ()
    gpu_memory: int | str | None = None
    """Only GPUs with at least so many GB."""
    machines: int | None = None
    """Exactly so many machines, one task on each, the GPUs split evenly."""
    gang: bool = False
    """All tasks start together or none does."""
    array: str | int | None = None
    """A number of tasks, or indices: "0-9", "1-10:2", "1,3,7", each with "%4"."""
    max_parallel: int | None = None
    entries: Sequence[str] = ()
    """One task for each, which finds it in STADO_ENTRY; an argument that is exactly {} is replaced by it."""
    time_limit: Duration | None = None
    deadline: str | None = None
    """A moment ("2026-01-31T12:00:00Z", "2026-01-31 12:00" in UTC) or a duration from now ("+2h")."""
    scheduling_timeout: Duration | None = None
    restarts: int | None = None
    restart_policy: str | None = None
    max_task_failures: int | None = None
    stop_signal: str | None = None
    stop_grace: Duration | None = None
    min_runtime: Duration | None = None
    signal: str | None = None
    """"USR1@120": this signal so long before the time limit."""
    stall_after: Duration | None = None
    restart_stalled: bool = False
    heartbeat_ttl: Duration | None = None
    pinned_host: str | None = None
    exclusive: bool = False
    resident: bool = False
    terminates_agent: bool = False
    workdir: str | None = None
    checkpoint_dir: str | None = None
    collect: Sequence[str] = ()
    after: Sequence[str] = ()
    """Jobs that must have ended first: "train", "train:Failed", "train:Ended"."""
    detached: bool = False
    """Submitted inside a task: not that task's child."""
    document: Mapping[str, Any] = field(default_factory=dict)

    def settled(self, now: Callable[[], float]) -> JobSpec:
        """The same with its deadline as a moment. `now` is asked only when there is one. Raises `UsageError`."""
        return self if self.deadline is None else replace(self, deadline=moments.deadline(self.deadline, now()))

    def as_document(self) -> dict[str, Any]:
        """The document of a settled spec before validation. Raises `UsageError` for words that cannot be read, or that
        exclude each other.
        """
        exclusions(self)
        return laid_over(self.document, {"metadata": self._metadata(), "spec": self._spec()})

    def _metadata(self) -> dict[str, Any]:
        said: dict[str, Any] = {"name": self.name, "workspace": self.workspace, "labels": dict(self.labels)}
        return {key: value for key, value in said.items() if value}

    def _spec(self) -> dict[str, Any]:
        said = _given(
            priority=self.priority,
            max_task_failures=self.max_task_failures,
            pinned_host=self.pinned_host,
            workdir=self.workdir,
            exclusive=self.exclusive or None,
            resident=self.resident or None,
            terminates_agent=self.terminates_agent or None,
            start="Gang" if self.gang or (self.torchrun and self.is_several) else None,
            array=self._array(),
            deadline=self.deadline,
            scheduling_timeout_seconds=_seconds(self.scheduling_timeout),
            after=[choices.awaited(one) for one in self.after] or None,
            collect=list(self.collect) or None,
        )
        template = self._template()
        return {**said, "task_template": template} if template else said

    def _array(self) -> dict[str, Any] | None:
        if self.entries:
            said: dict[str, Any] = {"size": len(self.entries), "entries": list(self.entries)}
            cap = self.max_parallel
        elif self.array is not None:
            shape = units.array_shape(self.array)
            said = {"size": shape.size}
            if shape.indices is not None:
                said["indices"] = list(shape.indices)
            cap = self.max_parallel if self.max_parallel is not None else shape.max_parallel
        else:
            return None
        return {**said, "max_parallel": cap} if cap else said

    def _template(self) -> dict[str, Any]:
        words = self.words()
        said = _given(
            image=self.image,
            command=words[0] if words else None,
            args=words[1:] if words else None,
            env=dict(self.env) or None,
            time_limit_seconds=_seconds(self.time_limit),
            stop_grace_seconds=_seconds(self.stop_grace),
            heartbeat_ttl_seconds=_seconds(self.heartbeat_ttl),
            requested_resources=self._resources() or None,
            resilience=self._resilience() or None,
            checkpoint=None if self.checkpoint_dir is None else {"dir": self.checkpoint_dir},
        )
        policy = self.restart_policy or ("OnFailure" if self.restarts is not None else None)
        return {**said, "restart_policy": policy} if policy else said

    def words(self) -> list[str]:
        """The command and its arguments, as they are stored; empty when none was said. Raises `UsageError`."""
        if isinstance(self.command, str):
            words = [self.command] if self.command else []
        else:
            words = list(self.command)
        if words and words[0] == "":  # passed over, a file's own command would run instead
            raise UsageError("the first word of the command is empty", "A variable without a value? Name a program.")
        if not self.torchrun:
            return words
        count = choices.gpus(self.gpus)[0] if self.gpus is not None else _in(self.document, *_GPUS, "count")
        return launcher.torchrun(words, gpus=count if isinstance(count, int) else 0, several=self.is_several)

    @property
    def is_several(self) -> bool:
        """Whether one program is to run as several tasks together: a gang, or several machines."""
        machines = self.machines if self.machines is not None else _in(self.document, *_RESOURCES, "machines")
        start = _in(self.document, "spec", "start")
        return self.gang or start == "Gang" or (isinstance(machines, int) and machines > 1)

    def _resources(self) -> dict[str, Any]:
        count, model = choices.gpus(self.gpus) if self.gpus is not None else (None, "")
        models = [model] if model else list(self.gpu_models)
        gpus = _given(
            count=count,
            models=models or None,
            min_memory_gb=None if self.gpu_memory is None else choices.gpu_memory_gb(self.gpu_memory),
        )
        return _given(
            cpu_cores=self.cpus,
            memory_bytes=None if self.memory is None else units.size_bytes(self.memory),
            gpu_requests=gpus or None,
            machines=self.machines,
        )

    def _resilience(self) -> dict[str, Any]:
        stall = _given(after_seconds=_seconds(self.stall_after), restart=self.restart_stalled or None)
        return _given(
            stop_signal=None if self.stop_signal is None else choices.signal_name(self.stop_signal),
            max_restarts=self.restarts,
            preemptible_after_seconds=_seconds(self.min_runtime),
            signal_before_limit=None if self.signal is None else choices.signal_before_limit(self.signal),
            stall=stall or None,
        )

    def understood(self) -> list[str]:
        """What durations, sizes and their like of a settled spec were taken for, in words: said back before anything
        is written.

        Only texts are said back: a program that gave a number knows what it gave.
        """
        said = [
            f"{name}: {units.duration_words(units.duration_s(value))}"
            for name, value in (
                ("time limit", self.time_limit),
                ("stop grace", self.stop_grace),
                ("heartbeat TTL", self.heartbeat_ttl),
                ("scheduling timeout", self.scheduling_timeout),
                ("minimum runtime", self.min_runtime),
                ("stalled after", self.stall_after),
            )
            if isinstance(value, str)
        ]
        if self.deadline is not None:
            said.append(f"deadline: {moments.words(self.deadline)}")
        if self.signal is not None:
            early = choices.signal_before_limit(self.signal)
            lead = units.duration_words(early["seconds"])
            said.append(f"signal: {early['signal']} {lead} before the time limit")
        if isinstance(self.memory, str):
            said.append(f"memory: {units.size_words(units.size_bytes(self.memory))} per task")
            hint = units.bare_size_hint(self.memory)
            if hint:
                said.append(hint)
        if self.gpu_memory is not None:
            said.append(f"GPU memory: at least {choices.gpu_memory_gb(self.gpu_memory)} GB each")
        if isinstance(self.array, str):
            said.append(f"array: {units.array_shape(self.array).words}")
        if self.torchrun:
            how = " on each machine, started together" if self.is_several else ""
            said.append(f"torchrun: {_shown(self.words())}{how}")
        return said


_RESOURCES = ("spec", "task_template", "requested_resources")
_GPUS = (*_RESOURCES, "gpu_requests")


def _given(**said: Any) -> dict[str, Any]:
    """Only what was said."""
    return {key: value for key, value in said.items() if value is not None}


def _seconds(said: Duration | None) -> int | float | None:
    return None if said is None else units.duration_s(said)


def _in(document: Mapping[str, Any], *path: str) -> Any:
    """What a document from a file says at `path`; None where it says nothing, or something of another kind."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _shown(words: Sequence[str]) -> str:
    """The launcher's words without the text of the shell that reads the task's rank."""
    if words[:2] == ["bash", "-c"]:
        return " ".join(["torchrun", *words[4:]])
    return " ".join(words)
