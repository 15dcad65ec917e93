"""What each machine says of a unit that found no place, once as many of its members as possible were given one.

A machine may have room and yet be out of the question, because of where the other members are: that is said only where
the machine itself has nothing against the task, or beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.terms import Ask
from stado_like.planning.board import Member, Unit
from stado_like.planning.fit import Kept, Machine, taking, why_not
from stado_like.planning.networks import SHOWN, Network, label_of, name_at
from stado_like.planning.packing import Kind


@dataclass(frozen=True, slots=True)
class Outside:
    """How far the unit came. `within`: the name in which it is kept; `network`: what its members share; `allowed`: the
    machines that are on it; `used`: the machines that its tasks are on, or would be; `spread`: their names at the level
    over which it is spread."""

    unit: Unit
    kinds: Sequence[Kind]
    where: Mapping[str, Sequence[Member]]
    network: Network | None
    within: str
    allowed: frozenset[str]
    used: frozenset[str]
    spread: frozenset[str]

    def next_ask(self) -> Ask:
        """What the first member asks for that found no place."""
        placed = {member.attempt for members in self.where.values() for member in members}
        waiting = (member for kind in self.kinds for member in kind.members if member.attempt not in placed)
        return next(waiting, self.unit.members[0]).ask


def why_outside(how_far: Outside, machine: Machine, kept: Kept | None) -> tuple[str, ...]:
    """Every reason, the machine's own first; empty: it would take another member."""
    after = machine
    for member in how_far.where.get(machine.worker, ()):
        after = taking(after, member.ask)
    found = list(why_not(after, how_far.next_ask(), kept))
    if machine.worker in how_far.unit.avoid:
        found.append(says.refused_lately(how_far.unit.job.name))
    found += _kept_within(how_far, machine)
    found += _spread(how_far, machine)
    most = how_far.unit.near.max_nodes
    if most and len(how_far.used) >= most and machine.worker not in how_far.used:
        found.append(says.machines_at_most(most))
    network = how_far.network
    if not found and network is not None and how_far.where and machine.worker not in how_far.allowed:
        found.append(says.kept_within(*network.level))
    return tuple(dict.fromkeys(found))


def _kept_within(how_far: Outside, machine: Machine) -> list[str]:
    level, within = how_far.unit.near.keep_within, how_far.within
    if not level or len(how_far.unit.members) + len(how_far.used) < 2:
        return []
    name = name_at(machine, level)
    if not name:
        return [_none_set(level)]
    if not within or name == within:
        return []
    return [says.kept_on_one_machine(within) if level == "node" else says.kept_within(SHOWN.get(level, level), within)]


def _spread(how_far: Outside, machine: Machine) -> list[str]:
    level = how_far.unit.near.spread
    if not level:
        return []
    name = name_at(machine, level)
    if not name:
        return [_none_set(level)]
    if name not in how_far.spread:
        return []
    return [reasons.ANOTHER_WORKER_HERE if level == "node" else says.has_one_already(level, name)]


def _none_set(level: str) -> str:
    if level == "nvlink_domain":
        return says.none_set("NVLink domain", "its GPUs report none, or several")
    return says.none_set(level, label_of(level))
