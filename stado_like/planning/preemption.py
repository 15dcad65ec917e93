"""Who is stopped so that more urgent work can start: the fewest workers, and of those the least work lost.

Only work of strictly lower priority, so no two jobs can ever evict each other in turn. Never what is protected: in its
minimum runtime, or preempted as often as its run allows. A gang is stopped whole or not at all: what is left of one
cannot work. What is being stopped already comes back by itself, and nobody is stopped for room that is coming.

Not obvious is who counts as protected: only work that would have been chosen if nothing protected it. That a run
somewhere is in its minimum runtime explains nothing to a head that would not fit without it either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId, JobId
from stado_like.planning.board import Running, Spot, Unit
from stado_like.planning.leaving import leaving
from stado_like.planning.moments import clock
from stado_like.planning.topology import Everyone
from stado_like.planning.victim_search import Group, Search


@dataclass(frozen=True, slots=True)
class Eviction:
    """`victims` are told to stop, and then the unit goes to `where`; none are needed where what is being stopped
    already is enough. `protected`: there is no way, because of these."""

    victims: tuple[Running, ...] = ()
    where: Mapping[AttemptId, str] = field(default_factory=dict)
    protected: tuple[str, ...] = ()


def victims(
    unit: Unit, spots: Sequence[Spot], now: float, *, others: Iterable[Spot] = (), everyone: Everyone | None = None
) -> Eviction | None:
    """How the unit can start on these machines. None: not by stopping anybody that may be stopped for it.

    `others`: machines that it cannot use. Members of gangs may run there, which are stopped with the rest. `everyone`:
    both, where much is asked about them.
    """
    coming = [_without_stopping(spot) for spot in sorted(spots, key=lambda one: one.machine.worker)]
    groups = _groups(unit, coming, others, now)
    search = Search(unit, coming, now, everyone or Everyone())
    where = search.where(())
    if where is not None:
        return Eviction(where=where)
    found = search.fewest([group for group in groups if not _is_protected(group, now)])
    if found is not None:
        chosen, where = found
        return Eviction(tuple(one for group in chosen for one in group.running), where)
    if any(_is_protected(group, now) for group in groups):
        found = search.fewest(groups)
        if found is not None:
            guarded = [group for group in found[0] if _is_protected(group, now)]
            return Eviction(protected=tuple(dict.fromkeys(_protected(group, unit, now) for group in guarded)))
    return None


def _without_stopping(spot: Spot) -> Spot:
    gone = [one for one in spot.running if one.stopping]
    if not gone:
        return spot
    left = tuple(one for one in spot.running if not one.stopping)
    return replace(spot, machine=leaving(spot.machine, gone, left), running=left)


def _groups(unit: Unit, spots: Sequence[Spot], others: Iterable[Spot], now: float) -> list[Group]:
    """What may only be stopped together: a task, or all tasks of a gang that has one on these machines."""
    alone: list[Group] = []
    gangs: defaultdict[JobId, list[tuple[Running, str]]] = defaultdict(list)
    here: set[JobId] = set()
    for spot in spots:
        for one in spot.running:
            if one.priority >= unit.priority:  # guard: strictly lower
                continue
            if one.gang:
                gangs[one.job].append((one, spot.machine.worker))
                here.add(one.job)
            else:
                alone.append(_group([(one, spot.machine.worker)], now))
    for spot in others if here else ():
        for one in spot.running:
            if one.gang and one.job in here and not one.stopping:
                gangs[one.job].append((one, spot.machine.worker))
    return sorted([*alone, *(_group(members, now) for members in gangs.values())], key=lambda one: one.cost)


def _group(members: list[tuple[Running, str]], now: float) -> Group:
    members = sorted(members, key=lambda one: one[0].attempt)
    on: defaultdict[str, tuple[Running, ...]] = defaultdict(tuple)
    for one, worker in members:
        on[worker] = (*on[worker], one)
    return Group(
        running=tuple(one for one, _ in members),
        on=dict(on),
        lost_s=sum(_lost_s(one, now) for one, _ in members),
    )


def _lost_s(one: Running, now: float) -> float:
    """The work that is done again."""
    since = max(one.running_at, one.saved_at)
    return max(0.0, now - since) if since else 0.0


def _is_protected(group: Group, now: float) -> bool:
    return any(one.capped or one.protected_until > now for one in group.running)  # guard: protected


def _protected(group: Group, unit: Unit, now: float) -> str:
    job = group.running[0].job
    name = job.name if job.workspace == unit.job.workspace else f"({says.ELSEWHERE})"
    if any(one.capped for one in group.running):
        return says.preempted_enough(name)
    return says.in_minimum_runtime(name, clock(max(one.protected_until for one in group.running), now))
