"""What an agent does for an attempt whose supervisor is gone: at once, without waiting for anybody's time-out.

    done                     nothing: the supervisor settled it
    exit.json                replay: the same bytes, the same nonce, then settle
    launch, but no exit.json the supervisor died: kill what is left of its tree, end the attempt Down, settle
    no launch                nobody started it: take the launch, then undo the claim as undelivered, if it is ours

Every step may raise `StoreUnavailable` and is repeated. The order matters: the tree is gone before the end is
written, or the next attempt could run beside the remains of this one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stado_like.bucket import blocks
from stado_like.bucket import claim as claiming
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import how_it_was_lost
from stado_like.bucket.settle import drop_orphan
from stado_like.errors import BadRecord
from stado_like.job import blocks as block_of
from stado_like.job import reasons
from stado_like.job.records import History
from stado_like.job.states import Cause
from stado_worker import recovery
from stado_worker.holdings import Holding
from stado_worker.launcher import Launcher
from stado_worker.secrets import private
from stado_worker.secrets.placing import remove_left_behind
from stado_worker.shim import block_report, report, workplace
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block import is_block
from stado_worker.shim.block_goes_on import drop_own_claim
from stado_worker.shim.collecting import gathered
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.task import Read

COLLECTS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Ending:
    """`entries`: the queue entries that settling made. `undelivered`: no process could be started here, and `why`.
    `goes_on`: of a block, the attempt that has a claim of its own, and is to be taken over."""

    entries: tuple[str, ...] = ()
    undelivered: bool = False
    why: str = ""
    goes_on: str = ""


def finish(bucket: Bucket, holding: Holding, launcher: Launcher, *, rebooted: bool = False) -> Ending | None:
    """End an attempt whose supervisor is gone. None: its block has to end first. Raises `StoreUnavailable`,
    `BadRecord`, OSError: call it again."""
    folder = holding.folder
    if folder.is_done():
        if _may_reach_out(holding):
            remove_left_behind(folder.path)  # a supervisor that died right after it had settled
        return _as_done(folder)
    vanished = not (folder.path / "claim.json").exists()  # a task may remove its own folder: then it was started
    folder.path.mkdir(parents=True, exist_ok=True)
    facts = report.kept(folder)
    never_started = facts is None and _never_started(folder, rebooted=rebooted) and not vanished
    # Its supervisor is dead, not slow: the lock said so before we came here. Or the lock is gone with its folder, and
    # then the supervisor goes with the rest.
    holding.stuck = launcher.remove_remains(folder)
    if never_started:
        return _undeliver(bucket, holding)
    read = recovery.task_of(bucket, holding)
    notes = workplace.close(folder)
    if read is None:
        remove_left_behind(folder.path)
        drop_orphan(bucket, holding.a, holding.claim.queue_key)
        report.note_done(folder, ours=False)
        return Ending()
    if is_block(read):
        return _finish_block(bucket, holding, read, facts, rebooted=rebooted, vanished=vanished)
    if (is_open := blocks.is_open(bucket, read.a, read.whole)) is not True:
        return None if is_open is None else _as_carried(bucket, holding)  # guard: the block first
    masks = private.masks_of(folder.path, read.terms.secret_refs)
    shipping = LogShipping.carry_on(bucket, read.a, folder.log, masks=masks)
    if facts is None:
        facts = _lost(bucket, read, holding, rebooted=rebooted)
    elif read.terms.collect and not (facts.record or facts.collected):
        facts = _collected(bucket, folder, read, facts)
    if notes and not facts.record:
        facts = replace(facts, notes=(*facts.notes, *notes))
    done = report.composed(bucket, read, folder, facts, shipping)
    made = report.send(bucket, read, folder, done, mending=True)
    remove_left_behind(folder.path)
    return Ending(made, facts.cause is Cause.UNDELIVERED, facts.reason)


def _finish_block(
    bucket: Bucket, holding: Holding, read: Read, facts: report.Facts | None, *, rebooted: bool, vanished: bool
) -> Ending:
    folder = holding.folder
    if facts is None or not facts.record:
        known = facts or _lost(bucket, read, holding, rebooted=rebooted)
        facts = block_report.finish(bucket, read, folder, known, hurt=rebooted or vanished)
    made = report.send(bucket, read, folder, report.Composed(facts), mending=True)
    ranks = block_of.ranks_of(read.whole, read.a.rank)
    goes_on = block_report.close_folders(read, folder, ranks, bucket.now())
    return Ending(made, facts.cause is Cause.UNDELIVERED, facts.reason, goes_on)


def _as_carried(bucket: Bucket, holding: Holding) -> Ending:
    """Its block ended without it: it never was an attempt of its own."""
    drop_own_claim(bucket, holding.claim)
    report.note_done(holding.folder, ours=False, at=bucket.now())
    return Ending()


def _may_reach_out(holding: Holding) -> bool:
    """Whether anything of it could lie outside its folder. Unknown of what an earlier agent claimed: then it may."""
    if holding.opened is None:
        return True
    return workplace.reaches_out(holding.opened.terms.for_rank(holding.a.rank))


def _collected(bucket: Bucket, folder: AttemptDir, read: Read, facts: report.Facts) -> report.Facts:
    """The process had ended by itself, and its supervisor died before its files were in the store. Ten seconds, no
    more: the agent has other tasks to prove alive. Of a task that was killed with its supervisor nothing is collected.
    """

    def pause(seconds: float) -> bool:
        if seconds > 0:
            bucket.ambient.sleep(seconds)
        return False

    found = gathered(lambda wait: workplace.collect_from(folder, bucket, read, wait, within_s=COLLECTS_WITHIN_S), pause)
    facts = replace(facts, collected=found.told, notes=(*facts.notes, *found.notes))
    report.keep(folder, facts, fsync=read.task.fsync)
    return facts


def _never_started(folder: AttemptDir, *, rebooted: bool) -> bool:
    """Whether no supervisor ever began, and from now on none can. Its text comes before anything is started: an empty
    one says so too, but after a loss of power, which may have taken the text."""
    if folder.create_launch("agent"):
        return True
    by = folder.launched_by()
    return by == "agent" or (by == "" and not rebooted)


def _as_done(folder: AttemptDir) -> Ending:
    try:
        done = folder.read_done() or {}
    except BadRecord:
        done = {}
    found = done.get("entries", ())
    made = tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()
    undelivered, why = done.get("cause") == Cause.UNDELIVERED.value, str(done.get("reason", ""))
    return Ending(made, undelivered, why, str(done.get("goes_on", "")))


def _undeliver(bucket: Bucket, holding: Holding) -> Ending:
    """Let go of a claim whose process was never started. Only of our own: the claim may never have reached the store,
    or another may have won it, and then the attempt is theirs."""
    standing = bucket.claim(holding.a)
    ours = standing is not None and standing.record.nonce == holding.claim.nonce
    if ours:  # guard: only our own claim is undone
        claiming.undo(bucket, holding.a, holding.claim)
    report.note_done(holding.folder, ours=ours, at=bucket.now(), cause=Cause.UNDELIVERED)
    return Ending(undelivered=ours)


def _lost(bucket: Bucket, read: Read, holding: Holding, *, rebooted: bool) -> report.Facts:
    """What is known of an attempt whose supervisor died: its last heartbeat says how far it got."""
    found = bucket.heartbeat(read.a)
    beat = found.record if found is not None else None
    notes = (f"processes {', '.join(map(str, holding.stuck))} would not die",) if holding.stuck else ()
    why = reasons.MACHINE_RESTARTED if rebooted else reasons.SUPERVISOR_LOST
    cause, reason = how_it_was_lost(bucket, read.a, beat, why)
    if beat is not None and cause is Cause.REQUESTED and is_block(read):
        # A mark at a block stops some of its ranks, and not the others: each is asked for at its own end.
        cause = Cause(beat.stop_cause) if beat.stop_cause in set(Cause) else Cause.MACHINE_LOST
    return report.Facts(
        cause=cause,
        reason=reason,
        started_at=beat.started_at if beat else 0.0,
        running_at=beat.running_at if beat else 0.0,
        ended_at=bucket.now(),
        by=read.task.worker,
        history=beat.history if beat else History(),
        notes=notes,
        supervisor_died_on="" if rebooted or cause is not Cause.MACHINE_LOST else read.task.worker,
    )
