"""THE predicate: may this task run on this machine, and if not, why?

The worker's admission asks it before a claim, the plan before a placement, and so does whoever explains to a person why
a job waits: one rule, one set of sentences, with the numbers. Integers everywhere (thousandths of a core, bytes,
ten-thousandths of a card or a machine): ten times a tenth of a machine is that machine.

Not obvious: what a task takes may depend on the machine (`takes`: a share of its cores; `settled`: every GPU that is
free), and which GPUs it gets is part of the answer (`devices_for`), so a machine "less a task" is made here too
(`taking`), and by nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.hardware import CARD, Device, Port
from stado_like.job.terms import Ask
from stado_like.planning.cards import choose_cards, free_cards, usable_cards, why_no_cards

ACCEPTS = "accepts"
"""A machine's label with the names of those of its labels (`pool,site`) of which a task must ask for one at least."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a worker has free now: live measurement, less what its tasks reserve."""

    worker: str
    host: str
    free_cpu_millis: int
    free_memory_bytes: int
    free_gpus: int
    """Where `gpus` describes each one, it is those that count."""
    running: int
    taken_whole: bool = False
    closed: str = ""
    """Why it takes no work at all (not ready, cordoned, out of disk); empty when it does."""
    labels: Mapping[str, str] = field(default_factory=dict)
    abilities: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    """The words by which the tasks it holds keep their like away."""
    total_cpu_millis: int = 0
    total_memory_bytes: int = 0
    total_gpus: int = 0
    """Totals: nothing taken off; 0 where they are not known."""
    gpus: tuple[Device, ...] = ()
    ports: tuple[Port, ...] = ()

    @property
    def cards(self) -> tuple[Device, ...]:
        """Its GPUs; where only their number is known, so many of which nothing else is."""
        return self.gpus or tuple(Device(id=str(index), index=index) for index in range(self.free_gpus))


@dataclass(frozen=True, slots=True)
class Kept:
    """Room of a machine that others may not use now. `run`: whom it is held for, as the reader may see it."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    whole: bool = False
    run: str = "another run"


def why_not(machine: Machine, ask: Ask, kept: Kept | None = None) -> tuple[str, ...]:
    """Every reason that keeps the task off this machine; empty: it fits. Sentences of the per-machine table."""
    found = [machine.closed] if machine.closed else []
    found += _not_chosen(machine, ask)
    found += _lacking(machine, ask)
    short = _short(machine, ask)
    if kept is not None and not short and (kept.whole or _short(_beside(machine, kept), _as_taken(machine, ask))):
        short = [says.room_is_held(kept.run)]
    return (*found, *short)


def _as_taken(machine: Machine, ask: Ask) -> Ask:
    """Room that is held does not make a task take less than what is free."""
    return settled(machine, ask) if ask.gpu_kind.every else ask


def fits(machine: Machine, ask: Ask, kept: Kept | None = None) -> bool:
    return not why_not(machine, ask, kept)


def _not_chosen(machine: Machine, ask: Ask) -> list[str]:
    """What the machine wants of a task, and the task of its machine's name, labels and company."""
    found: list[str] = []
    insists = machine.labels.get(ACCEPTS)
    if insists and not any(word.strip() in ask.labels for word in insists.split(",")):
        found.append(says.NO_LABEL_IT_ACCEPTS)
    if ask.pinned_host or ask.names:
        mine = (machine.worker, machine.host)
        if (ask.pinned_host and ask.pinned_host not in mine) or (ask.names and not set(mine) & set(ask.names)):
            found.append(reasons.PINNED_ELSEWHERE)
    if ask.labels:
        found += [reasons.lacks_label(k, v) for k, v in ask.labels.items() if machine.labels.get(k) != v]
    if ask.apart and ask.apart in machine.apart:
        found.append(reasons.ANOTHER_WORKER_HERE)
    return found


