"""Counting by numbers and by sort instead of asking the predicate of every machine: it says what the predicate says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.job.hardware import CARD, HEALTH, Device, GpuKind, Port, PortAsk
from stado_like.job.terms import Ask
from stado_like.planning.board import Spot
from stado_like.planning.counts import Counts, sorts_of
from stado_like.planning.fit import ACCEPTS, Kept, Machine, copies, fits, whole_cards
from stado_like.planning.rooms import Rooms

GIB = 1 << 30
SOME = settings(max_examples=200, deadline=None)


@st.composite
def machines(draw: st.DrawFn, number: int) -> Machine:
    cards = tuple(
        Device(
            id=f"m{number}-{i}",
            index=i,
            model=draw(st.sampled_from(("A100", "H100"))),
            memory_bytes=80 * GIB,
            health=draw(st.sampled_from(HEALTH)),
            free_share=draw(st.sampled_from((0, CARD // 2, CARD))),
        )
        for i in range(draw(st.integers(0, 3)))
    )
    labels = {"pool": draw(st.sampled_from("xy"))}
    if draw(st.booleans()):
        labels[ACCEPTS] = draw(st.sampled_from(("pool", "team")))
    return Machine(
        worker=f"m{number}",
        host=f"h{number}",
        free_cpu_millis=draw(st.integers(0, 4)) * 1000,
        free_memory_bytes=draw(st.integers(0, 4)) * GIB,
        free_gpus=whole_cards(cards) if cards else draw(st.integers(0, 3)),
        running=draw(st.integers(0, 1)),
        taken_whole=draw(st.integers(0, 7)) == 0,
        closed=draw(st.sampled_from(("", "", "", "not ready"))),
        labels=labels,
        abilities=draw(st.sampled_from((frozenset[str](), frozenset({"containers"})))),
        apart=draw(st.sampled_from((frozenset[str](), frozenset({"gang/"})))),
        total_cpu_millis=4000,
        total_memory_bytes=4 * GIB,
        gpus=cards,
        ports=draw(st.sampled_from(((), (Port(kind="infiniband", gbps=200),)))),
    )


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    kinds = (GpuKind(), GpuKind(), GpuKind(models=("H100",)), GpuKind(share_gb=40), GpuKind(ids=("m1-0",)))
    share = draw(st.sampled_from((0, 0, 0, CARD // 4)))
    return Ask(
        cpu_millis=0 if share else draw(st.integers(0, 2)) * 1000,
        memory_bytes=0 if share else draw(st.integers(0, 2)) * GIB,
        gpus=draw(st.integers(0, 2)),
        exclusive=draw(st.integers(0, 7)) == 0,
        pinned_host=draw(st.sampled_from(("", "", "", "h1"))),
        names=draw(st.sampled_from(((), (), ("m0", "h2")))),
        labels=draw(st.sampled_from(({}, {"pool": "x"}, {"team": "red"}))),
        apart=draw(st.sampled_from(("", "gang/", "other/"))),
        needs=draw(st.sampled_from(({}, {}, {"containers": "no containers"}))),
        gpu_kind=draw(st.sampled_from(kinds)),
        ports=draw(st.sampled_from((PortAsk(), PortAsk(), PortAsk(kind="rdma", gbps=100)))),
        node_share=share,
    )


KEPT = st.none() | st.builds(
    Kept,
    cpu_millis=st.integers(0, 3).map(lambda n: n * 1000),
    memory_bytes=st.integers(0, 3).map(lambda n: n * GIB),
    gpus=st.integers(0, 2),
    whole=st.booleans(),
)
ROWS = st.integers(1, 5).flatmap(lambda count: st.tuples(*(machines(number) for number in range(count))))


@SOME
@given(ROWS, asks(), st.integers(1, 5), KEPT)
def test_as_many_are_counted_as_the_predicate_lets_in(
    row: tuple[Machine, ...], ask: Ask, most: int, kept: Kept | None
) -> None:
    counts = Counts(ask, most, sorts_of(row), {})
    assert [counts.on(one, kept) for one in row] == [copies(one, ask, most, kept) for one in row]


@SOME
@given(ROWS, asks())
def test_machines_that_could_ever_take_an_ask_are_those_of_which_the_predicate_says_so(
    row: tuple[Machine, ...], ask: Ask
) -> None:
    rooms = Rooms(Spot(one) for one in row)
    kind = rooms.kind(ask)
    asked_of_each = tuple(i for i, one in enumerate(rooms.emptied) if fits(one, ask))
    assert tuple(rooms.ever_one_by_one(kind)) == rooms.ever(kind) == asked_of_each
    assert rooms.unclaimed(kind) == bool(asked_of_each)
    for i in asked_of_each:
        rooms.claim(i)
    assert not rooms.unclaimed(kind)
