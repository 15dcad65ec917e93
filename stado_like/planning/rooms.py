"""The machines of a board while a plan fills them, and which of them is the first with room for an ask.

A plan may look at a hundred thousand tasks and five thousand machines, so neither may be gone through for each of the
other. Three observations make that unnecessary. Within one plan room only shrinks: a machine that did not fit an ask
once never will, so each kind of ask keeps its place in the row of machines (`Kind.cursors`). Asks that say the same
share one kind. And a tree over the row, whose nodes hold the most cores, memory and GPUs below them, leads past
machines without room. Which machines could take an ask at all is one pass over plain numbers, and one question for each
kind of machine (`traits`).

The row begins with machines that have few GPUs, so that work without GPUs keeps off those that do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stado_like.job.terms import Ask
from stado_like.planning.board import Running, Spot
from stado_like.planning.fit import Machine, fits, settled, taking
from stado_like.planning.leaving import leaving
from stado_like.planning.traits import Trait, is_answered_by_traits, trait_of

NOWHERE = -1


@dataclass(slots=True)
class Ever:
    """Which machines asks could have if nothing ran anywhere: the same for asks that differ only in whom they avoid."""

    first: int | None = None
    all: tuple[int, ...] | None = None
    unclaimed: int = 0
    """The first that nothing ahead could use, if it is not before this one; `NOWHERE`: there is none any more."""
    by_trait: dict[int, bool] = field(default_factory=dict)
    """What machines of a trait answer."""


@dataclass(slots=True)
class Kind:
    """Asks that say the same. `only`: the machines it names or labels, in the row's order; None: any. `cursors`: by
    which heads it passes, the first machine that was not ruled out yet."""

    ask: Ask
    only: tuple[int, ...] | None = None
    cursors: dict[int, int] = field(default_factory=dict)
    ever: Ever = field(default_factory=Ever)


class Rooms:
    def __init__(self, spots: Iterable[Spot]) -> None:
        self.spots: list[Spot] = sorted(spots, key=_place_in_row)
        self.machines: list[Machine] = [spot.machine for spot in self.spots]
        self.emptied: list[Machine] = [leaving(spot.machine, spot.running) for spot in self.spots]
        self.added: defaultdict[int, list[Running]] = defaultdict(list)
        """What this plan put where."""
        self.index = {spot.machine.worker: i for i, spot in enumerate(self.spots)}
        self._free = Tree(self.machines)
        self._most = Tree(self.emptied)
        self._unclaimed = Tree(self.emptied)
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._by_object: dict[int, Kind] = {}
        self._ever: dict[tuple[object, ...], Ever] = {}
        self._named, self._labelled = self._catalogue()
        self._rows: dict[tuple[object, ...], tuple[int, ...]] = {}
        """By names and labels that are asked for: the machines that have them."""
        numbers: dict[Trait, int] = {}
        self._traits = [numbers.setdefault(trait_of(machine), len(numbers)) for machine in self.emptied]
        """By machine, when nothing runs on it: the number of its trait."""

    def _catalogue(self) -> tuple[Mapping[str, set[int]], Mapping[tuple[str, str], set[int]]]:
        named: defaultdict[str, set[int]] = defaultdict(set)
        labelled: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for i, machine in enumerate(self.machines):
            named[machine.worker].add(i)
            named[machine.host].add(i)
            for pair in machine.labels.items():
                labelled[pair].add(i)
        return named, labelled

    # ---- kinds

    def kind(self, ask: Ask) -> Kind:
        """The asks of one board live as long as its plan, so their identity may stand for what they say."""
        known = self._by_object.get(id(ask))
        if known is not None:
            return known
        said = what_it_says(ask)
        known = self._kinds.get(said)
        if known is None:
            ever = self._ever.setdefault(what_it_says(ask, apart=False), Ever())
            known = self._kinds[said] = Kind(ask, self._only(ask), ever=ever)
        self._by_object[id(ask)] = known
        return known

    def _only(self, ask: Ask) -> tuple[int, ...] | None:
        rows: list[set[int]] = []
        if ask.pinned_host:
            rows.append(self._named.get(ask.pinned_host, set()))
        if ask.names:
            rows.append(set().union(*(self._named.get(name, set()) for name in ask.names)))
        rows += [self._labelled.get(pair, set()) for pair in ask.labels.items()]
        if not rows:
            return None
        asked = (ask.pinned_host, ask.names, frozenset(ask.labels.items()))
        if asked not in self._rows:
            self._rows[asked] = tuple(sorted(set.intersection(*sorted(rows, key=len))))
        return self._rows[asked]

    # ---- finding

    def find(self, kind: Kind, start: int, may: Callable[[int], bool]) -> int:
        """The first machine from `start` on with room in numbers for the kind, of which `may` is true."""
        return self._search(self._free, kind, start, may)

    def free(self, ask: Ask, start: int = 0) -> Iterator[int]:
        """The machines from `start` on with room in numbers for the ask, one by one."""
        i = self._free.first(start, ask)
        while i != NOWHERE:
            yield i
            i = self._free.first(i + 1, ask)

    def all_free(self, ask: Ask, start: int = 0) -> list[int]:
        """All of those."""
        return self._free.all(start, ask)

    def free_among(self, machines: Sequence[int], ask: Ask) -> Iterator[int]:
        """Those of some machines, in the row's order."""
        return self._free.among(machines, 0, ask)

    def _search(self, tree: Tree, kind: Kind, start: int, may: Callable[[int], bool]) -> int:
        ask = kind.ask
        if kind.only is not None:
            return next((i for i in tree.among(kind.only, start, ask) if may(i)), NOWHERE)
        i = tree.first(start, ask)
        while i != NOWHERE and not may(i):
            i = tree.first(i + 1, ask)
        return i

    def _takes_when_empty(self, kind: Kind, i: int) -> bool:
        """Of a machine with its names, its labels and room in numbers."""
        if not is_answered_by_traits(kind.ask):
            return fits(self.emptied[i], kind.ask)
        trait, known = self._traits[i], kind.ever.by_trait
        if trait not in known:
            known[trait] = fits(self.emptied[i], kind.ask)
        return known[trait]

    def first_ever(self, kind: Kind) -> int:
        """The first machine that could take the kind if nothing ran on it."""
        if kind.ever.first is None:
            kind.ever.first = self._search(self._most, kind, 0, lambda i: self._takes_when_empty(kind, i))
        return kind.ever.first

    def unclaimed(self, kind: Kind) -> bool:
        """Whether it could use a machine that nothing ahead of it in the queue could."""
        ever = kind.ever
        if ever.unclaimed != NOWHERE:
            may = lambda i: self._takes_when_empty(kind, i)  # noqa: E731
            ever.unclaimed = self._search(self._unclaimed, kind, ever.unclaimed, may)
        return ever.unclaimed != NOWHERE

    def claim(self, i: int) -> None:
        """Something that waits could use the machine."""
        self._unclaimed.close(i)

    def ever(self, kind: Kind) -> tuple[int, ...]:
        """All machines that could take the kind if nothing ran on them, in the row's order."""
        if kind.ever.all is None:
            tree, ask = self._most, kind.ask
            able = tree.all(0, ask) if kind.only is None else tree.among(kind.only, 0, ask)
            kind.ever.all = tuple(i for i in able if self._takes_when_empty(kind, i))
        return kind.ever.all

    def ever_one_by_one(self, kind: Kind) -> Iterator[int]:
        """The same, for whoever stops early."""
        if kind.ever.all is not None:
            yield from kind.ever.all
            return
        i = self.first_ever(kind)
        while i != NOWHERE:
            yield i
            i = self._search(self._most, kind, i + 1, lambda at: self._takes_when_empty(kind, at))

    # ---- filling

    def take(self, i: int, one: Running) -> Ask:
        """Returns what it takes there."""
        machine = self.machines[i]
        ask = settled(machine, one.ask)
        if ask is not one.ask:
            one = replace(one, ask=ask)
        self.machines[i] = taking(machine, ask)
        self.added[i].append(one)
        self._free.update(i, self.machines[i])
        return ask

    def running(self, i: int) -> Sequence[Running]:
        """With what this plan put there."""
        added = self.added.get(i)
        return (*self.spots[i].running, *added) if added else self.spots[i].running

    def without(self, i: int, goes: Callable[[Running], bool]) -> Machine:
        """Machine `i` when all that `goes` is gone."""
        gone: list[Running] = []
        left: list[Running] = []
        for one in self.running(i):
            (gone if goes(one) else left).append(one)
        return leaving(self.machines[i], gone, left)


