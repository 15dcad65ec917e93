"""One claim, from an entry that fits to an attempt that may be launched. Nothing here remembers anything.

    prepare   the claim on the local disk, with its nonce and its bytes, before it is sent
    advance   sent → gate → the lane's next rank → the entry gone; as far as the store answers, and again from there
    task_of   what the supervisor is to know

Not obvious because every step may be the last of this process: what `prepare` wrote lets the next one send the same
bytes, and `advance` goes on from whatever was reached.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stado_like.ambient import Ambient
from stado_like.bucket import claim as claiming
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open, Over, Taken, Unsure
from stado_like.bucket.ordered_place import ToStart
from stado_like.errors import StoreError
from stado_like.job import codec, keys
from stado_like.job.keys import Entry
from stado_like.job.records import Claim
from stado_like.job.terms import Ask
from stado_worker.graces import Graces
from stado_worker.holdings import Holding, keep_claim
from stado_worker.recovery import UNREADABLE
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.task import Task

if TYPE_CHECKING:
    from stado_worker.agent import AgentOptions


@dataclass(frozen=True, slots=True)
class Launchable:
    """Ours, and the gate is open. `released`: the entries that this claim released."""

    opened: Open
    released: Sequence[str]


@dataclass(frozen=True, slots=True)
class NotMine:
    """Another's (`lost`), over, or an orphan: nothing is left to do. `why` is for the log, where it says something."""

    why: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The job, or the claim that stands there, is beyond us. Ours is gone and the entry stays: nothing was started,
    and a newer worker may understand it."""

    why: Exception


def prepare(
    bucket: Bucket, options: AgentOptions, ambient: Ambient, entry: Entry, ask: Ask, by: ToStart | None = None
) -> Holding:
    """The claim, kept before it is sent. Raises OSError where the disk would not have it: then none is sent. `by`: the
    order it is claimed by."""
    a, fsync = entry.attempt, options.fsync
    claim = Claim(
        nonce=bucket.token(),
        attempt=str(a),
        worker=options.worker,
        machine_id=options.machine_id,
        boot_id=ambient.boot_id,
        instance_id=options.instance_id,
        since=bucket.now(),
        queue_key=entry.key,
        order=by.key if by is not None else "",
        generation=by.generation if by is not None else 0,
        devices=ask.devices,
    )
    body, boot_s = codec.encode(claim), ambient.boot_s()
    if fsync:
        bucket.ahead(keys.running(a), body)
    folder = AttemptDir.make(options.home.attempts, str(a))
    if folder.is_done():
        shutil.rmtree(folder.path)  # a claim of long ago that another won
        folder = AttemptDir.make(options.home.attempts, str(a))
    keep_claim(folder, claim, body, ask, boot_s, ambient.boot_id, fsync=fsync)
    return Holding(a, claim, body, folder, ask, boot_s)


def advance(bucket: Bucket, holding: Holding) -> Launchable | NotMine | Unreadable | Unsure:
    """As far as the store answers. Raises `StoreUnavailable` where it is as good as `Unsure`: call again."""
    try:
        return _advance(bucket, holding)
    except UNREADABLE as bad:
        if holding.sent:
            bucket.drop(keys.running(holding.a))
        return Unreadable(bad)


def _advance(bucket: Bucket, holding: Holding) -> Launchable | NotMine | Unsure:
    a, claim = holding.a, holding.claim
    if not holding.sent:
        answer = claiming.send(bucket, a, holding.body, claim.queue_key)
        if isinstance(answer, Taken):
            _drop_order(bucket, claim)
            return NotMine(lost=not claim.order)
        if isinstance(answer, Unsure):
            return answer
        holding.sent = True
    if holding.opened is None:
        gate = claiming.gate(bucket, a, claim)
        if isinstance(gate, Unsure):
            return gate
        if isinstance(gate, Over):
            _drop_order(bucket, claim)
            return NotMine(gate.why)
        holding.opened = gate
    try:
        released = claiming.confirm(bucket, a, holding.opened, claim)
    except StoreError as trouble:
        return Unsure(trouble.message)
    return Launchable(holding.opened, released)


def _drop_order(bucket: Bucket, claim: Claim) -> None:
    """There is nothing more to be claimed by it."""
    if claim.order:
        bucket.drop(claim.order)


def task_of(options: AgentOptions, graces: Graces, holding: Holding, opened: Open) -> Task:
    return Task(
        attempt=str(holding.a),
        store=options.store_url,
        worker=options.worker,
        claim=holding.claim,
        job=opened.job,
        previous=opened.previous,
        claimed_boot_s=holding.claimed_boot_s,
        claimed_at=holding.claim.since,
        fsync=options.fsync,
        grace_s=graces.grace_s,
        most_grace_s=graces.most_grace_s,
        address=options.address,
        placement=opened.placed.placement if opened.placed is not None else None,
        barrier=opened.placed.barrier if opened.placed is not None else None,
    )
