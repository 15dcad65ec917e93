"""A machine for a decision, out of the records that tell of it: its last broadcast, and what people want of it.

Kept apart from the predicate because the worker itself measures instead. Whoever reads a broadcast makes the machine
here, so that a plan and an explanation see the same one.
"""

from __future__ import annotations

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.records import Capacity
from stado_like.job.spec.units import duration_text
from stado_like.job.wanted import Wanted
from stado_like.planning.fit import Machine

_NOBODY_SET_ANYTHING = Wanted()


def machine_of(
    said: Capacity,
    *,
    age_s: float = 0.0,
    stale: bool = False,
    wanted: Wanted = _NOBODY_SET_ANYTHING,
    apart: frozenset[str] = frozenset(),
) -> Machine:
    """`stale`: it promised another broadcast by now; `age_s`: how old the last one is. `apart`: the words of the tasks
    it holds, which its broadcast does not tell."""
    unheard = reasons.not_ready(f"last heard {duration_text(round(age_s))} ago") if stale else ""
    return Machine(
        worker=said.worker,
        host=said.host,
        free_cpu_millis=said.free.cpu_millis,
        free_memory_bytes=said.free.memory_bytes,
        free_gpus=said.free.gpus,
        running=len(said.held),
        taken_whole=said.whole,
        closed=unheard or why_closed(said, wanted),
        labels=said.labels,
        apart=apart,
        total_cpu_millis=said.total.cpu_millis,
        total_memory_bytes=said.total.memory_bytes,
        total_gpus=said.total.gpus,
        gpus=said.gpus,
        ports=said.ports,
    )


def why_closed(said: Capacity, wanted: Wanted = _NOBODY_SET_ANYTHING) -> str:
    """Why it takes no work at all, though it speaks; empty: it does."""
    if wanted.cordoned:
        return reasons.cordoned(wanted.why)
    if said.accepting:
        return ""
    if said.pressure:
        return reasons.under_pressure(said.pressure)
    return reasons.refuses_work(said.why_not or "it is stopping")


def silent(worker: str, state: str = "") -> Machine:
    """A machine that people speak of and that reports nothing. `state`: what is known of it, as `Down`."""
    closed = reasons.not_ready(state) if state else says.NO_CAPACITY
    return Machine(worker, "", 0, 0, 0, 0, closed=closed)
