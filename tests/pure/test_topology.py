"""Where the members of a unit go: the tightest network, the fewest machines, the rules, patience, and who waits why."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.job.ids import JobId
from stado_like.planning.board import Near, Spot, Unit
from stado_like.planning.fit import Kept, fits, taking
from stado_like.planning.networks import name_at, near_of
from stado_like.planning.topology import Assigned, Unassigned, assign
from tests.pure.spots import EIGHT, IB, ROCE, SMALL, attempt, cards, here, machine, spot, unit

TOGETHER = replace(EIGHT, apart="")


def placed(asked: Unit, spots: list[Spot], now: float = 0.0, **more: Any) -> Assigned:
    found = assign(asked, spots, now, **more)
    assert isinstance(found, Assigned), found
    return found


def waits(asked: Unit, spots: list[Spot], now: float = 0.0) -> Unassigned:
    found = assign(asked, spots, now)
    assert isinstance(found, Unassigned), found
    return found


def where(asked: Unit, spots: list[Spot], now: float = 0.0) -> str:
    """`w1 w1 w2`: the worker of each rank."""
    found = placed(asked, spots, now).where
    return " ".join(found[member.attempt] for member in asked.members if member.attempt in found)


# ---- which machines


def test_one_task_goes_where_it_leaves_the_least() -> None:
    assert where(unit(1, TOGETHER), [spot("w1", 16), spot("w2", 8), spot("w3", 12)]) == "w2"


def test_members_that_may_share_a_machine_do() -> None:
    spots = [spot("w1", 8), spot("w2", 32), spot("w3", 16)]
    assert where(unit(2, TOGETHER), spots) == "w3 w3"
    assert where(unit(5, TOGETHER), spots) == "w1 w2 w2 w2 w2"


def test_last_members_go_where_the_least_is_left() -> None:
    spots = [spot("w1", 32), spot("w2", 16), spot("w3", 8)]
    assert Counter(placed(unit(5, TOGETHER), spots).where.values()) == {"w1": 4, "w3": 1}


def test_neighbouring_ranks_are_neighbours() -> None:
    spots = [spot("w1", 16, rack="b"), spot("w2", 16, rack="a"), spot("w3", 16, rack="b"), spot("w4", 16, rack="a")]
    assert where(unit(8, TOGETHER), spots) == "w2 w2 w4 w4 w1 w1 w3 w3"


def test_members_of_several_kinds_are_placed_together() -> None:
    asks = [SMALL, TOGETHER, TOGETHER, SMALL]
    spots = [spot("w1", 16), spot("w2", 0), spot("w3", 8)]
    assert where(unit(asks=asks), spots) == "w1 w1 w1 w1"
    full = [spot("w1", 8, free_cpu_millis=8000), spot("w2", 0), spot("w3", 8, free_cpu_millis=9000)]
    assert where(unit(asks=asks), full) == "w3 w1 w3 w2"


def test_all_or_none() -> None:
    asked = unit(3, EIGHT)
    found = waits(asked, [spot("w1"), spot("w2"), spot("w3", 4)])
    assert found.reason == "Gang cannot be placed whole: 3 of 3 machines ready"
    assert found.nodes["w3"] == ("insufficient gpus: need 8, 4 free and usable",)
    assert waits(unit(1, EIGHT), [spot("w1", 4, closed="x")]).reason == "No machine fits: 0 of 1 machines ready"
    assert waits(asked, []).reason == "Gang cannot be placed whole: no machines are registered"


def test_least_that_may_start_together_starts_with_as_many_as_go() -> None:
    spots = [spot("w1"), spot("w2"), spot("w3", 4)]
    assert where(unit(4, EIGHT, least=2), spots) == "w1 w2"
    found = waits(unit(4, EIGHT, least=3), spots)
    assert found.reason == "Cannot place the minimum to start together: 3 of 3 machines ready"
    asks = [replace(EIGHT, cpu_millis=1000), EIGHT, EIGHT]
    assert where(unit(asks=asks, least=2), spots) == "w2 w1"


def test_workers_that_refused_it_lately_are_left_out_and_say_so() -> None:
    assert where(unit(1, EIGHT, avoid=frozenset({"w1"})), [spot("w1"), spot("w2")]) == "w2"
    found = waits(unit(1, EIGHT, avoid=frozenset({"w1"})), [spot("w1")])
    assert found.nodes["w1"] == ("machine did not take train when it was last placed here",)


def test_room_that_is_held_for_others_is_not_used() -> None:
    kept = {"w1": Kept(gpus=8, run="urgent")}
    assert placed(unit(1, EIGHT), [spot("w1"), spot("w2")], kept=kept).where == {attempt(0): "w2"}
    found = assign(unit(1, EIGHT), [spot("w1")], 0.0, kept=kept)
    assert isinstance(found, Unassigned) and found.nodes["w1"] == ("room on this machine is held for urgent",)
    assert placed(unit(1, EIGHT), [spot("w1", 16)], kept=kept).where == {attempt(0): "w1"}


# ---- networks


@pytest.mark.parametrize(
    ("spots", "network", "chosen"),
    [
        ([spot("w1", 16), spot("w2"), spot("w3")], "one machine, w1", "w1 w1"),
        (
            [*[spot(n, devices=cards(8, nvlink_domain="nv")) for n in ("w3", "w4")], spot("w1"), spot("w2")],
            "NVLink domain nv",
            "w3 w4",
        ),
        (
            [
                spot("w1"),
                spot("w2", fabric="ib-1", ports=IB),
                *[spot(n, fabric="ib-0", ports=IB) for n in ("w3", "w4")],
            ],
            "InfiniBand fabric ib-0",
            "w3 w4",
        ),
        ([spot("w1"), spot("w2", ports=ROCE), spot("w3", ports=ROCE)], "RoCE", "w2 w3"),
        ([spot("w1"), spot("w2", ports=IB), spot("w3", ports=IB)], "InfiniBand", "w2 w3"),
        ([spot("w1", rack="a"), spot("w2", rack="b"), spot("w3", rack="b")], "Ethernet", "w2 w3"),
        ([spot("w1", site="a"), spot("w2", site="b"), spot("w3", site="b")], "Ethernet", "w2 w3"),
        ([spot("w1", rack="a"), spot("w2", rack="b")], "Ethernet", "w1 w2"),
    ],
)
def test_tightest_network_with_room(spots: list[Spot], network: str, chosen: str) -> None:
    asked = unit(2, TOGETHER)
    assert str(placed(asked, spots).network) == network
    assert where(asked, spots) == chosen


def test_seeds_names_of_the_labels_count_as_ours() -> None:
    brought = machine(labels={"topology.astraeus.io/rack": "r1", "topology.astraeus.io/fabric": "ib-0"})
    assert (name_at(brought, "rack"), name_at(brought, "fabric"), name_at(brought, "site")) == ("r1", "ib-0", "")
    assert name_at(machine(rack="ours", labels={"topology.astraeus.io/rack": "theirs"}), "rack") == "ours"


@pytest.mark.parametrize(
    ("interconnect", "ok"),
    [
        ("auto", {"nv", "ib", "roce", "plain"}),
        ("rdma", {"nv", "ib", "roce"}),
        ("infiniband", {"nv", "ib"}),
        ("nvlink", {"nv"}),
    ],
)
def test_slowest_link_that_is_allowed(interconnect: str, ok: set[str]) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "nv": {"devices": cards(8, nvlink_domain="nv")},
        "ib": {"ports": IB},
        "roce": {"ports": ROCE},
        "plain": {},
    }
    found = {
        kind
        for kind, has in kinds.items()
        if isinstance(
            assign(unit(2, EIGHT, interconnect=interconnect), [spot("a", **has), spot("b", **has)], 0.0), Assigned
        )
    }
    assert found == ok
    assert where(unit(1, EIGHT, interconnect=interconnect), [spot("a")]) == "a"


def test_ports_must_be_fast_enough_for_the_network_to_count() -> None:
    spots = [spot("a", ports=ROCE), spot("b", ports=ROCE)]
    assert isinstance(assign(unit(2, EIGHT, min_gbps=200), spots, 0.0), Assigned)
    assert isinstance(assign(unit(2, EIGHT, min_gbps=400), spots, 0.0), Unassigned)


def test_gang_is_not_split_over_two_fabrics_that_it_must_share() -> None:
    """A gang that is split over two fabrics hangs."""
    spots = [spot("w1", fabric="a", ports=IB), spot("w2", fabric="b", ports=IB), spot("w3", fabric="b", ports=IB)]
    found = waits(unit(3, EIGHT, interconnect="infiniband"), spots)
    assert found.nodes["w1"] == ("the run is kept within fabric b",)
    assert where(unit(2, EIGHT, interconnect="infiniband"), spots) == "w2 w3"


# ---- rules


def test_kept_within_a_level() -> None:
    spots = [spot("w1", rack="a"), spot("w2", rack="b"), spot("w3", rack="b"), spot("w4")]
    assert where(unit(2, EIGHT, keep_within="rack"), spots) == "w2 w3"
    found = waits(unit(3, EIGHT, keep_within="rack"), spots)
    assert found.nodes == {
        "w1": ("the run is kept within rack b",),
        "w2": ("another worker of this run is already on the machine", "insufficient gpus: need 8, 0 free and usable"),
        "w3": ("another worker of this run is already on the machine", "insufficient gpus: need 8, 0 free and usable"),
        "w4": ("no rack set on this machine (topology.astraeus.io/rack)",),
    }


def test_kept_on_one_machine() -> None:
    spots = [spot("w1", 8), spot("w2", 16)]
    assert where(unit(2, TOGETHER, keep_within="node"), spots) == "w2 w2"
    found = waits(unit(3, TOGETHER, keep_within="node"), spots)
    assert found.nodes["w1"] == ("the run is kept on one machine, w2",)
    assert found.nodes["w2"] == ("insufficient gpus: need 8, 0 free and usable",)


def test_kept_in_an_nvlink_domain() -> None:
    spots = [spot(f"w{n}", devices=cards(8, nvlink_domain=f"nv{n // 2}")) for n in range(4)]
    assert where(unit(2, EIGHT, keep_within="nvlink_domain"), spots) == "w0 w1"
    found = waits(unit(3, EIGHT, keep_within="nvlink_domain"), [*spots, spot("w9")])
    assert found.nodes["w2"] == ("the run is kept within NVLink domain nv0",)
    assert found.nodes["w9"] == ("no NVLink domain set on this machine (its GPUs report none, or several)",)


def test_spread_over_racks_and_machines() -> None:
    spots = [spot("w1", rack="a"), spot("w2", rack="a"), spot("w3", rack="b"), spot("w4")]
    assert where(unit(2, SMALL, spread="rack"), spots) == "w1 w3"
    found = waits(unit(3, SMALL, spread="rack"), spots)
    assert found.nodes["w2"] == ("rack a already has a worker of this run",)
    assert found.nodes["w4"] == ("no rack set on this machine (topology.astraeus.io/rack)",)
    assert sorted(placed(unit(4, SMALL, spread="node"), spots).where.values()) == ["w1", "w2", "w3", "w4"]
    crowded = waits(unit(5, SMALL, spread="node"), spots)
    assert crowded.nodes["w1"] == ("another worker of this run is already on the machine",)
    assert where(unit(2, SMALL, spread="node", keep_within="rack"), spots) == "w1 w2"


def test_number_of_machines() -> None:
    spots = [spot(f"w{n}", 16) for n in range(4)]
    assert len(set(placed(unit(4, TOGETHER, max_nodes=2), spots).where.values())) == 2
    assert len(set(placed(unit(4, TOGETHER, min_nodes=3), spots).where.values())) == 3
    assert len(set(placed(unit(asks=[TOGETHER, TOGETHER, SMALL, SMALL], min_nodes=3), spots).where.values())) == 3
    assert isinstance(assign(unit(4, TOGETHER, min_nodes=5), spots, 0.0), Unassigned)
    found = waits(unit(5, TOGETHER, max_nodes=2), spots)
    assert Counter(found.nodes.values())[("the run may use at most 2 machines",)] == 2
    mixed = waits(unit(asks=[TOGETHER] * 4 + [SMALL] * 200, max_nodes=2), spots)
    assert Counter(mixed.nodes.values())[("the run may use at most 2 machines",)] == 2


def test_task_that_joins_its_run_is_bound_by_where_the_others_are() -> None:
    def beside(near: Near, *spots: Spot) -> str:
        asked = unit(1, EIGHT, near=near)
        asked = replace(asked, members=(replace(asked.members[0], attempt=attempt(1)),))
        return where(asked, list(spots))

    first = spot("w1", 0, rack="b", fabric="b", ports=IB, running=[here(0)])
    others = [spot("w2", rack="a", fabric="a", ports=IB), spot("w3", rack="b", fabric="b", ports=IB)]
    assert beside(Near(), first, *others) == "w3"
    assert beside(Near(keep_within="rack"), first, *others) == "w3"
    assert beside(Near(interconnect="infiniband"), first, *others) == "w3"
    assert beside(Near(spread="rack"), first, *others) == "w2"
    roomy = spot("w1", 8, running=[here(0)])
    assert beside(Near(max_nodes=1), roomy, *others) == "w1"
    assert beside(Near(), roomy, spot("w0")) == "w1"


# ---- patience


def fabrics(now_free: int) -> list[Spot]:
    """Two machines on InfiniBand, of which so many are free, and two on Ethernet."""
    spots = [spot(f"ib{n}", fabric="ib-0", ports=IB) for n in range(2)]
    other = JobId("default", "other", 1)
    busy = [Spot(taking(one.machine, EIGHT), (here(0, EIGHT, other),)) for one in spots[now_free:]]
    return [*spots[:now_free], *busy, spot("e1"), spot("e2")]


def test_gang_waits_for_a_tighter_network_only_so_long() -> None:
    asked = unit(2, EIGHT, patience_s=600, waiting_since=1000.0)
    found = waits(asked, fabrics(1), now=1240.0)
    assert found.reason == "Waiting up to 6 min more for InfiniBand fabric ib-0 (could start now on Ethernet)"
    assert found.could_start_looser is not None and set(found.could_start_looser.where.values()) == {"e1", "e2"}
    assert waits(asked, fabrics(1), now=1599.5).reason.startswith("Waiting up to 1 min more")
    assert str(placed(asked, fabrics(1), now=1600.0).network) == "Ethernet"
    assert str(placed(asked, fabrics(2), now=1000.0).network) == "InfiniBand fabric ib-0"


def test_nobody_waits_for_a_network_that_could_never_hold_it() -> None:
    asked = unit(3, EIGHT, patience_s=600, waiting_since=0.0)
    assert str(placed(asked, [*fabrics(1), spot("e3")], now=1.0).network) == "Ethernet"


# ---- the rules of a document


@pytest.mark.parametrize(
    ("resources", "near"),
    [
        ({}, Near()),
        ({"placement": "SameRack"}, Near(keep_within="rack")),
        ({"placement": "SameNvlinkDomain"}, Near(keep_within="nvlink_domain")),
        ({"placement": "SpreadRacks"}, Near(spread="rack")),
        ({"placement": "SpreadFabrics"}, Near(spread="fabric")),
        ({"placement": "TightestNetwork"}, Near()),
        ({"placement": "SameRack", "topology": {"spread": "node"}}, Near(spread="node")),
        ({"placement": "SameRack", "topology": {"max_nodes": 2}}, Near(keep_within="rack", max_nodes=2)),
        ({"topology": {"keep_within": "fabric", "patience_seconds": 60}}, Near(keep_within="fabric", patience_s=60)),
        ({"network": {"interconnect": "rdma", "min_gbps": 100}}, Near(interconnect="rdma", min_gbps=100)),
    ],
)
def test_rules_of_a_document(resources: dict[str, Any], near: Near) -> None:
    assert near_of(resources) == near


# ---- for every board


@st.composite
def boards(draw: st.DrawFn) -> tuple[Unit, list[Spot]]:
    names = st.sampled_from(["a", "b", "c"])
    spots = [
        spot(f"w{n}", draw(st.sampled_from([0, 4, 8, 16])), rack=draw(names), fabric=draw(names),
             ports=draw(st.sampled_from([(), IB, ROCE])), free_cpu_millis=draw(st.sampled_from([4000, 64_000])))
        for n in range(draw(st.integers(1, 8)))
    ]  # fmt: skip
    near = Near(
        keep_within=draw(st.sampled_from(["", "", "node", "rack", "fabric"])),
        spread=draw(st.sampled_from(["", "", "rack", "node"])),
        max_nodes=draw(st.sampled_from([0, 0, 2])),
        min_nodes=draw(st.sampled_from([0, 0, 2])),
        interconnect=draw(st.sampled_from(["auto", "auto", "rdma", "infiniband"])),
    )
    ask = st.sampled_from([SMALL, EIGHT, TOGETHER, replace(SMALL, gpus=2)])
    asks = draw(
        st.one_of(
            ask.flatmap(lambda a: st.lists(st.just(a), min_size=1, max_size=6)), st.lists(ask, min_size=1, max_size=5)
        )
    )
    return unit(asks=asks, near=near, least=draw(st.sampled_from([0, 0, 1]))), spots


@given(boards(), st.randoms())
@settings(max_examples=150, deadline=None)
def test_every_answer_keeps_the_rules_and_does_not_depend_on_the_order(
    board: tuple[Unit, list[Spot]], chance: Any
) -> None:
    asked, spots = board
    found = assign(asked, spots, 0.0)
    shuffled = list(spots)
    chance.shuffle(shuffled)
    again = assign(asked, shuffled, 0.0)
    assert again == found
    if isinstance(found, Unassigned):
        assert isinstance(again, Unassigned) and again.nodes == found.nodes
        return
    keeps_the_rules(asked, spots, found)


def keeps_the_rules(asked: Unit, spots: list[Spot], found: Assigned) -> None:
    free = {one.machine.worker: one.machine for one in spots}
    before, near = dict(free), asked.near
    for member in asked.members:
        if member.attempt in found.where:
            worker = found.where[member.attempt]
            assert fits(free[worker], member.ask), "there is room for each, one after another"
            free[worker] = taking(free[worker], member.ask)
    used = [before[worker] for worker in set(found.where.values())]
    assert len(found.where) >= (asked.least or len(asked.members))
    assert not near.max_nodes or len(used) <= near.max_nodes
    assert len(used) >= near.min_nodes
    if near.keep_within:
        assert len({name_at(one, near.keep_within) for one in used}) == 1
    if near.spread:
        names = [name_at(before[worker], near.spread) for worker in found.where.values()]
        assert len(set(names)) == len(names) and all(names)
    if near.interconnect != "auto" and len(used) > 1:
        assert len({(name_at(one, "fabric"), one.ports[0].kind) for one in used}) == 1


# ---- how long it takes


def test_a_thousand_machines_and_a_gang_of_64_take_milliseconds() -> None:
    """Bounded loosely, for a machine that does other things too; it takes about 7 ms."""
    spots = [spot(f"w{n:04}", rack=f"r{n // 16}", fabric=f"ib-{n // 128}", ports=IB) for n in range(1000)]
    took = []
    for _ in range(3):
        begun = time.thread_time()
        found = placed(unit(64, EIGHT), spots)
        took.append(time.thread_time() - begun)
    assert len(set(found.where.values())) == 64 and found.network.name.startswith("ib-")
    assert min(took) < 0.1
