"""The one record that ends a block: what each rank came to, and which are given back.

Not obvious because two write it from different knowledge. The supervisor knows how every rank ended that it began. An
agent that finishes for a dead supervisor knows what `ran` says, and nothing may run twice under one number:

    ended                               its end, as it was noted
    begun, and no end noted             lost with its supervisor; attempt 2 follows
    never begun, and that is certain    given back: attempt 1, by itself
    never begun, under a verdict        cancelled
    else                                lost, like one that was begun

A rank that goes on is among those given back, and is named: its claim stood before this record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stado_like.bucket import end as ending
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen
from stado_like.job import blocks, codec, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.records import MOST_BYTES, End, LogTail
from stado_like.job.states import Cause
from stado_worker.secrets.masking import NO_MASKS
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block_ran import Ran, RanFile, RankEnd, rank_folder, read_ran, with_output
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.outputs import said
from stado_worker.shim.report import Facts
from stado_worker.shim.task import Read

LEAST_LINES = 512


class BlockShipping(LogShipping):
    """The outputs of a block's ranks that are too long for its record, each under its own attempt."""

    def __init__(self, bucket: Bucket, read: Read, folder: AttemptDir, ranks: RanFile) -> None:
        super().__init__(bucket, read.a, folder.log, masks=NO_MASKS)
        self._read_of = read
        self._ranks = ranks
        self._sent: dict[int, LogShipping] = {}

    def has_backlog(self) -> bool:
        return any(self._of(rank).grown() for rank in tuple(self._ranks.long))

    def ship(self, upto: int | None = None) -> int:
        for rank in tuple(self._ranks.long):
            sent = self._of(rank).ship()
            if sent:
                return sent
        return 0

    def uploaded(self, rank: int) -> LogTail:
        """What a record says of an output that lies in the store. Raises `StoreUnavailable`."""
        one = self._of(rank)
        while one.ship():
            pass
        return LogTail(offset=one.shipped, size=max(one.shipped, one.size()))

    def _of(self, rank: int) -> LogShipping:
        if rank not in self._sent:
            a = AttemptId(self._read_of.a.job, rank, 1)
            self._sent[rank] = LogShipping(self._bucket, a, self._ranks.folder_of(rank).log)
        return self._sent[rank]


def compose(
    bucket: Bucket,
    read: Read,
    facts: Facts,
    ran: Ran,
    attempts: Path,
    *,
    goes_on: int | None = None,
    stopped: Ended | None = None,
) -> tuple[End, bytes]:
    """`stopped`: how ranks end that were not begun, where they are not given back. Long outputs were uploaded. Raises
    as `bucket.end.compose`."""
    end = _composed(bucket, read, facts, ran, attempts, goes_on, stopped)
    body = codec.encode(end)
    if len(body) > MOST_BYTES and stopped is not None:
        end = _composed(bucket, read, facts, ran, attempts, goes_on, None)
        body = codec.encode(end)
    if len(body) > MOST_BYTES:
        short = {rank: replace(one, last_lines=one.last_lines[-LEAST_LINES:]) for rank, one in ran.ended.items()}
        end = _composed(bucket, read, facts, replace(ran, ended=short), attempts, goes_on, None)
        body = codec.encode(end)
    return end, body


def _composed(
    bucket: Bucket,
    read: Read,
    facts: Facts,
    ran: Ran,
    attempts: Path,
    goes_on: int | None,
    stopped: Ended | None,
) -> End:
    rows = {rank: _row(read, one, facts) for rank, one in ran.ended.items()}
    back: list[int] = []
    for rank in blocks.ranks_of(read.whole, read.a.rank):
        if rank in rows:
            continue
        if rank == goes_on:
            back.append(rank)
        elif rank == ran.begun or not ran.whole:  # guard: begun is not given back
            rows[rank] = _row(read, lost_end(rank, ran, facts), facts)
        elif stopped is not None:
            rows[rank] = _row(read, RankEnd(rank=rank, cause=stopped.cause, reason=stopped.reason), facts)
        else:
            back.append(rank)
    own = Ended(facts.cause, facts.reason)
    whole = Seen(
        worker=read.task.worker,
        claimed_at=read.task.claimed_at,
        started_at=facts.started_at,
        running_at=facts.running_at,
        ended_at=facts.ended_at,
        by=facts.by,
        notes=facts.notes,
    )
    end = ending.compose_block(bucket, read.a, read.whole, own, whole, rows, given_back=back, goes_on=goes_on)
    carried: dict[str, Any] = dict(end.carried)
    for rank in rows:
        told = _told(read, rank_folder(attempts, read.a, rank))
        if told:
            row = carried[str(rank)]
            notes = [*row.get("notes", ()), *told.pop("notes", ())]
            carried[str(rank)] = {**row, **told, **({"notes": notes} if notes else {})}
    return replace(end, carried=carried, requests=dict(facts.requests))


