"""When a job that waits for others may go, and when it never can; which children go; who waited too long."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.job.keys import JobId
from stado_like.job.records import Claim
from stado_like.job.states import TERMINAL_JOB, JobState
from stado_like.job.terms import After, Terms, terms_of
from stado_like.planning import awaited, family, overdue
from stado_like.planning.actions import EndChild, EndLate, GiveUp, ReleaseWaiter
from stado_like.planning.awaited import Came, Waiter
from stado_like.planning.family import Child
from stado_like.planning.overdue import Late
from stado_like.planning.plan import plan
from tests.builders_tick import attempt, look, world

MINE = JobId("default", "mine", 1)
COMES = Came()
GONE = Came(gone=True)


def ended(state: JobState) -> Came:
    return Came(state, "why")


def waiter(*pairs: tuple[str, Came], released: bool = False) -> Waiter:
    wanted = tuple((After(f"default.prep{n}.1", state), came) for n, (state, came) in enumerate(pairs))
    return Waiter(MINE, wanted, released)


@pytest.mark.parametrize(
    ("state", "enough"),
    [
        ("Completed", {JobState.COMPLETED}),
        ("Failed", {JobState.FAILED, JobState.UNSCHEDULABLE}),
        ("Ended", set(TERMINAL_JOB)),
    ],
)
@pytest.mark.parametrize("came", sorted(TERMINAL_JOB))
def test_each_end_lets_go_or_forbids_for_ever(state: str, enough: set[JobState], came: JobState) -> None:
    one = waiter((state, ended(came)))
    assert awaited.may_go(one) == (came in enough)
    assert bool(awaited.why_never(one)) == (came not in enough)


def test_all_of_them_must_have_come() -> None:
    done = ("Completed", ended(JobState.COMPLETED))
    assert not awaited.may_go(waiter(done, ("Completed", COMES)))
    assert awaited.may_go(waiter(done, done))


def test_one_that_cannot_come_any_more_decides_though_others_may() -> None:
    found = awaited.why_never(waiter(("Completed", COMES), ("Completed", ended(JobState.FAILED))))
    assert found == "Waited for job prep1 to complete, and it is Failed: why"
    assert awaited.why_never(waiter(("Failed", GONE))) == "Waited for job prep0 to fail, and it was deleted"


def test_once_released_it_is_never_held_again() -> None:
    one = waiter(("Completed", GONE), released=True)
    assert awaited.may_go(one) and awaited.why_never(one) == ""


@pytest.mark.parametrize(
    ("job", "shown"), [("default.prep.1", "prep"), ("default.prep.2", "default.prep.2"), ("b.prep.1", "b.prep.1")]
)
def test_it_says_for_which_job_it_waits(job: str, shown: str) -> None:
    assert awaited.why_waits(MINE, [(After(job, "Ended"), COMES)]) == f"Waits for job {shown} to end"


def test_what_only_a_tick_can_settle_names_no_job() -> None:
    assert awaited.why_waits(MINE, [(After("default.prep.1", "Completed"), ended(JobState.FAILED))]) == ""


STATES = st.one_of(st.just(COMES), st.just(GONE), st.sampled_from(sorted(TERMINAL_JOB)).map(ended))


@given(st.lists(st.tuples(st.sampled_from(["Completed", "Failed", "Ended"]), STATES), min_size=1, max_size=4))
def test_a_waiter_goes_waits_or_never_can_and_only_one_of_them(pairs: list[tuple[str, Came]]) -> None:
    one = waiter(*pairs)
    goes, never = awaited.may_go(one), bool(awaited.why_never(one))
    waits = any(came == COMES for _, came in pairs)
    assert not (goes and never)
    assert goes or never or waits


def test_what_was_decided_stands_whatever_the_others_came_to() -> None:
    given_up = Waiter(MINE, ((After("default.prep.1", "Ended"), ended(JobState.COMPLETED)),), never="gone")
    assert awaited.why_never(given_up) == "gone" and not awaited.may_go(given_up)


# ---- children


def job(name: str) -> JobId:
    return JobId("default", name, 1)


def child(name: str, parent: str, over: bool = False) -> Child:
    return Child(job(name), job(parent), over)


def test_descendants_go_in_one_tick_whatever_their_order() -> None:
    generations = [child("a", "root", over=True), child("b", "a"), child("c", "b"), child("other", "elsewhere")]
    for order in itertools.permutations(generations):
        assert family.orphaned(order) == (job("a"), job("b"), job("c"))


def test_children_of_what_goes_on_stay() -> None:
    assert family.orphaned([child("a", "root"), child("b", "a")]) == ()


def test_a_family_that_is_a_ring_ends() -> None:
    """No submit makes one: a parent exists before its child. A document written by hand may say so."""
    assert family.orphaned([child("a", "b", over=True), child("b", "a")]) == (job("a"), job("b"))


# ---- too late


def timed(**spec: Any) -> Terms:
    return terms_of({"metadata": {"name": "mine"}, "spec": {"task_template": {"command": "x"}, **spec}})


def test_the_scheduling_timeout_counts_from_when_it_began_to_wait() -> None:
    terms = timed(scheduling_timeout_seconds=600)
    assert overdue.why(terms, 1000.0, 1599.9) == ""
    assert overdue.why(terms, 1000.0, 1600.0) == "Waited longer than its scheduling timeout of 10m"
    assert overdue.why(terms, None, 1e12) == "", "what waits for something else does not count"


def test_the_deadline_is_a_moment_whatever_it_waited_for() -> None:
    terms = timed(deadline="2026-01-31T12:00:00Z")
    at = 1769860800.0
    assert overdue.why(terms, None, at - 1) == ""
    assert overdue.why(terms, None, at) == "Not started by its deadline of 2026-01-31T12:00:00Z"


def test_nobody_need_look_before_it_could_be_late() -> None:
    assert overdue.earliest_s(timed(scheduling_timeout_seconds=600), 1000.0) == 1600.0
    assert overdue.earliest_s(timed(), 1000.0) == float("inf")
    both = timed(scheduling_timeout_seconds=600, deadline="2026-01-31T12:00:00Z")
    assert overdue.earliest_s(both, 1769860799.0) == 1769860800.0


@pytest.mark.parametrize(
    ("spec", "watched"),
    [
        ({}, False),
        ({"array": {"size": 1}}, True),
        ({"after": [{"job": "default.prep.1"}]}, True),
        ({"scheduling_timeout_seconds": 60}, True),
        ({"deadline": "2026-01-31T12:00:00Z"}, True),
    ],
)
def test_only_what_a_tick_must_find_is_in_the_index(spec: dict[str, Any], watched: bool) -> None:
    assert timed(**spec).watched is watched
    of_a_parent = terms_of({"metadata": {"name": "c", "parent": "default.p.1"}, "spec": {"task_template": {}}})
    assert of_a_parent.watched


# ---- the plan


def test_waiters_are_released_or_given_up() -> None:
    goes = waiter(("Completed", ended(JobState.COMPLETED)))
    never = Waiter(job("never"), ((After("default.prep.1", "Completed"), GONE),))
    again = Waiter(job("again"), released=True)
    waits = Waiter(job("waits"), ((After("default.prep.1", "Completed"), COMES),))
    reason = "Waited for job prep to complete, and it was deleted"
    assert plan(world(waiters=(goes, never, again, waits))).actions == (
        ReleaseWaiter(MINE),
        GiveUp(job("never"), JobState.CANCELLED, reason, awaited=True),
        ReleaseWaiter(job("again"), again=True),
    )


def test_children_of_parents_that_are_over_end() -> None:
    assert plan(world(children=(child("a", "root", over=True), child("b", "a")))).actions == (
        EndChild(job("a")),
        EndChild(job("b")),
    )


def test_late_attempts_end_unless_somebody_holds_them() -> None:
    """A claim that another tick made to end one is carried on with."""
    waits, held = Late(attempt("waits"), "k1", "why"), Late(attempt("held"), "k2", "why")
    ours = Claim(nonce="n", attempt=str(attempt("ours")), worker="", queue_key="k3", overdue="too late")
    mine = look(attempt("ours"))
    mine = replace(mine, held=replace(mine.held, claim=ours))
    found = plan(world(look(attempt("held")), mine, late=(waits, held)))
    assert [one for one in found.actions if isinstance(one, EndLate)] == [
        EndLate(attempt("waits"), "k1", "why"),
        EndLate(attempt("ours"), "k3", "too late", ours),
    ]
