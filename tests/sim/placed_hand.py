"""What a hand does where ticks place: it says what its machine has, claims what it was given, waits at the barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stado_like.bucket import gang, generations, ordered_place
from stado_like.bucket.claim import Open
from stado_like.job import codec, gang_keys, keys
from stado_like.job.gang_records import Ready
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity, Claim, Held, Room
from stado_like.job.states import Cause
from stado_like.store.protocol import list_all

if TYPE_CHECKING:
    from tests.sim.play import Hand

CORES = 2
MIB = 1 << 20


def announce(hand: Hand) -> None:
    """The broadcast of a machine of two cores, which obeys what is held."""
    bucket, now = hand.bucket, hand.bucket.now()
    free = max(0, CORES - len(hand.disk))
    held = tuple(Held(attempt=str(a), nonce=kept.claim.nonce, alive=True) for a, kept in sorted(hand.disk.items()))
    holds = bucket.store.get(keys.HOLDS)
    record = Capacity(
        nonce=bucket.token(),
        worker=hand.name,
        host=hand.name,
        machine_id=hand.name,
        at=now,
        next_by=now + 25.0,
        total=Room(cpu_millis=CORES * 1000, memory_bytes=CORES * 1024 * MIB, gpus=0),
        free=Room(cpu_millis=free * 1000, memory_bytes=free * 1024 * MIB, gpus=0),
        accepting=True,
        held=held,
        holds_nonce=codec.decode_plain(holds.body, keys.HOLDS)["nonce"] if holds is not None else "",
    )
    bucket.put(keys.capacity(hand.name), record)


def take_given(hand: Hand) -> None:
    """Claim what ticks gave to this worker."""
    bucket = hand.bucket
    for row in list(list_all(bucket.store, keys.inbox(hand.name))):
        parsed = keys.parse_order(row.key)
        asked = ordered_place.to_start(bucket, hand.name, parsed) if parsed.kind == ordered_place.PLACE else None
        if asked is None or asked.attempt in hand.disk:
            continue
        if bucket.store.head(asked.queue_key) is None:
            bucket.drop(asked.key)  # claimed, or over
            continue
        claim = Claim(
            nonce=bucket.token(),
            attempt=str(asked.attempt),
            worker=hand.name,
            boot_id="b",
            queue_key=asked.queue_key,
            order=asked.key,
            generation=asked.generation,
        )
        hand.keep_claim(asked.attempt, claim)
        if not hand.go_on(asked.attempt) and asked.attempt not in hand.disk:
            bucket.drop(asked.key)


def must_wait(opened: Open) -> bool:
    """Whether the attempt starts only on a verdict."""
    placed = opened.placed
    return placed is not None and placed.placement.barrier and not (placed.barrier is not None and placed.barrier.go)


def meet(hand: Hand, a: AttemptId) -> bool:
    """Be ready, and look for the verdict. True: the attempt may start. Told to stop, it is ended."""
    bucket, g = hand.bucket, hand.disk[a].claim.generation
    ready = Ready(nonce=bucket.token(), attempt=str(a), worker=hand.name, address=hand.name, port=29500)
    bucket.ensure(gang_keys.ready(a, g), ready)
    verdict = gang.try_go(bucket, a.job, g, hand.name) or generations.read_barrier(bucket, a.job, g)
    if verdict is None:
        return False
    if verdict.go:
        return True
    hand.end(a, Cause.BARRIER)
    return False
