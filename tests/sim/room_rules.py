"""Rules about room: who may be stopped for whom, and what a workspace may hold."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import codec, keys, reasons, reasons_placement
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Order
from stado_like.job.states import Cause
from tests.sim.fault_store import Change
from tests.sim.seen import Seen

SLACK_S = 1.0


def nobody_is_stopped_for_an_equal(seen: Seen, change: Change) -> Iterator[str]:
    """An eviction names a job of strictly higher priority, and no victim that is protected: in its minimum runtime, or
    preempted as often as its run allows."""
    found = _evicted(seen, change)
    if found is None:
        return
    a, order = found
    terms = seen.terms[a.job].for_rank(a.rank)
    highest = max((seen.terms[j].priority for j in _named(seen, a, order.reason)), default=None)
    if highest is not None and highest <= terms.priority:
        yield f"{change.actor} stops {a} of priority {terms.priority} for one of {highest}: {order.reason}"
    began = [start.at_s for start in seen.starts[a]]
    ran_s = seen.shared.world.now_s - began[-1] if began else 0.0
    if terms.preemptible_after_s and ran_s < terms.preemptible_after_s - SLACK_S and not seen.clocks_may_jump:
        yield f"{change.actor} stops {a}, which ran {ran_s:.0f} of the {terms.preemptible_after_s} s it is promised"
    if terms.max_preemptions is not None and _preemptions(seen, a) >= terms.max_preemptions:
        yield f"{change.actor} stops {a}, which was preempted {_preemptions(seen, a)} times, as often as its run allows"


def quotas_hold(seen: Seen, change: Change) -> Iterator[str]:
    """What the running work of a workspace holds is never more than its quota. (Where lists are old, requests are late
    or two ticks work at once, a tick cannot know all that runs.)"""
    if not change.key.startswith(keys.RUNNING) or change.before is not None or change.after is None:
        return
    workspace = keys.parse_running(change.key).job.workspace
    quota = seen.quotas.get(workspace)
    if quota is None:
        return
    held = [a for a, claim in seen.gangs.holding.items() if a.job.workspace == workspace and not claim.overdue]
    held = [a for a in held if a.job in seen.terms and a.rank < seen.terms[a.job].tasks and a.job not in seen.buried]
    asks = [seen.terms[a.job].for_rank(a.rank).ask for a in held]
    cpu = sum(ask.cpu_millis for ask in asks)
    if quota.max_cpus is not None and cpu > quota.max_cpus * 1000:
        yield f"{change.actor} {change.key}: {workspace} holds {cpu} of {quota.max_cpus * 1000}: {_named_all(held)}"
    jobs = {a.job for a in held}
    if quota.max_running_jobs is not None and len(jobs) > quota.max_running_jobs:
        yield f"{change.actor} {change.key}: {workspace} runs {len(jobs)} jobs of {quota.max_running_jobs}"


def _evicted(seen: Seen, change: Change) -> tuple[AttemptId, Order] | None:
    if not change.key.startswith(keys.INBOX) or change.before is not None or change.after is None or change.late:
        return None
    order = codec.decode(Order, change.after, change.key)
    a = keys.parse_order(change.key).attempt
    if order.cause is not Cause.PREEMPTED or a.job not in seen.terms or a.job in seen.buried:
        return None
    return a, order


def _named(seen: Seen, a: AttemptId, reason: str) -> Iterator[JobId]:
    """The jobs that a reason may mean."""
    for j in seen.jobs:
        mine = j.workspace == a.job.workspace
        if reason == reasons.preempted(j.name if mine else reasons_placement.ELSEWHERE):
            yield j


def _preemptions(seen: Seen, a: AttemptId) -> int:
    if seen.terms[a.job].gang:
        placement = seen.gangs.placements.get((a.job, seen.gangs.newest(a.job)))
        if placement is not None:
            return placement.budgets.preemptions
    before = seen.end_records.get(a.previous) if a.previous is not None else None
    return before.budgets.preemptions if before is not None else 0


def _named_all(held: list[AttemptId]) -> str:
    return ", ".join(map(str, sorted(held)))


ON_CHANGE = (nobody_is_stopped_for_an_equal, quotas_hold)
