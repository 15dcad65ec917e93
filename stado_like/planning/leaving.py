"""A machine as it will be when some of its tasks are gone: the other direction of `fit.taking`.

What comes back is what the tasks hold, not what they ask of the world: a machine that is cordoned stays so, a GPU that
failed under a task does not come back with it. Where nobody said which GPUs a task has, some that are in use and that
no other task is known to have are taken for its own: how many there are is right then, and which is a guess.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from stado_like.job.hardware import CARD, Device
from stado_like.planning.board import Running
from stado_like.planning.fit import Machine, takes, whole_cards


def leaving(machine: Machine, gone: Collection[Running], left: Iterable[Running] = ()) -> Machine:
    """`machine` without the tasks in `gone`; `left` are the others on it."""
    if not gone:
        return machine
    left = tuple(left)
    cpu_millis, memory_bytes = machine.free_cpu_millis, machine.free_memory_bytes
    for one in gone:
        cpu, memory = takes(machine, one.ask)
        cpu_millis, memory_bytes = cpu_millis + cpu, memory_bytes + memory
    gpus = _given_back(machine.gpus, gone, left)
    words = {one.ask.apart for one in gone} - {one.ask.apart for one in left}
    whole = machine.taken_whole and not any(one.ask.exclusive for one in gone)
    return replace(
        machine,
        free_cpu_millis=min(cpu_millis, machine.total_cpu_millis or cpu_millis),
        free_memory_bytes=min(memory_bytes, machine.total_memory_bytes or memory_bytes),
        free_gpus=whole_cards(gpus) if gpus else machine.free_gpus + sum(one.ask.gpus for one in gone),
        running=max(0, machine.running - len(gone)),
        taken_whole=whole or any(one.ask.exclusive for one in left),
        apart=machine.apart - words,
        gpus=gpus,
    )


def _given_back(gpus: tuple[Device, ...], gone: Collection[Running], left: Iterable[Running]) -> tuple[Device, ...]:
    if not gpus or not any(one.ask.gpus for one in gone):
        return gpus
    free = {one.id: one.free_share for one in gpus}
    of_others = {id for one in left for id in one.ask.devices}
    for one in gone:
        ids = (
            one.ask.devices
            or tuple(device.id for device in gpus if free[device.id] < CARD and device.id not in of_others)[
                : one.ask.gpus
            ]
        )
        for device in gpus:
            if device.id in ids:
                free[device.id] = min(CARD, free[device.id] + one.ask.gpu_kind.share_of(device))
    return tuple(one if free[one.id] == one.free_share else replace(one, free_share=free[one.id]) for one in gpus)