def _row(read: Read, one: RankEnd, facts: Facts) -> tuple[Ended, Seen]:
    running_s = one.ended_at - one.running_at if one.running_at else 0.0
    seen = Seen(
        worker=read.task.worker,
        claimed_at=read.task.claimed_at,
        started_at=one.started_at,
        running_at=one.running_at,
        ended_at=one.ended_at or facts.ended_at,
        exit_code=one.exit_code,
        signal=one.signal,
        by=facts.by,
        log=one.log or LogTail(),
        last_lines=one.last_lines,
        notes=one.notes,
    )
    died_on = facts.supervisor_died_on if one.cause is Cause.MACHINE_LOST else ""
    return Ended(one.cause, one.reason, running_s, died_on), seen


def lost_end(rank: int, ran: Ran, facts: Facts) -> RankEnd:
    """Of a rank that may have begun and of which no end is known: its block's own, or its loss."""
    began_at = ran.begun_at if rank == ran.begun else 0.0
    return RankEnd(
        rank=rank,
        cause=Cause.MACHINE_LOST if facts.cause is Cause.NONE else facts.cause,
        reason=facts.reason if facts.cause is not Cause.NONE else reasons.SUPERVISOR_LOST,
        started_at=began_at,
        running_at=began_at,
        ended_at=facts.ended_at,
    )


def _told(read: Read, folder: AttemptDir) -> dict[str, Any]:
    """What a task said of itself, for those whose folder is still there: the others said nothing."""
    if not folder.path.exists():
        return {}
    found = said(folder, read.terms, NO_MASKS)
    told = {"progress": dict(found.progress), "outputs": dict(found.outputs), "notes": found.notes}
    return {name: value for name, value in told.items() if value}


# ---- for a dead supervisor


def finish(bucket: Bucket, read: Read, folder: AttemptDir, facts: Facts, *, hurt: bool) -> Facts:
    """The facts with the record of a block whose supervisor is gone, and its whole tree. `hurt`: what was written last
    may be gone, with a reboot or with the whole folder. Raises `StoreUnavailable`."""
    ran = read_ran(folder) or Ran()
    if hurt:
        ran = replace(ran, whole=False)
    attempts = folder.path.parent
    if ran.begun is not None:
        one = rank_folder(attempts, read.a, ran.begun)
        end = _its_own_word(ran.begun, one) or lost_end(ran.begun, ran, facts)
        ran = replace(ran, ended={**ran.ended, end.rank: with_output(one, end)}, begun=None)
    for rank, end in tuple(ran.ended.items()):
        if end.log is None:
            ran.ended[rank] = replace(end, log=_uploaded(bucket, read, attempts, rank))
    stopped = Ended(facts.cause, facts.reason) if facts.cause is Cause.REQUESTED else None
    _, body = compose(bucket, read, facts, ran, attempts, stopped=stopped)
    facts = replace(facts, record=body.decode())
    report.keep(folder, facts, fsync=read.task.fsync)
    return facts


def _its_own_word(rank: int, folder: AttemptDir) -> RankEnd | None:
    """The rank that was to go on may have ended, and its end been kept, before the block's was."""
    facts = report.kept(folder)
    if facts is None or facts.record:
        return None
    return RankEnd(
        rank=rank,
        cause=facts.cause,
        reason=facts.reason,
        exit_code=facts.exit_code,
        signal=facts.signal,
        started_at=facts.started_at,
        running_at=facts.running_at,
        ended_at=facts.ended_at,
        notes=facts.notes,
    )


def _uploaded(bucket: Bucket, read: Read, attempts: Path, rank: int) -> LogTail:
    shipping = LogShipping.carry_on(bucket, AttemptId(read.a.job, rank, 1), rank_folder(attempts, read.a, rank).log)
    while shipping.ship():
        pass
    return LogTail(offset=shipping.shipped, size=max(shipping.shipped, shipping.size()))


# ---- the ranks' folders


def close_folders(read: Read, folder: AttemptDir, ranks: Iterable[int], at: float) -> str:
    """The block has ended: nothing is left to do for its ranks, but for one that has a claim of its own. Returns that
    one's attempt, or nothing."""
    claimed = ""
    for rank in ranks:
        one = rank_folder(folder.path.parent, read.a, rank)
        if (one.path / "claim.json").exists():
            claimed = claimed if one.is_done() else one.attempt_id
        elif one.path.exists() and not one.is_done():
            report.note_done(one, ours=True, at=at)
    return claimed
