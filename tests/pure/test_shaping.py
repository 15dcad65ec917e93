"""How a total is split when the scheduler decides: the best network, there the fewest machines, or why not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stado_like.job.demands import to_split
from stado_like.job.hardware import GpuKind
from stado_like.job.split import GroupSplit, Split, decided, undecided
from stado_like.job.terms import Ask
from stado_like.planning.board import Spot, Unit
from stado_like.planning.fit import taking
from stado_like.planning.placing import Shaped
from stado_like.planning.shaping import CannotShape, choose, shaped
from stado_like.planning.topology import Assigned, assign
from tests.pure.spots import EIGHT, GIB, IB, ROCE, SMALL, J, cards, here, spot, unit

EVERY = replace(SMALL, gpu_kind=GpuKind(every=True))
IB_0: dict[str, Any] = {"fabric": "ib-0", "ports": IB}


def total(gpus: int, ask: Ask = SMALL, rules: dict[str, Any] | None = None, **shape: int) -> Unit:
    """A unit with a total to split; `rules` are those of `near` and of the unit."""
    return unit(1, replace(ask, gpus=gpus), shape={"gpus": gpus, **shape}, **(rules or {}))


def why(asked: Unit, spots: list[Spot], now: float = 0.0) -> str:
    found = choose(asked, spots, now)
    return found.reason if isinstance(found, CannotShape) else found.why


@pytest.mark.parametrize(
    ("asked", "spots", "says"),
    [
        (total(16), [spot("a", **IB_0), spot("b", **IB_0)], "2 machines × 8 GPUs on InfiniBand fabric ib-0"),
        (total(16), [spot("a", 16), spot("b", **IB_0), spot("c", **IB_0)], "1 machine × 16 GPUs"),
        (total(1), [spot("a")], "1 machine × 1 GPU"),
        (
            total(16),
            [spot("a"), spot("b"), *[spot(f"i{n}", 4, **IB_0) for n in range(4)]],
            "4 machines × 4 GPUs on InfiniBand fabric ib-0",
        ),
        (total(16), [spot("a"), spot("b"), spot("c", 4)], "2 machines × 8 GPUs on Ethernet"),
        (total(16), [spot("a", ports=ROCE), spot("b", ports=ROCE)], "2 machines × 8 GPUs on RoCE"),
        (
            total(16),
            [spot(n, 8, devices=cards(8, nvlink_domain="nv-1")) for n in ("a", "b")],
            "2 machines × 8 GPUs on NVLink domain nv-1",
        ),
        (total(12), [spot("a"), spot("b")], "2 machines × 6 GPUs on Ethernet"),
        (total(12, per_node=1), [spot("a"), spot("b"), spot("c")], "3 machines × 4 GPUs on Ethernet"),
        (total(8, min_nodes=2), [spot("a"), spot("b")], "2 machines × 4 GPUs on Ethernet"),
        (total(8, min_nodes=2, max_nodes=4), [spot(n, 2) for n in "abcd"], "4 machines × 2 GPUs on Ethernet"),
        (total(0, min_nodes=2, max_nodes=4), [spot(n, 0) for n in "abcd"], "2 machines on Ethernet"),
        (total(8, machines=2), [spot("a"), spot("b")], "2 machines × 4 GPUs on Ethernet"),
        (
            total(16, EVERY, every=1),
            [spot("a"), spot("b", 4), spot("c")],
            "2 machines × every free GPU (at least 8) on Ethernet",
        ),
        (total(9, EVERY, every=1), [spot("a"), spot("b", 5)], "2 machines × every free GPU (at least 5) on Ethernet"),
        (total(0, EVERY, every=1, min_nodes=2), [spot("a"), spot("b", 1)], "2 machines × every free GPU (at least 1)"
         " on Ethernet"),
        (total(2, EVERY, every=1, min_per_machine=3), [spot("a", 2), spot("b", 4)],
         "1 machine × every free GPU (at least 3)"),
        (total(0, EVERY, every=1, every_machine=1), [spot("a"), spot("b", 1), spot("c", 0)],
         "every machine that can take one: 2 machines × every free GPU (at least 1)"),
        (total(9, EVERY, every=1, every_machine=1), [spot("a"), spot("b", 5), spot("c", 2)],
         "every machine that can take one: 2 machines × every free GPU (at least 5)"),
    ],
)  # fmt: skip
def test_split(asked: Unit, spots: list[Spot], says: str) -> None:
    assert why(asked, spots) == says
    found = choose(asked, spots, 0.0)
    assert isinstance(found, Shaped) and found.job == J
    assert isinstance(assign(shaped(asked, found.tasks, found.gpus_each), spots, 0.0), Assigned), "it can be placed"


@pytest.mark.parametrize(
    ("asked", "spots", "says"),
    [
        (total(12, machines=5), [spot("a")], "cannot evenly distribute 12 gpus across 5 machines"),
        (total(12, min_nodes=5, max_nodes=5), [spot("a")], "cannot evenly distribute 12 gpus across 5 machines"),
        (total(12, machines=2, per_node=1), [], "12 gpus across 2 machines is 6 per worker, not a power of 2"),
        (
            total(16),
            [spot("a", 3), spot("b", 4)],
            "no way to run 16 GPUs on these machines: 4 free on the largest one now",
        ),
        (
            total(16, min_per_machine=8),
            [spot(n, 4) for n in "abcd"],
            "no way to run 16 GPUs on these machines: 4 free on the largest one now",
        ),
        (
            total(2, rules={"keep_within": "node"}),
            [spot("a", 1), spot("b", 1)],
            "no way to run 2 GPUs on these machines: 1 free on the largest one now",
        ),
        (
            total(2, replace(SMALL, gpu_kind=GpuKind(("H100",)))),
            [spot("a", devices=cards(8, model="T4")), spot("b", devices=cards(1, model="H100"))],
            "no way to run 2 GPUs on these machines: 1 free on the largest one now",
        ),
        (
            total(16, rules={"group": "engine"}),
            [spot("a", 0), spot("b", closed="machine is cordoned: x")],
            "no machine can host a worker of group engine right now",
        ),
        (
            total(16, rules={"group": "engine"}),
            [spot("a", 1)],
            "no way to run 16 GPUs on these machines: 1 free on the largest one now",
        ),
        (
            total(0, EVERY, every=1, min_nodes=2),
            [spot("a"), spot("b", 0)],
            "no way to run 2 GPUs on these machines: 8 free on the largest one now",
        ),
        (total(8), [], "no way to run 8 GPUs on these machines: 0 free on the largest one now"),
    ],
)
def test_total_that_cannot_be_split_says_why(asked: Unit, spots: list[Spot], says: str) -> None:
    assert why(asked, spots) == f"Cannot plan workers: {says}"


def test_cores_and_memory_follow_the_gpus_of_each_task() -> None:
    asked = total(16, Ask(192_000, 16 * GIB, 16), per_gpu_cpu_millis=12_000, per_gpu_memory_bytes=GIB)
    made = shaped(asked, 2, 8)
    assert [(one.ask.gpus, one.ask.cpu_millis, one.ask.memory_bytes) for one in made.members] == [
        (8, 96_000, 8 * GIB)
    ] * 2
    assert [one.attempt.rank for one in made.members] == [0, 1]
    assert why(asked, [spot("a", 16), spot("b", free_cpu_millis=96_000), spot("c", free_cpu_millis=96_000)]) == (
        "2 machines × 8 GPUs on Ethernet"
    )


def test_one_task_on_every_machine_that_can_take_one() -> None:
    spots = [spot("a"), spot("b"), spot("c", 2), spot("d", closed="machine is cordoned: x")]
    assert choose(total(0, every_machine=1), spots, 0.0) == Shaped(
        J, 3, 0, "every machine that can take one: 3 machines"
    )
    assert why(total(6, every_machine=1), spots) == "every machine that can take one: 3 machines × 2 GPUs"
    assert why(total(12, every_machine=1), spots) == "every machine that can take one: 2 machines × 6 GPUs"
    assert (
        why(total(8, every_machine=1), spots)
        == "Cannot plan workers: cannot evenly distribute 8 gpus across 3 machines"
    )
    assert why(total(8, every_machine=1), spots[3:]).startswith("Cannot plan workers: no way to run 8 GPUs")


def test_patience_holds_for_a_split_too() -> None:
    busy = [Spot(taking(spot(n, **IB_0).machine, EIGHT), (here(7, EIGHT, replace(J, name="other")),)) for n in "xy"]
    asked = total(16, rules={"patience_s": 600, "waiting_since": 1000.0})
    spots = [spot("a"), spot("b"), *busy]
    assert why(asked, spots, 1240.0) == (
        "Waiting up to 6 min more for InfiniBand fabric ib-0 (could start now on Ethernet)"
    )
    assert why(asked, spots, 1600.0) == "2 machines × 8 GPUs on Ethernet"


def test_what_a_document_says_of_its_total() -> None:
    assert to_split({}) == {}
    assert to_split(
        {
            "gpu_requests": {"count": 16, "policy": "PerNode", "min_per_machine": 4},
            "topology": {"min_nodes": 2, "max_nodes": 4},
            "per_gpu": {"cpu_cores": 1.5, "memory_bytes": 7},
        }
    ) == {
        "gpus": 16, "per_node": 1, "min_per_machine": 4, "min_nodes": 2, "max_nodes": 4,
        "per_gpu_cpu_millis": 1500, "per_gpu_memory_bytes": 7,
    }  # fmt: skip
    assert to_split({"gpu_requests": {"count": 8, "policy": "All"}, "node_selection": {"mode": "All", "count": 2}}) == {
        "gpus": 8, "every": 1, "every_machine": 1, "machines": 2,
    }  # fmt: skip


def grouped(*asked: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    groups = [{"name": name, "task_template": {"requested_resources": resources}} for name, resources in asked]
    return {"metadata": {"name": "j"}, "spec": {"task_groups": groups}}


def test_which_groups_leave_their_number_open_and_what_a_split_says_of_them() -> None:
    said = {"gpu_requests": {"count": 8, "policy": "PerNode"}}
    document = grouped(("a", {"machines": 2}), ("b", said), ("c", said))
    assert undecided(document) == ("b", "c")
    assert undecided({"spec": {"task_template": {"requested_resources": said}}}) == ("",)
    assert undecided({"spec": {"task_template": {"requested_resources": said}, "array": {"size": 2}}}) == ()
    assert undecided({"spec": {"task_template": {"requested_resources": {"gpu_requests": {"count": 2}}}}}) == ()
    groups = (GroupSplit(group="b", tasks=2, gpus_each=4), GroupSplit(group="c", tasks=1, gpus_each=8))
    made = decided(document, Split(nonce="n", tasks=2, gpus_each=4, groups=groups))
    asked = [one["task_template"]["requested_resources"] for one in made["spec"]["task_groups"]]
    assert asked == [{"machines": 2}, {**said, "machines": 2}, {**said, "machines": 1}]
    assert undecided(made) == ()
    every = {"gpu_requests": {"count": 9, "policy": "All"}, "node_selection": {"mode": "All"}}
    made = decided({"spec": {"task_template": {"requested_resources": every}}}, Split(nonce="n", tasks=2, gpus_each=5))
    asked = [made["spec"]["task_template"]["requested_resources"]]
    assert asked == [{**every, "machines": 2, "node_selection": {"mode": "Exact"}}] and undecided(made) == ()
    before = decided(document, Split(nonce="n", tasks=4, gpus_each=0))
    assert before["spec"]["task_groups"][0]["task_template"]["requested_resources"]["machines"] == 4