def _lacking(machine: Machine, ask: Ask) -> list[str]:
    """Abilities and ports."""
    if not ask.needs and not ask.ports.kind:
        return []
    found = [sentence for ability, sentence in ask.needs.items() if ability not in machine.abilities]
    if ask.ports.kind and not any(ask.ports.is_met_by(port) for port in machine.ports):
        kind = "InfiniBand" if ask.ports.kind == "infiniband" else "RDMA"
        found.append(says.no_active_port(kind, ask.ports.gbps, _ports_instead(machine, ask)))
    return found


def _ports_instead(machine: Machine, ask: Ask) -> str:
    """The best that it has instead: `100 Gb/s`, `400 Gb/s, not active`, `RoCE at 400 Gb/s`."""
    of_kind = [port for port in machine.ports if ask.ports.is_kind(port)]
    active = [port.gbps for port in of_kind if port.active]
    if active:
        return f"{max(active)} Gb/s"
    if of_kind:
        return f"{max(port.gbps for port in of_kind)} Gb/s, not active"
    roce = [port.gbps for port in machine.ports if port.kind == "roce" and port.active]
    return f"RoCE at {max(roce)} Gb/s" if roce else ""


def _short(machine: Machine, ask: Ask) -> list[str]:
    """Room: of the whole machine, its cores, its memory, its GPUs."""
    found = []
    if machine.taken_whole:
        found.append(reasons.TAKEN_WHOLE)
    elif ask.exclusive and machine.running:
        found.append(reasons.NOT_IDLE)
    if ask.node_share and not (machine.total_cpu_millis and machine.total_memory_bytes):
        found.append(says.NO_SHARES)
    cpu, memory = takes(machine, ask)
    if cpu > machine.free_cpu_millis:
        found.append(reasons.insufficient_cpu(cores(cpu), cores(machine.free_cpu_millis)))
    if memory > machine.free_memory_bytes:
        found.append(reasons.insufficient_memory(memory, machine.free_memory_bytes))
    if ask.gpus:
        if not machine.gpus and ask.gpu_kind.is_any:
            if ask.gpus > machine.free_gpus:
                found.append(reasons.insufficient_gpus(ask.gpus, machine.free_gpus))
        else:
            found += why_no_cards(machine.cards, ask.gpus, ask.gpu_kind)
    return found


def takes(machine: Machine, ask: Ask) -> tuple[int, int]:
    """The thousandths of a core and the bytes that the task reserves on this machine. A share is rounded down: ten
    tenths fit, whatever the machine has."""
    return share_of(ask, machine.total_cpu_millis, machine.total_memory_bytes)


def share_of(ask: Ask, total_cpu_millis: int, total_memory_bytes: int) -> tuple[int, int]:
    if not ask.node_share:
        return ask.cpu_millis, ask.memory_bytes
    return total_cpu_millis * ask.node_share // CARD, total_memory_bytes * ask.node_share // CARD


def devices_for(machine: Machine, ask: Ask) -> tuple[str, ...]:
    """The ids of the GPUs that a task which fits gets here; empty where none are described, or it asks for none."""
    if not ask.gpus or not machine.gpus:
        return ()
    return tuple(one.id for one in _cards_for(machine, ask))


