"""Who may be declared dead. The most dangerous decision of all: a wrong "dead" runs a task twice, a wrong "alive" only
waits.

    Stale   the heartbeat is older than TTL + 15 s
    Down    it stayed so for another full TTL, seen twice, and every other signal is old too

Three signals, each of which clears an attempt by itself: its heartbeat; the newest object below its *own* checkpoint
prefix, for an upload of gigabytes starves the small heartbeat (at most 30 minutes beyond the last one); and its
worker's word, a broadcast before its promise that names the attempt with the claim's nonce as alive. An attempt that a
broadcast does not name, or names not alive, is neither cleared nor condemned by it. A claim that no heartbeat ever
followed counts as one written when the claim was.

Seen twice: a tick arms what it finds Stale (etag and time of the heartbeat, and when that was seen). Down needs such an
arming, unchanged, at least a TTL old. So the first tick after an outage arms and does not kill, and a clock that jumps
finds the next heartbeat in its way. What could not be looked at keeps its arming and waits.

The brake: more than half of the machines with running work, and at least two, looking dead at once is more likely our
own blindness than a catastrophe. It delays, it does not forbid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stado_like.job.records import Armed, Observed
from stado_like.planning.actions import BrakePulled, Deferred, Reap, Remember
from stado_like.planning.world import BROADCAST_GRACE_S, STALE_GRACE_S, Broadcast, Held, Look, World

BLOB_BEYOND_HEARTBEAT_S = 30 * 60.0
PROMISE_MOST_S = 10 * 60.0
BRAKE_S = 10 * 60.0
BRAKE_TTLS = 3
BRAKE_MACHINES = 2
BRAKE_GAP_COUNTS_S = 5 * 60.0
RELEASED_A_MINUTE = 5
RELEASED_SHARE = 0.1
READS_HOLD_S = 10.0


def is_fresh(broadcast: Broadcast) -> bool:
    """Whether a worker's promise to speak again still runs. A promise of more than ten minutes is not believed beyond
    that: broadcasts come every twenty seconds, so its writer's clock was wrong."""
    promised = min(broadcast.capacity.next_by, broadcast.last_modified + PROMISE_MOST_S)
    return broadcast.now <= promised + BROADCAST_GRACE_S


def is_vouched(held: Held, broadcasts: Mapping[str, Broadcast]) -> bool:
    """Whether the claim's own worker says, freshly, that this very claim is alive."""
    said = broadcasts.get(held.claim.worker)
    if said is None or not is_fresh(said):
        return False
    return any(  # guard: claim's nonce
        one.alive and one.attempt == str(held.attempt) and one.nonce == held.claim.nonce for one in said.capacity.held
    )


def silence_s(look: Look) -> float:
    """Seconds since the newest of the attempt's own signs of life, each by the clock of its own answer."""
    _, written_at = look.signature
    silent_s = max(0.0, look.now - written_at)
    if look.blob is not None:
        at = min(look.blob.last_modified, written_at + BLOB_BEYOND_HEARTBEAT_S)
        silent_s = min(silent_s, max(0.0, look.blob.now - at))
    return silent_s


def is_heartbeat_late(look: Look) -> bool:
    """Whether the heartbeat alone is Stale: only then is it worth listing checkpoints."""
    return look.now - look.signature[1] > look.ttl_s + STALE_GRACE_S


def is_stale(look: Look) -> bool:
    """Whether every sign of life that was looked for is old. The caller has seen that the look itself succeeded."""
    return not look.vouched and not look.ended_at and silence_s(look) > look.ttl_s + STALE_GRACE_S


def is_down(look: Look, armed: Armed | None, armed_here_s: float | None = None) -> bool:
    """Whether a Stale attempt has stayed so for another full TTL, as an earlier look at the same heartbeat proves.

    `armed_here_s`: for how long this process has had it armed, by a clock that does not jump when the store's does.
    """
    if armed is None or (armed.etag, armed.last_modified) != look.signature:
        return False
    if armed_here_s is not None and armed_here_s < look.ttl_s:
        return False
    return look.now - armed.first_seen >= look.ttl_s  # guard: seen twice


@dataclass(frozen=True, slots=True)
class Judged:
    """What liveness came to. `remember` is None when nothing changed or nothing may be written."""

    reaps: tuple[Reap, ...] = ()
    brake: BrakePulled | None = None
    remember: Remember | None = None
    deferred: tuple[Deferred, ...] = ()


