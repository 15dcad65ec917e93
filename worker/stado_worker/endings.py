"""What an agent does for an attempt whose supervisor is gone: at once, without waiting for anybody's time-out.

    done                     nothing: the supervisor settled it
    exit.json                replay: the same bytes, the same nonce, then settle
    launch, but no exit.json the supervisor died: kill what is left of its tree, end the attempt Down, settle
    no launch                nobody started it: take the launch, then undo the claim as undelivered

Every step may raise `StoreUnavailable` and is repeated. The order matters: the tree is gone before the end is
written, or the next attempt could run beside the remains of this one.
"""

from __future__ import annotations

from stado_like.bucket import claim as claiming
from stado_like.bucket.bucket import Bucket
from stado_like.job import reasons
from stado_like.job.records import History
from stado_like.job.states import Cause
from stado_worker.holdings import Holding
from stado_worker.launcher import Launcher
from stado_worker.shim import report
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.task import Read, read_task


def finish(bucket: Bucket, holding: Holding, launcher: Launcher, *, rebooted: bool = False) -> tuple[str, ...]:
    """End an attempt whose supervisor is gone. Returns the queue entries that settling made. Raises
    `StoreUnavailable`, `BadRecord`."""
    folder = holding.folder
    if folder.is_done():
        return _entries(holding)
    facts = report.kept(folder)
    plain = folder.read_task()
    if facts is None and folder.create_launch("agent"):
        return _undeliver(bucket, holding)
    if plain is None:
        return _undeliver(bucket, holding)
    read = read_task(plain)
    if facts is None:
        # Its supervisor is dead, not slow: the lock said so before we came here.
        holding.stuck = launcher.remove_remains(folder)
        facts = _lost(bucket, read, holding, rebooted=rebooted)
        report.keep(folder, facts, fsync=read.task.fsync)
    shipping = LogShipping.carry_on(bucket, read.a, folder.log)
    report.report(bucket, read, folder, facts, shipping)
    return _entries(holding)


def _entries(holding: Holding) -> tuple[str, ...]:
    done = holding.folder.read_done() or {}
    found = done.get("entries", ())
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _undeliver(bucket: Bucket, holding: Holding) -> tuple[str, ...]:
    claiming.undo(bucket, holding.a, holding.claim)
    holding.folder.write_done({"ours": True, "at": bucket.now(), "entries": []})
    return ()


def _lost(bucket: Bucket, read: Read, holding: Holding, *, rebooted: bool) -> report.Facts:
    """What is known of an attempt whose supervisor died: its last heartbeat says how far it got."""
    found = bucket.heartbeat(read.a)
    beat = found.record if found is not None else None
    notes = (f"processes {', '.join(map(str, holding.stuck))} would not die",) if holding.stuck else ()
    return report.Facts(
        cause=Cause.MACHINE_LOST,
        reason=reasons.MACHINE_RESTARTED if rebooted else reasons.SUPERVISOR_LOST,
        started_at=beat.started_at if beat else 0.0,
        running_at=beat.running_at if beat else 0.0,
        ended_at=bucket.now(),
        by=read.task.worker,
        history=beat.history if beat else History(),
        notes=notes,
    )