def _place_in_row(spot: Spot) -> tuple[int, str]:
    machine = spot.machine
    gpus = len(machine.gpus) or machine.free_gpus + sum(one.ask.gpus for one in spot.running)
    return gpus, machine.worker


def what_it_says(ask: Ask, *, apart: bool = True) -> tuple[object, ...]:
    return (
        ask.cpu_millis,
        ask.memory_bytes,
        ask.gpus,
        ask.exclusive,
        ask.pinned_host,
        ask.names,
        frozenset(ask.labels.items()) if ask.labels else None,
        ask.apart if apart else bool(ask.apart),
        frozenset(ask.needs.items()) if ask.needs else None,
        ask.gpu_kind,
        ask.ports,
        ask.node_share,
    )


class Tree:
    """The most free cores, memory and whole GPUs below each node, over a row of machines."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._count = len(machines)
        self._size = 1 << max(0, (self._count - 1).bit_length())
        self._cpu = [-1] * (2 * self._size)
        self._memory = [-1] * (2 * self._size)
        self._gpus = [-1] * (2 * self._size)
        for i, machine in enumerate(machines):
            if not machine.closed:
                self._leaf(self._size + i, machine)
        for node in range(self._size - 1, 0, -1):
            for most in (self._cpu, self._memory, self._gpus):
                most[node] = max(most[2 * node], most[2 * node + 1])

    def _leaf(self, node: int, machine: Machine) -> None:
        self._cpu[node] = machine.free_cpu_millis
        self._memory[node] = machine.free_memory_bytes
        self._gpus[node] = machine.free_gpus

    def close(self, i: int) -> None:
        """Nothing finds the machine any more."""
        node = self._size + i
        self._cpu[node] = self._memory[node] = self._gpus[node] = -1
        self._above(node)

    def among(self, machines: Sequence[int], start: int, ask: Ask) -> Iterator[int]:
        """Those of some machines, in the row's order, from `start` on with so much free."""
        cpu, memory, gpus = ask.cpu_millis, ask.memory_bytes, 0 if ask.gpu_kind.share_gb else ask.gpus
        most_cpu, most_memory, most_gpus, size = self._cpu, self._memory, self._gpus, self._size
        for at in range(bisect_left(machines, start), len(machines)):
            node = size + machines[at]
            if most_cpu[node] >= cpu and most_memory[node] >= memory and most_gpus[node] >= gpus:
                yield machines[at]

    def all(self, start: int, ask: Ask) -> list[int]:
        """Every machine from `start` on with so much free."""
        cpu, memory, gpus = ask.cpu_millis, ask.memory_bytes, 0 if ask.gpu_kind.share_gb else ask.gpus
        first, after = self._size + start, self._size + self._count
        rows = zip(self._cpu[first:after], self._memory[first:after], self._gpus[first:after], strict=True)
        return [i for i, (c, m, g) in enumerate(rows, start) if c >= cpu and m >= memory and g >= gpus]

    def first(self, start: int, ask: Ask) -> int:
        """The first machine from `start` on with so much free, or `NOWHERE`."""
        if start >= self._count:
            return NOWHERE
        cpu, memory = ask.cpu_millis, ask.memory_bytes
        gpus = 0 if ask.gpu_kind.share_gb else ask.gpus
        most_cpu, most_memory, most_gpus, size = self._cpu, self._memory, self._gpus, self._size
        node = size + start
        while True:
            if most_cpu[node] >= cpu and most_memory[node] >= memory and most_gpus[node] >= gpus:
                if node >= size:
                    return node - size
                node *= 2
                continue
            while node & 1:
                node >>= 1
            if not node:
                return NOWHERE
            node += 1

    def update(self, i: int, machine: Machine) -> None:
        node = self._size + i
        self._leaf(node, machine)
        self._above(node)

    def _above(self, node: int) -> None:
        cpu, memory, gpus = self._cpu, self._memory, self._gpus
        node >>= 1
        while node:
            left, right = 2 * node, 2 * node + 1
            new_cpu = cpu[left] if cpu[left] > cpu[right] else cpu[right]
            new_memory = memory[left] if memory[left] > memory[right] else memory[right]
            new_gpus = gpus[left] if gpus[left] > gpus[right] else gpus[right]
            if new_cpu == cpu[node] and new_memory == memory[node] and new_gpus == gpus[node]:
                return
            cpu[node], memory[node], gpus[node] = new_cpu, new_memory, new_gpus
            node >>= 1
