"""Which GPUs a task gets, and the arithmetic of shares: whole numbers, so that ten tenths are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.job.hardware import AT_RISK, CARD, FAULTED, INFINIBAND, Device, GpuKind, Port, PortAsk
from stado_like.job.terms import Ask
from stado_like.planning.fit import (
    Kept,
    Machine,
    copies,
    devices_for,
    fits,
    held_by,
    settled,
    takes,
    taking,
    whole_cards,
    why_not,
)
from tests.pure.spots import GIB, SMALL, cards, machine

NOTHING = Ask(0, 0, 0)


def gpus(count: int, **kind: Any) -> Ask:
    return replace(NOTHING, gpus=count, gpu_kind=GpuKind(**kind))


def has(*each: dict[str, Any]) -> Machine:
    return machine(devices=tuple(Device(**{"id": str(i), "index": i, **one}) for i, one in enumerate(each)))


def got(found: Machine, ask: Ask) -> str:
    assert fits(found, ask), why_not(found, ask)
    return " ".join(devices_for(found, ask))


# ---- which


def test_healthy_ones_first_and_one_at_risk_when_no_healthy_one_is_free() -> None:
    found = has({"health": AT_RISK}, {}, {"health": FAULTED}, {})
    assert got(found, gpus(1)) == "1"
    assert got(found, gpus(2)) == "1 3"
    assert got(found, gpus(3)) == "0 1 3"
    assert why_not(found, gpus(4)) == (
        "insufficient gpus: need 4, 3 free and usable",
        "gpu fault on the machine: GPU 2: faulted",
    )
    assert why_not(found, gpus(3, healthy_only=True)) == (
        "needs 3 healthy GPUs, 2 free (1 more free but at risk)",
        "gpu fault on the machine: GPU 2: faulted",
    )
    assert why_not(has({}), gpus(2, healthy_only=True)) == ("insufficient gpus: need 2, 1 free and usable",)


def test_one_nvlink_domain_when_possible_and_of_those_the_one_left_with_the_fewest() -> None:
    pairs = has(*[{"nvlink_domain": domain} for domain in ("a", "b", "b", "b", "c", "c")])
    assert got(pairs, gpus(2)) == "4 5"
    assert got(pairs, gpus(3)) == "1 2 3"
    assert got(pairs, gpus(1)) == "0"
    assert got(pairs, gpus(4)) == "1 2 3 4"
    assert got(taking(pairs, gpus(2)), gpus(2)) == "1 2"


def test_shares_go_where_the_least_is_left_so_that_whole_cards_stay_whole() -> None:
    found = has(*[{"memory_bytes": 80 * GIB}] * 3)
    quarter = gpus(1, share_gb=20)
    for _ in range(4):
        assert devices_for(found, quarter) == ("0",)
        found = taking(found, quarter)
    assert [one.free_share for one in found.gpus] == [0, CARD, CARD]
    assert got(found, gpus(2)) == "1 2" and found.free_gpus == 2
    assert copies(found, quarter, 100) == 8
    assert copies(found, gpus(2, share_gb=40), 100) == 2
    assert why_not(taking(found, gpus(2)), quarter) == ("insufficient gpus: need 1, 0 free and usable",)


def test_share_of_a_card_needs_a_card_whose_memory_is_known() -> None:
    assert why_not(machine(gpus=4), gpus(1, share_gb=10)) == ("no GPU that is shared (10 GB asked)",)
    small = has({"memory_bytes": 16 * GIB})
    assert why_not(small, gpus(1, share_gb=24)) == ("no GPU with at least 24 GB",)


def test_exact_ids() -> None:
    found = has({"id": "a"}, {"id": "b"}, {"id": "c"})
    assert got(found, gpus(2, ids=("c", "a"))) == "a c"
    busy = taking(found, gpus(1, ids=("a",)))
    assert why_not(busy, gpus(2, ids=("c", "a"))) == ("insufficient gpus: need 2, 1 free and usable",)
    assert why_not(found, gpus(2, ids=("x", "y"))) == ("no GPU with id x or y",)


@pytest.mark.parametrize(
    ("memory_bytes", "model", "vendor", "kind", "ok"),
    [
        (79.6, "NVIDIA H100 80GB HBM3", "NVIDIA", {"models": ("h100",)}, True),
        (79.6, "NVIDIA H100 80GB HBM3", "", {"vendor": "nvidia", "min_memory_gb": 80}, True),
        (79.4, "H100", "", {"min_memory_gb": 80}, False),
        (192, "MI300X", "amd", {"vendor": "nvidia"}, False),
        (192, "AMD Instinct MI300X", "amd", {"models": ("H100", "MI300X"), "vendor": "amd"}, True),
        (40, "A100", "", {"models": ("H100",)}, False),
        (0, "", "", {"min_memory_gb": 8}, False),
    ],
)
def test_kind_of_a_gpu(memory_bytes: float, model: str, vendor: str, kind: dict[str, Any], ok: bool) -> None:
    """Half a GB of slack; a GPU that reports no maker counts as NVIDIA; names whatever the case."""
    found = has({"memory_bytes": int(memory_bytes * GIB), "model": model, "vendor": vendor})
    assert fits(found, gpus(1, **kind)) is ok


def test_kinds_in_the_words_of_the_table() -> None:
    assert str(GpuKind(("H100", "H200"), "nvidia", 80)) == "nvidia H100 or H200 with at least 80 GB"


# ---- every free one


def test_every_free_gpu_of_a_machine_and_at_least_so_many() -> None:
    every = gpus(4, every=True)
    assert copies(machine(gpus=8), every, 9) == 1
    assert taking(machine(gpus=8), every).free_gpus == 0
    assert settled(machine(gpus=8), every).gpus == 8
    assert why_not(machine(gpus=2), every) == ("insufficient gpus: need 4, 2 free and usable",)
    described = machine(devices=cards(8))
    assert got(described, every) == "g0 g1 g2 g3 g4 g5 g6 g7" and copies(described, every, 9) == 1
    busy = taking(described, gpus(3))
    assert got(busy, every) == "g3 g4 g5 g6 g7", "what others hold is not free, and does not keep it off the machine"
    taken = taking(busy, every)
    assert taken.free_gpus == 0 and why_not(taken, every) == ("insufficient gpus: need 4, 0 free and usable",)


def test_what_it_took_is_what_it_asks_for_from_then_on() -> None:
    every = replace(NOTHING, gpus=1, gpu_kind=GpuKind(every=True))
    ask = settled(machine(devices=cards(3)), every)
    assert (ask.gpus, ask.devices, ask.gpu_kind) == (3, ("g0", "g1", "g2"), GpuKind())
    assert settled(machine(devices=cards(5)), ask).gpus == 3
    assert every.on(("a", "b")).gpus == 2 and every.on(()) == every


def test_every_free_one_is_of_the_kind_and_not_faulted_nor_shared_by_others() -> None:
    found = has(
        {"model": "H100"}, {"model": "T4"}, {"model": "H100", "health": FAULTED}, {"model": "H100", "health": AT_RISK}
    )
    assert got(found, gpus(1, every=True, models=("H100",))) == "0 3"
    assert got(found, gpus(1, every=True, models=("H100",), healthy_only=True)) == "0"
    shared = taking(has({"memory_bytes": 80 * GIB}, {"memory_bytes": 80 * GIB}), gpus(1, share_gb=20))
    assert got(shared, gpus(1, every=True)) == "1"


def test_each_gpu_brings_its_cores_and_memory_and_as_many_are_taken_as_there_is_room_for() -> None:
    each = GpuKind(every=True, each_cpu_millis=10_000, each_memory_bytes=GIB)
    ask = Ask(10_000, GIB, 1, gpu_kind=each)
    found = machine(devices=cards(8))  # of 64 cores
    assert takes(found, settled(found, ask)) == (60_000, 6 * GIB)
    assert len(devices_for(found, ask)) == 6
    left = taking(found, ask)
    assert (left.free_cpu_millis, left.free_gpus) == (4_000, 2)
    assert why_not(left, ask) == ("insufficient cpu: need 10 cores, 4 free",)
    assert len(devices_for(replace(found, free_memory_bytes=2 * GIB), ask)) == 2
    assert why_not(found, replace(ask, gpus=7, cpu_millis=70_000)) == ("insufficient cpu: need 70 cores, 64 free",)


def test_what_takes_every_free_gpu_leaves_none_of_those_that_are_held() -> None:
    """A hold of other work: it would be taken with the rest, so the machine is not for it."""
    every, found = gpus(1, every=True), machine(devices=cards(8))
    assert why_not(found, every, Kept(gpus=1, run="urgent")) == ("room on this machine is held for urgent",)
    assert fits(found, every, Kept(cpu_millis=1000))
    each = replace(every, cpu_millis=8_000, gpu_kind=GpuKind(every=True, each_cpu_millis=8_000))
    assert why_not(found, each, Kept(cpu_millis=1000)) == ("room on this machine is held for another run",)


def test_only_those_that_a_tick_chose_for_it() -> None:
    every, found = gpus(2, every=True), machine(devices=cards(8))
    chosen = every.among(("g1", "g2", "g3"))
    assert got(found, chosen) == "g1 g2 g3"
    assert got(taking(found, gpus(1, ids=("g2",))), chosen) == "g1 g3", "fewer than that where one is gone"
    assert why_not(taking(found, gpus(2, ids=("g2", "g1"))), chosen) == (
        "insufficient gpus: need 2, 1 free and usable",
    )
    assert gpus(2).among(("g1",)) == gpus(2)


@given(st.integers(0, 8), st.integers(0, 64_000), st.integers(0, 64), st.integers(1, 3), st.booleans())
@settings(max_examples=200, deadline=None)
def test_more_room_is_never_worse_for_what_takes_every_gpu(
    free: int, cpu: int, memory: int, need: int, each: bool
) -> None:
    kind = GpuKind(every=True, each_cpu_millis=9_000 * each, each_memory_bytes=7 * GIB * each)
    ask = Ask(9_000 * need, 7 * GIB * need, need, gpu_kind=kind)
    devices = tuple(replace(one, free_share=CARD * (n < free)) for n, one in enumerate(cards(8)))
    tight = machine(devices=devices, free_cpu_millis=cpu, free_memory_bytes=memory * GIB)
    if fits(tight, ask):
        assert fits(machine(devices=cards(8)), ask)
        taken = settled(tight, ask)
        assert need <= taken.gpus == len(taken.devices) <= free
        assert fits(tight, taken) and taking(tight, ask) == taking(tight, taken)


# ---- ports, labels, shares of a machine, room that is held


@pytest.mark.parametrize(
    ("ports", "ask", "says"),
    [
        ([], PortAsk("rdma"), "no active RDMA port"),
        ([("infiniband", 400, False)], PortAsk("rdma"), "no active RDMA port (400 Gb/s, not active)"),
        ([("roce", 100, True)], PortAsk("rdma", 200), "no active RDMA port at 200 Gb/s or faster (100 Gb/s)"),
        ([("roce", 400, True)], PortAsk("infiniband"), "no active InfiniBand port (RoCE at 400 Gb/s)"),
        ([("infiniband", 100, True), (INFINIBAND, 200, True)], PortAsk("infiniband", 200), ""),
        ([("roce", 200, True)], PortAsk("rdma", 200), ""),
    ],
)
def test_ports(ports: list[tuple[str, int, bool]], ask: PortAsk, says: str) -> None:
    found = machine(ports=tuple(Port(kind=kind, gbps=gbps, active=active) for kind, gbps, active in ports))
    assert why_not(found, replace(NOTHING, ports=ask)) == ((says,) if says else ())


def test_machine_takes_only_work_that_asks_for_one_of_its_labels() -> None:
    found = machine(labels={"pool": "a", "tier": "1", "site": "s", "accepts": "pool, tier"})
    for labels in ({"pool": "a"}, {"tier": "1", "site": "s"}):
        assert fits(found, replace(NOTHING, labels=labels))
    for labels in ({}, {"site": "s"}):
        assert why_not(found, replace(NOTHING, labels=labels)) == (
            "worker carries none of the labels this machine accepts",
        )


def test_share_of_a_machine_whose_totals_nobody_knows_is_not_given() -> None:
    found = machine(total_cpu_millis=0)
    assert why_not(found, replace(NOTHING, node_share=1)) == ("machine gives no shares of itself (node_fraction)",)


def test_half_a_machine_says_what_it_needs() -> None:
    half = replace(NOTHING, node_share=5000)
    assert why_not(machine(free_cpu_millis=16_000), half) == ("insufficient cpu: need 32 cores, 16 free",)


def test_room_that_is_held_is_said_only_where_it_would_fit_without() -> None:
    ask = replace(SMALL, gpus=8)
    assert why_not(machine(), ask, Kept(gpus=1, run="urgent")) == ("room on this machine is held for urgent",)
    assert why_not(machine(), SMALL, Kept(whole=True)) == ("room on this machine is held for another run",)
    assert why_not(machine(), SMALL, Kept(cpu_millis=63_000, memory_bytes=511 * GIB, gpus=8)) == ()
    assert why_not(machine(), SMALL, Kept(cpu_millis=63_001))
    assert why_not(machine(gpus=4), ask, Kept(gpus=1)) == ("insufficient gpus: need 8, 4 free and usable",)
    described = machine(devices=cards(8))
    assert copies(described, replace(SMALL, gpus=2), 9, Kept(gpus=3)) == 2


# ---- for all numbers


@given(st.integers(1, 10_000_000), st.integers(1, 1 << 50), st.integers(1, CARD))
@settings(max_examples=200, deadline=None)
def test_as_many_shares_as_there_are_always_fit(cpu: int, memory: int, share: int) -> None:
    """Ten tenths of a machine are that machine, whatever it has."""
    found = Machine("w", "w", cpu, memory, 0, 0, total_cpu_millis=cpu, total_memory_bytes=memory)
    ask = replace(NOTHING, node_share=share)
    number = min(CARD // share, 50)
    for _ in range(number):
        assert fits(found, ask)
        found = taking(found, ask)
    used = takes(found, ask)
    assert found.free_cpu_millis == cpu - number * used[0] >= 0
    assert found.free_memory_bytes == memory - number * used[1] >= 0


def test_ten_tenths_are_one() -> None:
    found, ask = machine(devices=cards(1, memory_bytes=80 * GIB)), gpus(1, share_gb=8)
    assert copies(found, ask, 100) == 10
    for _ in range(10):
        found = taking(found, ask)
    assert found.gpus[0].free_share == 0 and not fits(found, ask)


KINDS = st.builds(
    GpuKind,
    models=st.sampled_from([(), ("H100",)]),
    healthy_only=st.booleans(),
    share_gb=st.sampled_from([0, 0, 10, 40]),
)
CARDS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        model=st.sampled_from(["H100", "T4", ""]),
        health=st.sampled_from(["healthy", "healthy", AT_RISK, FAULTED]),
        memory_bytes=st.sampled_from([0, 16 * GIB, 80 * GIB]),
        nvlink_domain=st.sampled_from(["", "a", "b"]),
    ),
    max_size=8,
)


@given(CARDS, st.lists(st.tuples(st.integers(1, 4), KINDS), max_size=8))
@settings(max_examples=200, deadline=None)
def test_no_gpu_is_given_twice_and_what_fits_gets_its_own(
    described: list[dict[str, Any]], asks: list[tuple[int, GpuKind]]
) -> None:
    found, taken = has(*described), list[Ask]()
    start = found.gpus
    for need, kind in asks:
        ask = replace(NOTHING, gpus=need, gpu_kind=kind)
        if not fits(found, ask):
            assert copies(found, ask, 5) == 0
            continue
        assert copies(found, ask, 5) >= 1
        ask = settled(found, ask)
        by_id = {one.id: one for one in found.gpus}
        assert len(set(ask.devices)) == need
        for one in (by_id[id] for id in ask.devices):
            assert kind.is_met_by(one) and one.usable and one.free_share >= kind.share_of(one)
            assert not kind.healthy_only or one.health == "healthy"
        taken.append(ask)
        found = taking(found, ask)
        assert all(0 <= one.free_share <= CARD for one in found.gpus)
    assert held_by(start, taken) == found.gpus, "whoever adds up what is held finds the same"
    assert found.free_gpus == whole_cards(found.gpus)


@given(CARDS, KINDS, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_copies_are_as_many_as_fit_one_after_another(described: list[dict[str, Any]], kind: GpuKind, need: int) -> None:
    found, count = has(*described), 0
    ask = replace(NOTHING, gpus=need, gpu_kind=kind)
    expected = copies(found, ask, 30)
    while count < 30 and fits(found, ask):
        found, count = taking(found, ask), count + 1
    assert count == expected
