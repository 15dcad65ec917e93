"""Transitions that died at one of their writes, and a check that carries on: it comes to what the whole transition
comes to, or to what stood before it where nothing had been decided yet.

And the repair itself dies, at each of its writes; and two repairs meet, at each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stado_like.bucket import cancel, entries
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.delete import delete_job
from stado_like.fsck.check import check
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.states import Cause
from stado_like.store.protocol import list_all
from tests.builders_check import DAY_AND_MORE_S, Act, Yard
from tests.builders_jobs import attempt, claim, end, run, submit

TRAIN = JobId("default", "train", 1)
CAPPED: dict[str, Any] = {"array": {"size": 5, "max_parallel": 2}}


def _nothing(b: Bucket) -> None:
    """An empty bucket."""


def _one(b: Bucket) -> None:
    submit(b)


def _one_claimed(b: Bucket) -> None:
    claim(b, attempt(submit(b)))


def _one_over(b: Bucket) -> None:
    run(b, attempt(submit(b)))


def _one_waits(b: Bucket) -> None:
    run(b, attempt(submit(b)), 1)


def _name_used(b: Bucket) -> None:
    _one_over(b)
    delete_job(b, TRAIN)


def _capped(b: Bucket) -> None:
    submit(b, **CAPPED)


def _capped_claimed(b: Bucket) -> None:
    claim(b, attempt(submit(b, **CAPPED)))


def _never_again(b: Bucket) -> None:
    """One failure fails the job, whose other tasks run and wait."""
    j = submit(b, **CAPPED, template={"restart_policy": "Never"})
    claim(b, attempt(j, 0))
    claim(b, attempt(j, 1))


def _all_but_the_last(b: Bucket) -> None:
    j = submit(b, **CAPPED)
    for rank in range(4):
        run(b, attempt(j, rank))
    claim(b, attempt(j, 4))


def _wide(b: Bucket) -> None:
    submit(b, array={"size": 70, "block": 1})


def _array_over(b: Bucket) -> None:
    j = submit(b, array={"size": 2})
    run(b, attempt(j, 0))
    run(b, attempt(j, 1))


def _in_all_states(b: Bucket) -> None:
    j = submit(b, **CAPPED)
    run(b, attempt(j, 1), 1)
    claim(b, attempt(j, 0))


def _move(b: Bucket) -> None:
    for row in list(list_all(b.store, keys.QUEUED_LATER)):
        entries.move_due(b, keys.parse_later(row.key))


@dataclass(frozen=True)
class Scene:
    name: str
    setup: Callable[[Bucket], None]
    act: Act


SCENES = (
    Scene("submit", _nothing, submit),
    Scene("submit an array", _nothing, lambda b: submit(b, **CAPPED)),
    Scene("submit a name again", _name_used, submit),
    Scene("claim", _one, lambda b: claim(b, attempt(TRAIN))),
    Scene("claim of a retry", _one_waits, lambda b: claim(b, attempt(TRAIN, n=2))),
    Scene("claim in a wide array", _wide, lambda b: claim(b, attempt(TRAIN, 3))),
    Scene("end", _one_claimed, lambda b: end(b, attempt(TRAIN))),
    Scene("end, retry later", _one_claimed, lambda b: end(b, attempt(TRAIN), 1)),
    Scene("end, retry at once", _one_claimed, lambda b: end(b, attempt(TRAIN), cause=Cause.MOVED, reason="x")),
    Scene("end of a rank", _capped_claimed, lambda b: end(b, attempt(TRAIN))),
    Scene("end of the last rank", _all_but_the_last, lambda b: end(b, attempt(TRAIN, 4))),
    Scene("end that fails the job", _never_again, lambda b: end(b, attempt(TRAIN, 1), 1)),
    Scene("cancel, queued", _one, lambda b: cancel.cancel_job(b, TRAIN)),
    Scene("cancel, claimed", _one_claimed, lambda b: cancel.cancel_job(b, TRAIN)),
    Scene("cancel, waiting for its retry", _one_waits, lambda b: cancel.cancel_job(b, TRAIN)),
    Scene("cancel an array", _capped, lambda b: cancel.cancel_job(b, TRAIN)),
    Scene("cancel an array in all states", _in_all_states, lambda b: cancel.cancel_job(b, TRAIN)),
    Scene("stop", _one, lambda b: cancel.stop_task(b, TRAIN, 0)),
    Scene("stop a rank", _in_all_states, lambda b: cancel.stop_task(b, TRAIN, 1)),
    Scene("stop a rank that runs", _in_all_states, lambda b: cancel.stop_task(b, TRAIN, 0)),
    Scene("stop a rank never released", _in_all_states, lambda b: cancel.stop_task(b, TRAIN, 4)),
    Scene("move a retry", _one_waits, _move),
    Scene("delete", _one_over, lambda b: delete_job(b, TRAIN)),
    Scene("delete an array", _array_over, lambda b: delete_job(b, TRAIN)),
)


def _ends_of(scene: Scene, name: str) -> tuple[int, list[dict[str, Any]]]:
    """How many writes the act takes; and where it may end, cut short or not: before it, and after all of it."""
    before = Yard(name)
    scene.setup(before.bucket())
    before.check(repair=True)
    whole = Yard(name + " whole")
    scene.setup(whole.bucket())
    writes = whole.writes_of(scene.act)
    whole.check(repair=True)
    return writes, [before.shape(), whole.shape()]


def _cut(scene: Scene, name: str, at: int, after: bool) -> Yard:
    yard = Yard(name)
    scene.setup(yard.bucket())
    yard.cut(scene.act, at, after=after)
    return yard


def _is_repaired(yard: Yard, ends: list[dict[str, Any]]) -> bool:
    """What nobody may call an orphan for a day is one a day later."""
    if yard.shape() not in ends:
        yard.clock.now_s += DAY_AND_MORE_S
        yard.check(repair=True)
    return yard.shape() in ends


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_transition_cut_short_is_carried_on(scene: Scene) -> None:
    writes, ends = _ends_of(scene, scene.name)
    for at in range(writes):
        for after in (False, True):
            yard = _cut(scene, f"{scene.name} cut", at, after)
            said = yard.check(audit=True, repair=True)
            assert said.findings == [], (at, after)
            assert yard.check(audit=True).findings == [], (at, after)
            assert _is_repaired(yard, ends), (at, after, said.repaired)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_nothing_that_was_decided_is_taken_back(scene: Scene) -> None:
    """Ends, verdicts, stops and finals that stood when the transition died stand as they were, byte for byte."""
    writes, _ = _ends_of(scene, scene.name)
    for at in range(writes):
        yard = _cut(scene, f"{scene.name} decided", at, True)
        before = yard.contents()
        yard.check(repair=True)
        after = yard.contents()
        buried = keys.tombstone(TRAIN) in after
        kept = ("end.", "verdict.json", "final.json", "stop.json")
        for key, body in before.items():
            if key.startswith("status/") and key.rsplit("/", 1)[-1].startswith(kept) and not buried:
                assert after.get(key) == body, key


REPAIRED = (
    "submit an array",
    "claim in a wide array",
    "end of a rank",
    "end of the last rank",
    "end, retry later",
    "end that fails the job",
    "cancel an array in all states",
    "stop a rank",
    "move a retry",
    "delete an array",
)


@pytest.mark.parametrize("scene", [one for one in SCENES if one.name in REPAIRED], ids=lambda scene: scene.name)
def test_a_repair_that_dies_is_finished_by_the_next(scene: Scene) -> None:
    writes, ends = _ends_of(scene, scene.name)
    for at in range(writes):
        repairs = _cut(scene, f"{scene.name} repair", at, True).writes_of(lambda b: check(b, repair=True))
        for struck in range(repairs):
            for after in (False, True):
                yard = _cut(scene, f"{scene.name} repair", at, True)
                yard.cut(lambda b: check(b, repair=True), struck, after=after)
                said = yard.check(audit=True, repair=True)
                assert said.findings == [], (at, struck, after)
                assert _is_repaired(yard, ends), (at, struck, after, said.repaired)


@pytest.mark.parametrize("scene", [one for one in SCENES if one.name in REPAIRED], ids=lambda scene: scene.name)
def test_two_repairs_at_once_come_to_the_same(scene: Scene) -> None:
    """The second runs from its beginning to its end between two writes of the first."""
    writes, ends = _ends_of(scene, scene.name)
    for at in range(writes):
        repairs = _cut(scene, f"{scene.name} twice", at, True).writes_of(lambda b: check(b, repair=True))
        for struck in range(repairs):
            yard = _cut(scene, f"{scene.name} twice", at, True)
            other: Callable[[], object] = lambda yard=yard: yard.check(repair=True)  # type: ignore[misc]  # noqa: E731
            first = yard.bucket(at=struck, strike=other)
            assert check(first, repair=True).findings == [], (at, struck)
            assert yard.check(audit=True, repair=True).findings == [], (at, struck)
            assert _is_repaired(yard, ends), (at, struck)


LIVE: dict[str, Act] = {
    "the worker ends it": lambda b: end(b, attempt(TRAIN)),
    "the worker ends it for a retry": lambda b: end(b, attempt(TRAIN), 1),
    "a person cancels it": lambda b: cancel.cancel_job(b, TRAIN),
}


@pytest.mark.parametrize("what", LIVE)
def test_a_repair_beside_live_traffic_undoes_nothing(what: str) -> None:
    """The entry stands beside its claim, so there is something to repair; at each write of the repair, life goes on."""

    def make() -> Yard:
        yard = Yard(f"live {what}")
        _capped(yard.bucket())
        yard.cut(lambda b: claim(b, attempt(TRAIN)), 0, after=True)
        return yard

    alone = make()
    repairs = alone.writes_of(lambda b: check(b, repair=True))
    assert repairs > 0
    LIVE[what](alone.bucket())
    alone.check(repair=True)
    for struck in range(repairs):
        for after in (False, True):
            yard = make()
            other: Callable[[], object] = lambda yard=yard: LIVE[what](yard.bucket())  # type: ignore[misc]  # noqa: E731
            check(yard.bucket(at=struck, after=after, strike=other), repair=True)
            assert yard.check(audit=True, repair=True).findings == []
            assert yard.shape() == alone.shape(), (struck, after)
