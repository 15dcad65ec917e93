"""Gangs in a bucket, taken through their steps by the real transitions."""

from __future__ import annotations

from typing import Any

from stado_like.bucket import claim as claiming
from stado_like.bucket import gang, generations, order, ordered_place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open, Over, Unsure
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.gang import Tended
from stado_like.bucket.ordered_place import ToStart
from stado_like.bucket.settle import settle
from stado_like.job import codec, gang_keys, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.gang_records import Ready
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End
from stado_like.job.states import Cause, TaskState
from stado_like.job.terms import Terms
from stado_like.store.protocol import list_all
from tests.builders_jobs import beat, submit


def submit_gang(bucket: Bucket, tasks: int = 2, name: str = "train", **spec: Any) -> JobId:
    template = {"requested_resources": {"node_selection": {"count": tasks, "mode": "Any"}}, **spec.pop("template", {})}
    return submit(bucket, name, **{"start": "Gang", "template": template, **spec})


def terms_of(bucket: Bucket, j: JobId) -> Terms:
    job = bucket.job(j)
    assert job is not None
    return bucket.terms(job)


def place(bucket: Bucket, j: JobId, count: int | None = None) -> int:
    """Place what waits, each member on a machine of its own (`w0`, `w1`, …). Returns the generation."""
    wanted = gang.waits(bucket, j, terms_of(bucket, j))
    assert wanted is not None
    members = wanted.members[:count] if count is not None else wanted.members
    placed = gang.place(bucket, j, wanted.generation, {a: f"w{a.rank}" for a in members})
    assert placed.generation == wanted.generation, placed.why
    return placed.generation


def orders(bucket: Bucket, worker: str) -> list[ToStart]:
    found = []
    for row in list_all(bucket.store, keys.inbox(worker)):
        parsed = keys.parse_order(row.key)
        asked = ordered_place.to_start(bucket, worker, parsed) if parsed.kind == "place" else None
        if asked is not None:
            found.append(asked)
    return found


def send_ordered(bucket: Bucket, worker: str) -> tuple[ToStart, Claim] | None:
    """Send the claim that the first order in a worker's inbox asks for. None: there is none, or it is another's."""
    found = orders(bucket, worker)
    if not found:
        return None
    asked = found[0]
    claim = Claim(
        nonce=bucket.token(),
        attempt=str(asked.attempt),
        worker=worker,
        since=bucket.now(),
        queue_key=asked.queue_key,
        order=asked.key,
        generation=asked.generation,
    )
    sent = claiming.send(bucket, asked.attempt, codec.encode(claim), "")
    return (asked, claim) if sent is None else None


def take_ordered(bucket: Bucket, worker: str) -> tuple[AttemptId, Claim, Open | Over | Unsure]:
    """Claim what a worker was ordered to start, as it does."""
    sent = send_ordered(bucket, worker)
    assert sent is not None
    asked, claim = sent
    opened = claiming.gate(bucket, asked.attempt, claim)
    if isinstance(opened, Open):
        claiming.confirm(bucket, asked.attempt, opened, claim)
    return asked.attempt, claim, opened


def make_ready(bucket: Bucket, a: AttemptId, g: int) -> None:
    beat(bucket, a, TaskState.READY_TO_START, worker=f"w{a.rank}", reason=reasons.AT_BARRIER)
    ready = Ready(nonce=bucket.token(), attempt=str(a), worker=f"w{a.rank}", address=f"10.0.0.{a.rank}", port=4000 + g)
    bucket.ensure(gang_keys.ready(a, g), ready)


def start(bucket: Bucket, j: JobId, count: int | None = None) -> int:
    """Place, claim, reach the barrier, go, run. Returns the generation."""
    g = place(bucket, j, count)
    members = range(count if count is not None else terms_of(bucket, j).tasks)
    taken = [take_ordered(bucket, f"w{rank}") for rank in members]
    for a, _, opened in taken:
        assert isinstance(opened, Open), opened
        make_ready(bucket, a, g)
    verdict = gang.try_go(bucket, j, g, "w0")
    assert verdict is not None and verdict.go
    for a, _, _ in taken:
        beat(bucket, a, worker=f"w{a.rank}")
    return g


def end_member(
    bucket: Bucket, a: AttemptId, cause: Cause = Cause.NONE, reason: str = "", ran_s: float = 1.0, *, ran: bool = False
) -> End:
    """End and settle a member as its supervisor does. `ran`: it says that it ran, whatever the barrier says."""
    job = bucket.job(a.job)
    assert job is not None
    claim, now = bucket.claim(a), bucket.now()
    generation = claim.record.generation if claim is not None else 0
    placement, verdict = (
        generations.read_placement(bucket, a.job, generation),
        generations.read_barrier(bucket, a.job, generation),
    )
    ran = ran or placement is None or not placement.barrier or (verdict is not None and verdict.go)
    began_at = now - ran_s if ran else 0.0
    code = {Cause.NONE: 0, Cause.FAILURE: 1}.get(cause)
    seen = Seen(
        worker=f"w{a.rank}",
        claimed_at=now - ran_s,
        started_at=began_at,
        running_at=began_at,
        ended_at=now,
        exit_code=code,
        by=f"w{a.rank}",
        generation=generation,
    )
    said = reason or (reasons.exited(code) if code is not None else cause.value)
    done = end_attempt(bucket, a, bucket.terms(job).for_rank(a.rank), Ended(cause, said, ran_s), seen)
    settle(bucket, a, done.end, job=job)
    return done.end


def stops(bucket: Bucket, worker: str) -> list[tuple[AttemptId, Cause, str]]:
    """The stop orders in an inbox."""
    return [(one.attempt, one.cause, one.reason) for one in order.stops_for(bucket, worker, {})]


def tend(bucket: Bucket, j: JobId) -> Tended:
    job = bucket.job(j)
    assert job is not None
    return gang.tend(bucket, j, job, bucket.terms(job))


def stop_all(bucket: Bucket, j: JobId, but: AttemptId) -> None:
    """The other members obey the orders in their inboxes."""
    for rank in range(terms_of(bucket, j).tasks):
        for a, cause, reason in stops(bucket, f"w{rank}"):
            if a != but:
                end_member(bucket, a, cause, reason)
