"""Probes of placement in a whole cluster: room held for the head, quotas, and who is stopped for whom."""

from __future__ import annotations

from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.states import Cause
from stado_like.job.workspace import Quota, Workspace
from tests.sim.fleet import Fleet
from tests.sim.quiet import cluster, first, give, go, has_ended, started_at


def head_is_not_overtaken() -> None:
    """One of two cores is free; the head needs both, and its start is known to the second: who ends before may pass,
    who does not waits."""
    with cluster(cores=2) as fleet:
        go(fleet, 10.0)
        give(fleet, "first", 100.0, template={"time_limit_seconds": 100})
        go(fleet, 10.0)
        head = give(fleet, "head", 30.0, cores=2)
        go(fleet, 20.0)
        short = give(fleet, "short", 20.0, template={"time_limit_seconds": 30})
        long = give(fleet, "long", 300.0, template={"time_limit_seconds": 400})
        endless = give(fleet, "endless", 300.0)
        go(fleet, 220.0)
        times = [started_at(fleet, j) for j in (head, short, long, endless)]
        assert times[0] is not None and times[0] < 150.0, f"the head started at {times[0]}, and could at 115"
        assert times[1] is not None and times[1] < times[0], f"{times[1]}: who ends in time may pass"
        for name, at in (("long", times[2]), ("endless", times[3])):
            assert at is None or at > times[0], f"{name} started at {at}, before the head at {times[0]}"
        go(fleet, 500.0)


def room_of_the_head_is_left_alone_though_the_bell_was_lost() -> None:
    """The tick's ring did not arrive: whoever claims looks again right before it does."""
    with cluster(cores=2) as fleet:
        go(fleet, 10.0)
        give(fleet, "first", 200.0, template={"time_limit_seconds": 200})
        head = give(fleet, "head", 30.0, cores=2)
        go(fleet, 40.0)
        fleet.shared.log = None
        held = fleet.shared.peek(keys.HOLDS)
        assert held is not None and b"head" in held, "no room is held"
        host = fleet.hosts[0]
        assert host.agent is not None
        host.agent._rules._due = host.agent._rules._rung = False
        host.agent._rules._holds = type(host.agent._rules._holds)(nonce="old", holds=host.agent._rules._holds.holds)
        host.agent._rules._mine, host.agent._rules._etag = (), ""
        other = give(fleet, "other", 500.0)
        go(fleet, 300.0)
        begun, passed = started_at(fleet, head), started_at(fleet, other)
        assert begun is not None, "the head never started"
        assert passed is None or passed > begun, f"another took its room at {passed}"


def quota_is_kept_by_the_tick() -> None:
    """Two cores of four, and four tasks: no worker may claim them by itself, however free it is."""
    with cluster(hosts=2, cores=2) as fleet:
        _limit(fleet, "lab", Quota(max_cpus=2))
        go(fleet, 10.0)
        for n in range(4):
            give(fleet, f"part{n}", 20.0, workspace="lab")
        go(fleet, 300.0)


def equals_are_not_stopped() -> None:
    """Both cores are taken by work of the same priority: it waits for its turn."""
    with cluster(cores=2) as fleet:
        go(fleet, 10.0)
        batch = [give(fleet, f"batch{n}", 120.0, priority=10) for n in range(2)]
        go(fleet, 10.0)
        give(fleet, "equal", 10.0, priority=10)
        go(fleet, 100.0)
        assert not any(has_ended(fleet, j) for j in batch), "an equal was stopped"
        go(fleet, 200.0)


def urgent_work_stops_what_is_not_protected() -> None:
    """Of two on the machine one is promised five minutes; the other goes, spends nothing, and runs again."""
    with cluster(cores=2) as fleet:
        go(fleet, 10.0)
        promised = give(fleet, "promised", 200.0, template={"resilience": {"preemptible_after_seconds": 300}})
        batch = give(fleet, "batch", 200.0)
        go(fleet, 20.0)
        urgent = give(fleet, "urgent", 30.0, priority=10)
        go(fleet, 60.0)
        assert started_at(fleet, urgent) is not None, "the urgent job waits for what may be stopped"
        assert not has_ended(fleet, promised), "it was stopped in its minimum runtime"
        end = fleet.judge.seen.end_records[first(batch)]
        assert end.cause is Cause.PREEMPTED and end.budgets.failures == end.budgets.machine == 0
        go(fleet, 300.0)
        assert has_ended(fleet, batch, n=2), "what was preempted never ran again"


def protected_work_is_not_stopped() -> None:
    """Both are promised five minutes."""
    with cluster(cores=2) as fleet:
        go(fleet, 10.0)
        promise = {"resilience": {"preemptible_after_seconds": 300}}
        batch = [give(fleet, f"batch{n}", 200.0, template=promise) for n in range(2)]
        go(fleet, 20.0)
        give(fleet, "urgent", 10.0, priority=10)
        go(fleet, 100.0)
        assert not any(has_ended(fleet, j) for j in batch), "one was stopped in its minimum runtime"
        go(fleet, 300.0)


def _limit(fleet: Fleet, workspace: str, quota: Quota) -> None:
    record = Workspace(name=workspace, nonce="n", quota=quota)
    Bucket(fleet.shared.store, ambient=fleet.shared.clock).put(keys.workspace(workspace), record)
    fleet.judge.seen.quotas[workspace] = quota
