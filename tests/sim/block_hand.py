"""What a hand does with a block: it runs the ranks one after the other, and ends them with one record, as a worker's
supervisor does."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from stado_like.bucket import claim as claiming
from stado_like.bucket import end as ending
from stado_like.bucket.claim import Taken, Unsure
from stado_like.bucket.settle import settle
from stado_like.errors import StoreUnavailable
from stado_like.job import blocks, codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.records import Claim
from stado_like.job.states import Cause
from stado_like.job.terms import Terms, terms_of

if TYPE_CHECKING:
    from tests.sim.play import Hand

TTL_S = 10


class Carried(Enum):
    """What becomes of a rank besides an end: nothing began of it and of those behind it, or it outlasts its block."""

    GIVEN_BACK = "given back"
    GOES_ON = "goes on"


def blocked(name: str = "arr", tasks: int = 5, block: int = 3, **changed: Any) -> dict[str, Any]:
    """A stored specification of an array of which one claim carries `block` tasks."""
    template = {"command": "true", "heartbeat_ttl_seconds": TTL_S, **changed}
    spec = {"task_template": template, "array": {"size": tasks, "block": block}}
    return {"metadata": {"name": name, "workspace": "default"}, "spec": spec}


def is_block(hand: Hand, a: AttemptId) -> bool:
    job = hand.disk[a].job
    return job is not None and blocks.is_unit(terms_of(job.document), a.rank)


def alone(outcome: Cause | Carried) -> Cause:
    """How a rank ends that has its block behind it."""
    return Cause.NONE if isinstance(outcome, Carried) else outcome


def start(hand: Hand, a: AttemptId) -> None:
    """Its process; of a block that of its first rank."""
    if is_block(hand, a):
        begin(hand, a, 1)
    else:
        hand.play.judge.started(a, hand.name, hand.disk[a].claim.nonce)


def begin(hand: Hand, unit: AttemptId, upto: int) -> None:
    """Start its ranks, one after the other, until so many were."""
    kept = hand.disk[unit]
    for rank in blocks.ranks_of(_terms(hand, unit), unit.rank)[:upto]:
        if rank not in kept.begun and _fate(hand, unit, rank, Cause.NONE) is not Carried.GIVEN_BACK:
            kept.begun.append(rank)
            hand.play.judge.started(AttemptId(unit.job, rank, 1), hand.name, kept.claim.nonce)


def end(hand: Hand, unit: AttemptId, cause: Cause) -> None:
    """End a block and settle it. Under a stop (`cause` requested) no other rank is begun."""
    kept = hand.disk[unit]
    if kept.end_body is None:
        kept.end_body = _compose(hand, unit, cause)
    committed = ending.commit(hand.bucket, unit, kept.end_body)
    ours = isinstance(committed, ending.Ours)
    if ours:
        settle(hand.bucket, unit, committed.end, job=kept.job, queue_key=kept.claim.queue_key)
    for a, one in list(hand.disk.items()):
        if one.of == unit and ours and committed.end.goes_on == a.rank:
            one.of, one.started, one.job = None, True, kept.job
            hand.beat(a)
        elif one.of == unit:
            del hand.disk[a]  # killed: its block carried it, or was another's
    del hand.disk[unit]


def _compose(hand: Hand, unit: AttemptId, cause: Cause) -> bytes:
    kept, terms = hand.disk[unit], _terms(hand, unit)
    every = blocks.ranks_of(terms, unit.rank)
    judged = cause is Cause.REQUESTED and any(hand.bucket.present(keys.verdict(unit.job)))
    if cause is not Cause.REQUESTED:
        begin(hand, unit, len(every))
    seen = ending.Seen(worker=hand.name, by=hand.name, claimed_at=kept.claimed_at)
    goes_on = None
    ran = {}
    for rank in kept.begun:
        fate = _fate(hand, unit, rank, Cause.NONE if cause is Cause.REQUESTED else cause)
        if fate is Carried.GOES_ON and not judged:
            if _claim(hand, unit, rank):
                goes_on = rank
                break
            fate = Cause.UNDELIVERED
        why = Cause.REQUESTED if judged else alone(fate)
        ran[rank] = (Ended(why, why.value or "exit 0"), seen)
    if judged:
        ran |= {rank: (Ended(cause, cause.value), seen) for rank in every if rank not in ran}
    back = [rank for rank in every if rank not in ran]
    own = Ended(Cause.NONE, "exit 0")
    record = ending.compose_block(hand.bucket, unit, terms, own, seen, ran, given_back=back, goes_on=goes_on)
    return codec.encode(record)


def _claim(hand: Hand, unit: AttemptId, rank: int) -> bool:
    """The claim of the rank that goes on: on the disk before it is sent. False: another has it."""
    a = AttemptId(unit.job, rank, 1)
    if a not in hand.disk:
        record = Claim(nonce=hand.bucket.token(), attempt=str(a), worker=hand.name, boot_id="b")
        hand.keep_claim(a, record)
        hand.disk[a].of = unit
    sent = claiming.send(hand.bucket, a, hand.disk[a].body, "")
    if isinstance(sent, Unsure):
        raise StoreUnavailable(sent.why)
    if isinstance(sent, Taken):
        del hand.disk[a]
    return sent is None


def _fate(hand: Hand, unit: AttemptId, rank: int, usual: Cause) -> Cause | Carried:
    """What comes behind one that goes on, or was given back, is given back."""
    outcomes = hand.play.outcomes
    for before in blocks.ranks_of(_terms(hand, unit), unit.rank):
        fate = outcomes.get((unit.job.name, before, 1), usual)
        if before == rank:
            return fate
        if isinstance(fate, Carried):
            return Carried.GIVEN_BACK
    raise AssertionError(f"rank {rank} is not in {unit}")


def _terms(hand: Hand, unit: AttemptId) -> Terms:
    job = hand.disk[unit].job
    assert job is not None
    return terms_of(job.document)