def judge(world: World, *, reap_now: bool = False) -> Judged:
    """Arm, clear, condemn. `reap_now`: a person has looked and overrides the brake (never the arming)."""
    blind = [what for what in ("running", "capacity", "observed") if what in world.unread]
    if "running" in blind or "observed" in blind:
        what = "claims could not be listed" if "running" in blind else "what earlier ticks saw could not be read"
        return Judged(deferred=(Deferred("reap", f"liveness unknown: {what}: {world.unread[blind[0]]}"),))
    armed: dict[str, Armed] = {}
    condemned: list[Reap] = []
    unknown: list[Look] = []
    for look in world.looks:
        name = str(look.attempt)
        known = world.observed.armed.get(name)
        if look.unknown or ("capacity" in blind and is_stale(look)):
            unknown.append(look)
            if known is not None:
                armed[name] = known
        elif is_stale(look):
            armed[name] = arming = _armed(look, known)
            if is_down(look, known, world.armed_here_s.get(name)):
                condemned.append(Reap(look, arming, undelivered=look.beat is None))
    brake, released = (None, condemned) if reap_now else _brake(world, condemned, unknown)
    observed = _observed(world, armed, brake, released)
    return Judged(
        reaps=tuple(released),
        brake=brake,
        remember=_remember(world.observed, observed),
        deferred=_unknown(world, unknown),
    )


def _armed(look: Look, known: Armed | None) -> Armed:
    etag, last_modified = look.signature
    if (
        known is not None
        and (known.etag, known.last_modified) == (etag, last_modified)
        and known.first_seen <= look.now
    ):
        return known
    return Armed(etag=etag, last_modified=last_modified, first_seen=look.now)


def _unknown(world: World, unknown: list[Look]) -> tuple[Deferred, ...]:
    if not unknown:
        return ()
    jobs = {look.attempt.job for look in unknown}
    why = unknown[0].unknown or f"broadcasts could not be listed: {world.unread.get('capacity', '')}"
    return (Deferred("reap", f"liveness unknown for {len(jobs)} jobs ({len(unknown)} attempts); the first: {why}"),)


def looks_dead(world: World) -> tuple[list[str], list[str]]:
    """Machines with running work of which nothing shows life, and all machines with running work."""
    lively: set[str] = set()
    suspect: set[str] = set()
    for look in world.looks:
        if look.ended_at:
            continue
        if not look.unknown and not is_stale(look):
            lively.add(look.machine)
        else:
            suspect.add(look.machine)
    lively.update(name for name in suspect if name in world.broadcasts and is_fresh(world.broadcasts[name]))
    return sorted(suspect - lively), sorted(suspect | lively)


def _brake(world: World, condemned: list[Reap], unknown: list[Look]) -> tuple[BrakePulled | None, list[Reap]]:
    """Whether so much looks dead that none may go yet, and which may after all."""
    dead, machines = looks_dead(world)
    if not condemned or len(dead) < BRAKE_MACHINES or len(dead) * 2 <= len(machines):
        return None, condemned
    now = world.now
    since = world.observed.brake_since
    if not 0 < since <= now or unknown or world.unread:
        since = now  # the ten minutes count only while our own calls succeed
    else:  # and of a time in which no tick looked at most five: an outage of the coordinator lets nobody go
        since += max(0.0, now - world.observed.braked_at - BRAKE_GAP_COUNTS_S)
    others = any(is_fresh(said) for name, said in world.broadcasts.items() if name not in dead)
    oldest = sorted(condemned, key=lambda reap: (reap.look.signature[1], reap.attempt))
    due = [reap for reap in oldest if now - since >= _brake_s(reap, others)]
    used = sum(1 for at in world.observed.reaped_at if 0 <= now - at < 60.0)
    a_minute = max(RELEASED_A_MINUTE, math.floor(len(world.looks) * RELEASED_SHARE))
    released = due[: max(0, a_minute - used)]  # guard: brake
    kept = [reap for reap in oldest if reap not in released]
    until = 0.0 if due else since + min(_brake_s(reap, others) for reap in oldest)
    names = tuple(str(reap.attempt) for reap in kept)
    return BrakePulled(tuple(dead), len(machines), names, since, until, len(released)), released


def _brake_s(reap: Reap, others: bool) -> float:
    """How long the brake holds an attempt: shorter when another machine's broadcasts arrive, for then the store is not
    what is broken."""
    return min(BRAKE_S, BRAKE_TTLS * reap.look.ttl_s) if others else BRAKE_S


def _observed(world: World, armed: dict[str, Armed], brake: BrakePulled | None, released: list[Reap]) -> Observed:
    if brake is None:
        return Observed(armed=armed, extra=world.observed.extra)
    recent = tuple(at for at in world.observed.reaped_at if 0 <= world.now - at < 60.0)
    return Observed(
        armed=armed,
        brake_since=brake.since,
        braked_at=world.now,
        reaped_at=recent + (world.now,) * len(released),
        extra=world.observed.extra,
    )


def _remember(before: Observed, after: Observed) -> Remember | None:
    if before == after:
        return None
    armed = tuple(name for name, one in after.armed.items() if before.armed.get(name) != one)
    return Remember(after, armed, tuple(name for name in before.armed if name not in after.armed))
