"""A batch script -> a document: every `#SBATCH` line is in it, or in a note that says why not.

The promise is that nothing vanishes: a directive is carried over, or it is noted with its line (it has no counterpart
here, it means something a little different, or a later line overrides it), or it is refused because the job would not
be what was asked for. All refusals come at once.

What Slurm does by itself is said in the document too: a script that fails is not started again, one that lost its
machine or was preempted is (`--requeue`, Slurm's default), and `--no-requeue` forbids that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from stado_like.asking import script
from stado_like.errors import UsageError
from stado_like.job.spec import limits, units
from stado_like.sbatch import quantities
from stado_like.sbatch.calls import LAUNCHERS, MPI, Call, calls
from stado_like.sbatch.dependencies import after
from stado_like.sbatch.directives import Directive, read
from stado_like.sbatch.options import OPTIONS
from stado_like.sbatch.shape import Shape, shape

SIGNAL_FORMS: Final = "[B:]SIGNAL[@SECONDS] with " + ", ".join(name[3:] for name in limits.STOP_SIGNALS)
ARRAY_FORMS: Final = "0-15, 1-10:2 (steps of 2), 1,3,7, each with %4 (at most 4 at once)"
EXPORT_FORMS: Final = "NONE, ALL, NAME=value, NAME; several with commas between"
LEAST_TIME_S: Final = limits.TIME_LIMIT_S[0]
DEFAULT_LEAD_S: Final = 60

_RIVALS: Final = {"no-requeue": "requeue"}  # two options that set one thing: the later line holds
_IN_SHAPE: Final = frozenset(
    {
        *("nodes", "ntasks", "ntasks-per-node", "nodelist", "exclusive", "cpus-per-task", "cpus-per-gpu"),
        *("mem", "mem-per-cpu", "mem-per-gpu", "gpus", "gpus-per-node", "gpus-per-task", "gres"),
    }
)
_KEPT_AS: Final = {"account": "SLURM_JOB_ACCOUNT", "partition": "SLURM_JOB_PARTITION", "qos": "SLURM_JOB_QOS"}
_SIGNALS: Final = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}
_SIGNAL = re.compile(r"(?:([RB]{1,2}):)?([A-Za-z0-9]+)(?:@([0-9]{1,6}))?")
_NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Imported:
    """`document`: `metadata` and `spec` as they are submitted, not yet validated; without a name when the script gives
    none. `notes`: one sentence per line for people. `stem`: what a name may be made of.
    """

    document: dict[str, Any]
    notes: tuple[str, ...]
    stem: str


def read_script(text: str, name: str) -> Imported:
    """The document of a batch script. `name` is the script's path, which becomes its `$0`.

    Raises `UsageError`; `detail` has one sentence per wrong line when there are several.
    """
    found = read(text)
    importing = _Importing(found.directives)
    document = importing.document(text, name)
    notes = sorted((*found.notes, *importing.notes), key=_line_of)
    return Imported(document, tuple(dict.fromkeys(notes)), name.rsplit("/", 1)[-1].split(".", 1)[0])


def _line_of(note: str) -> int:
    match = re.match(r"line ([0-9]+)", note)
    return int(match[1]) if match else 0


class _Importing:
    """One import under way: the directives that hold, the notes and the refusals so far."""

    def __init__(self, directives: Iterable[Directive]) -> None:
        self.notes: list[str] = []
        self.refusals: list[UsageError] = []
        self.given: dict[str, Directive] = {}
        self.metadata: dict[str, Any] = {}
        self.spec: dict[str, Any] = {"slurm_variables": True}
        self.template: dict[str, Any] = {}
        self.resilience: dict[str, Any] = {"max_restarts": 0}
        self.env: dict[str, str] = {}
        held: dict[str, Directive] = {}
        for one in directives:
            if not one.known:
                self.say(one, "it is not an option of sbatch's manual (a cluster's own?) and changes nothing here")
                continue
            key = _RIVALS.get(one.name, one.name)
            if key in held:
                self.say(held[key], f"line {one.line} overrides it")
            held[key] = one
        self.given = {one.name: one for one in held.values()}

    def say(self, directive: Directive, sentence: str) -> None:
        self.notes.append(f"{directive.written}: {sentence}")

    def document(self, text: str, name: str) -> dict[str, Any]:
        called = calls(text)
        shaped = Shape()
        srun = any(call.command in LAUNCHERS for call in called)
        for step in (
            *(partial(self._one, one) for one in self.given.values()),
            partial(self._shape, shaped, srun),
            partial(self._body, text, name),
        ):
            try:
                step()
            except UsageError as refusal:
                self.refusals.append(refusal)
        self._raise()
        self.spec |= shaped.spec
        self.env = {**shaped.env, **self.env}
        if "job-name" not in self.given:
            self.env.setdefault("SLURM_JOB_NAME", name.rsplit("/", 1)[-1])  # what Slurm calls a job without a name
        self._say_calls(called, self.spec.get("start") == "Gang")
        words = script.command(text, name, ())
        self.template |= {"command": words[0], "args": words[1:], "resilience": self.resilience}
        if self.env:
            self.template["env"] = self.env
        if shaped.resources:
            self.template["requested_resources"] = shaped.resources
        return {"metadata": self.metadata, "spec": {**self.spec, "task_template": self.template}}

    def _raise(self) -> None:
        if len(self.refusals) == 1:
            raise self.refusals[0]
        if self.refusals:
            detail: dict[str, str] = {}
            for number, refusal in enumerate(self.refusals, 1):
                where, _, why = refusal.message.partition(": ")
                key = where if where not in detail else f"{where} ({number})"
                detail[key] = f"{why}. {refusal.next_step}"
            raise UsageError(
                f"{len(self.refusals)} directives of the script cannot be carried over", "Correct them.", detail=detail
            )

    def _one(self, directive: Directive) -> None:
        name = directive.name
        if name in _IN_SHAPE:
            return
        if note := OPTIONS[name].note:
            self.say(directive, note)
            if name in _KEPT_AS and directive.value:
                self.env[_KEPT_AS[name]] = directive.value
            return
        handlers: dict[str, Callable[[Directive], None]] = {
            "array": self._array,
            "chdir": self._chdir,
            "dependency": self._dependency,
            "error": self._error,
            "export": self._export,
            "job-name": self._job_name,
            "no-requeue": self._no_requeue,
            "output": self._output,
            "requeue": self._requeue,
            "signal": self._signal,
            "time": self._time,
        }
        handlers[name](directive)

    def _shape(self, into: Shape, srun: bool) -> None:
        found = shape(self.given, self.say, srun=srun)
        into.spec, into.resources, into.env = found.spec, found.resources, found.env

    def _body(self, text: str, name: str) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > limits.ONE_STRING_MAX_BYTES:
            raise UsageError(
                f"{name} has {units.size_words(size)}, and at most {units.size_words(limits.ONE_STRING_MAX_BYTES)} "
                "travel with a job",
                "Move its data into a file, and ship the folder with --workdir.",
            )
        if "\0" in text:
            raise UsageError(f"{name} holds a zero byte at position {text.index(chr(0))}", "Submit a script of text.")

    # ---- one option each

    def _array(self, one: Directive) -> None:
        value = one.value.strip().replace("[", "").replace("]", "")
        indices, _, cap = value.partition("%")
        if indices.isdecimal():
            indices = f"{indices}-{indices}"  # one index, where elsewhere a bare number is a number of tasks
        try:
            asked = units.array_shape(f"{indices}%{cap}" if cap else indices)
        except UsageError as refused:
            raise one.refused(refused.message, ARRAY_FORMS) from None
        array: dict[str, Any] = {"size": asked.size}
        if asked.indices is not None:
            array["indices"] = list(asked.indices)
        if asked.max_parallel:
            array["max_parallel"] = min(asked.max_parallel, asked.size)
        self.spec["array"] = array

    def _chdir(self, one: Directive) -> None:
        self.spec["workdir"] = one.value

    def _dependency(self, one: Directive) -> None:
        if found := after(one, self.say):
            self.spec["after"] = found

    def _output(self, one: Directive) -> None:
        if one.value == "/dev/null":
            self.say(one, "no file is written; the log is kept in the store as always")
        else:
            self.template["output_file"] = one.value

    def _error(self, one: Directive) -> None:
        output = self.given.get("output")
        if output is None and one.value != "/dev/null":
            self.template["output_file"] = one.value
            self.say(one, "standard output and error are one stream: both are in this file")
        elif output is None or one.value != output.value:
            self.say(one, "standard output and error are one stream: no file of its own is written for errors")

    def _job_name(self, one: Directive) -> None:
        name = _NOT_A_NAME.sub("-", one.value)[: limits.NAME_MAX].strip("-")
        if not name:
            self.say(one, "nothing of it can be a job's name (letters, digits, - and _); the script's name is taken")
        else:
            self.metadata["name"] = name
            if name != one.value:
                self.say(one, f"a job's name has letters, digits, - and _, at most {limits.NAME_MAX}: it became {name}")
        if name != one.value:
            self.env["SLURM_JOB_NAME"] = one.value

    def _requeue(self, one: Directive) -> None:
        self.resilience["max_machine_restarts"] = limits.DEFAULT_MAX_MACHINE_RESTARTS

    def _no_requeue(self, one: Directive) -> None:
        self.resilience |= {"max_machine_restarts": 0, "max_retries_preemption": 0}

    def _time(self, one: Directive) -> None:
        limit_s = quantities.time_s(one)
        if limit_s is None:
            self.say(one, "no time limit")
            return
        if limit_s < LEAST_TIME_S:
            self.say(one, f"raised to {LEAST_TIME_S} seconds, the least; Slurm rounds up to the next minute")
        self.template["time_limit_seconds"] = max(limit_s, LEAST_TIME_S)

    def _signal(self, one: Directive) -> None:
        found = _SIGNAL.fullmatch(one.value.strip())
        signal = _signal_name(found[2]) if found else ""
        if found is None or signal not in limits.STOP_SIGNALS:
            raise one.refused("is not a signal that can be asked for", SIGNAL_FORMS)
        flags, lead_s = found[1] or "", int(found[3]) if found[3] else DEFAULT_LEAD_S
        limit_s = quantities.time_s(self.given["time"]) if "time" in self.given else None
        if limit_s is None:
            self.say(one, "without a time limit there is nothing to warn of; say --time")
            return
        limit_s = max(limit_s, LEAST_TIME_S)
        if lead_s == 0:
            self.resilience["stop_signal"] = signal
            self.say(one, f"0 seconds before the limit is the stop itself: its signal is {signal}")
            return
        if lead_s >= limit_s:
            self.say(one, f"the time limit is {limit_s} seconds: the signal comes one second after the start")
            lead_s = limit_s - 1
        if "B" not in flags:
            self.say(one, "it goes to the script, which has to pass it on or `exec` its program")
        if "R" in flags:
            self.say(one, "there are no reservations: R: changes nothing")
        self.resilience["signal_before_limit"] = {"signal": signal, "seconds": lead_s}

    def _export(self, one: Directive) -> None:
        named = []
        for piece in one.value.split(","):
            name, equals, value = piece.strip().partition("=")
            if not equals and name.upper() in ("ALL", "NONE", "NIL", ""):
                if name.upper() == "ALL":
                    self.say(one, "the caller's environment is not shipped; name what the script needs: --env NAME")
                continue
            if _NAME_OF_VARIABLE.fullmatch(name) is None:
                raise one.refused(f"{name!r} is not the name of a variable", EXPORT_FORMS)
            if equals:
                self.env[name] = value
            else:
                named.append(name)
        if named:
            flags = " ".join(f"--env {name}" for name in named)
            self.say(one, f"the caller's environment is not shipped; to copy from it: {flags}")
        self.env.setdefault("SLURM_EXPORT_ENV", one.value)

    # ---- lines of the body

    def _say_calls(self, called: list[Call], gang: bool) -> None:
        each = "the whole script runs in every member of the gang, each with its own SLURM_PROCID"
        for call in called:
            where = f"line {call.line}: {call.command}:"
            if call.command in LAUNCHERS:
                self.notes.append(
                    f"{where} there is no srun here: the line fails with `srun: command not found`, unless a program "
                    f"of that name is installed on the machine; {each if gang else 'call the program without it'}"
                )
            elif call.command in MPI:
                self.notes.append(
                    f"{where} it is not told of other machines: it starts its processes on the machine it runs on"
                    + (f"; {each}" if gang else "")
                )
            else:
                self.notes.append(f"{where} a command of Slurm, which is not here; see the commands of `stado`")


def _signal_name(word: str) -> str:
    if word.isdecimal():
        return _SIGNALS.get(int(word), "")
    name = word.upper()
    return name if name.startswith("SIG") else f"SIG{name}"