def _cards_for(machine: Machine, ask: Ask) -> tuple[Device, ...]:
    """Of what takes every free GPU: as many as the free cores and memory go with that each of them brings along. More
    room is then never worse, which whoever searches for room relies on."""
    kind, need = ask.gpu_kind, ask.gpus
    if kind.every:
        need = len(free_cards(machine.cards, kind))
        if kind.each_cpu_millis:
            need = min(need, machine.free_cpu_millis // kind.each_cpu_millis)
        if kind.each_memory_bytes:
            need = min(need, machine.free_memory_bytes // kind.each_memory_bytes)
        if need < ask.gpus:
            return ()
    return choose_cards(machine.cards, need, kind)


def taking(machine: Machine, ask: Ask) -> Machine:
    """The machine with a task that fits it on it. `ask.devices` says which GPUs, where they were chosen before."""
    if ask.gpu_kind.every:
        ask = settled(machine, ask)
    cpu, memory = takes(machine, ask)
    held = set(ask.devices or devices_for(machine, ask))
    gpus = tuple(_less(one, ask) if one.id in held else one for one in machine.gpus) if held else machine.gpus
    return replace(
        machine,
        free_cpu_millis=max(0, machine.free_cpu_millis - cpu),
        free_memory_bytes=max(0, machine.free_memory_bytes - memory),
        free_gpus=whole_cards(gpus) if gpus else max(0, machine.free_gpus - ask.gpus),
        running=machine.running + 1,
        taken_whole=machine.taken_whole or ask.exclusive,
        apart=machine.apart | {ask.apart} if ask.apart else machine.apart,
        gpus=gpus,
    )


def settled(machine: Machine, ask: Ask) -> Ask:
    """The ask of a task that fits, with the GPUs that it gets: whoever claims it keeps this one."""
    if not ask.gpus or not (machine.gpus or ask.gpu_kind.every):
        return ask
    cards = _cards_for(machine, ask)
    return ask.taking(len(cards), tuple(one.id for one in cards) if machine.gpus else ()) if cards else ask


def held_by(gpus: tuple[Device, ...], asks: Iterable[Ask]) -> tuple[Device, ...]:
    """The GPUs, less what these tasks hold of them. Of a task that does not say which it got, as many are counted as
    held as it asked for."""
    if not gpus:
        return gpus
    for ask in sorted((one for one in asks if one.gpus), key=lambda one: not one.devices):
        held = set(ask.devices) or {one.id for one in choose_cards(gpus, ask.gpus, ask.gpu_kind)}
        if not held:
            held = {one.id for one in sorted(gpus, key=lambda one: -one.free_share)[: ask.gpus]}
        gpus = tuple(_less(one, ask) if one.id in held else one for one in gpus)
    return gpus


def whole_cards(gpus: tuple[Device, ...]) -> int:
    """How many can be had whole."""
    return sum(one.usable and one.free_share == CARD for one in gpus)


def _less(device: Device, ask: Ask) -> Device:
    return replace(device, free_share=max(0, device.free_share - ask.gpu_kind.share_of(device)))


def _beside(machine: Machine, kept: Kept) -> Machine:
    """What is left beside room that is held: of the GPUs the first that can be had whole are counted away."""
    left, gpus = kept.gpus, []
    for one in machine.gpus:
        if left and one.usable and one.free_share == CARD:
            left, one = left - 1, replace(one, free_share=0)
        gpus.append(one)
    return replace(
        machine,
        free_cpu_millis=max(0, machine.free_cpu_millis - kept.cpu_millis),
        free_memory_bytes=max(0, machine.free_memory_bytes - kept.memory_bytes),
        free_gpus=max(0, machine.free_gpus - kept.gpus),
        gpus=tuple(gpus),
    )


def copies(machine: Machine, ask: Ask, most: int, kept: Kept | None = None) -> int:
    """How many tasks of this ask fit at once, `most` at the most."""
    if most <= 0 or why_not(machine, ask, kept):
        return 0
    if kept is not None:
        machine = _beside(machine, kept)
    if ask.apart or ask.exclusive or ask.gpu_kind.every:
        return 1
    cpu, memory = takes(machine, ask)
    room = most
    if cpu:
        room = min(room, machine.free_cpu_millis // cpu)
    if memory:
        room = min(room, machine.free_memory_bytes // memory)
    if not ask.gpus:
        return room
    if not machine.gpus:
        return min(room, machine.free_gpus // ask.gpus)
    kind = ask.gpu_kind
    fit = usable_cards(machine.gpus, kind)
    if not kind.share_gb:
        return min(room, sum(one.free_share == CARD for one in fit) // ask.gpus)
    if ask.gpus == 1:
        return min(room, sum(one.free_share // kind.share_of(one) for one in fit))
    count, left = 0, machine
    while count < room and not why_not(left, ask):
        count, left = count + 1, taking(left, ask)
    return count


def cores(millis: int) -> str:
    """`1500` -> `1.5`"""
    return f"{millis / 1000:.3f}".rstrip("0").rstrip(".")
