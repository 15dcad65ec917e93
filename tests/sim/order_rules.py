"""Rules about stops that the machinery makes, and about machines that a person has closed."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Budgets, Claim, End
from stado_like.job.states import Cause
from tests.sim.fault_store import Change
from tests.sim.seen import Seen

BY_ORDER = (Cause.REQUEUED, Cause.MOVED, Cause.PREEMPTED)


def _ended(seen: Seen, change: Change) -> tuple[AttemptId, End] | None:
    if "/end." not in change.key or change.before is not None or change.after is None:
        return None
    end = codec.decode(End, change.after, change.key)
    return (AttemptId.parse(end.attempt), end) if end.cause in BY_ORDER else None


def orders_stop_only_what_they_name(seen: Seen, change: Change) -> Iterator[str]:
    """An attempt is requeued, moved or preempted only where an order that came in time named it and its worker, or a
    person drained that machine."""
    found = _ended(seen, change)
    if found is None:
        return
    a, end = found
    if end.cause is Cause.MOVED and end.worker in seen.drained:
        return
    if (end.worker, a, end.cause) not in seen.ordered:
        yield f"{change.actor} ended {a} on {end.worker} as {end.cause.value}, and nothing in time ordered that"


def orders_spend_nothing(seen: Seen, change: Change) -> Iterator[str]:
    """Neither failures nor machine faults; and the task goes on at once, unless a person had stopped it."""
    found = _ended(seen, change)
    if found is None:
        return
    a, end = found
    before = seen.end_records[a.previous].budgets if a.previous in seen.end_records else Budgets()
    if end.budgets.failures > before.failures or end.budgets.machine > before.machine:
        yield f"{a} was {end.cause.value}, which spent {end.budgets}, from {before}"
    if end.cause is Cause.REQUEUED and end.budgets.preemptions > before.preemptions:
        yield f"{a} was requeued, which spent {end.budgets}, from {before}"
    stopped = seen.holds(keys.verdict(a.job)) or seen.holds(keys.stop(a.job, a.rank))
    if end.is_final and not stopped and a.job not in seen.buried and end.cause is Cause.REQUEUED:
        yield f"{a} was requeued, and that ended its task"


def closed_machines_claim_nothing(seen: Seen, change: Change) -> Iterator[str]:
    """A worker that said it obeys a record which lets it take nothing sends no claim while that record stands."""
    if not change.key.startswith(keys.RUNNING) or change.before is not None or change.after is None or change.late:
        return
    claim = codec.decode(Claim, change.after, change.key)
    said, wanted = seen.said.get(claim.worker), seen.wanted.get(claim.worker)
    if said is None or wanted is None or seen.clocks_may_jump:
        return
    if wanted.cordoned and said.wanted == wanted.nonce and claim.since > said.at:
        yield f"{change.actor} claimed {claim.attempt} for {claim.worker}, which is cordoned and has said so"


ON_CHANGE = (orders_stop_only_what_they_name, orders_spend_nothing, closed_machines_claim_nothing)
