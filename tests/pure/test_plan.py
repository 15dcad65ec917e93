"""World -> plan: which action in which pass, and nothing else."""

from __future__ import annotations

import pytest

from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.rollup import TaskEnd
from stado_like.job.states import JobState, TaskState
from stado_like.job.terms import Ask, terms_of
from stado_like.planning import groups
from stado_like.planning.actions import (
    Deferred,
    DropSpent,
    GiveUp,
    MendJob,
    MoveDue,
    Reap,
    ReleaseGroup,
    Remember,
    SettleCancel,
    SettleEnded,
    SweepEntry,
    SweepJob,
)
from stado_like.planning.groups import Gathering, Member
from stado_like.planning.plan import PASSES, plan
from stado_like.planning.world import LyingEntry, OpenJob, SweptJob, World
from tests.builders_tick import T0, TTL_S, attempt, look, world

ASK = Ask(cpu_millis=1000, memory_bytes=2**30, gpus=0)


def later(name: str, due_s: float) -> keys.LaterEntry:
    return keys.parse_later(keys.later(int((T0 + due_s) * 1000), attempt(name, n=2), ASK))


def test_nothing_to_do_is_an_empty_plan() -> None:
    empty = plan(world())
    assert empty.actions == () and empty.next_due_at is None
    assert tuple(name for name, _ in empty.passes) == PASSES


def test_cancels_a_verdict_covers_the_stops_of_its_ranks() -> None:
    whole, single = JobId("default", "whole", 1), JobId("default", "single", 1)
    state = world(cancels=((whole, None), (whole, 3), (single, 3)))
    assert plan(state).actions == (SettleCancel(whole), SettleCancel(single, 3))


def test_due_retries_move_and_the_next_one_is_named() -> None:
    due, now, not_yet = later("due", -5), later("now", 0), later("not-yet", 7)
    planned = plan(world(later=(due, now, not_yet)))
    assert planned.actions == (MoveDue(due), MoveDue(now))
    assert planned.next_due_at == T0 + 7


def test_entry_of_a_claimed_attempt_is_spent() -> None:
    held = look(attempt("held"))
    entries = [keys.parse_entry(keys.entry(keys.QUEUED_OPEN, attempt(name), 0, 1, ASK)) for name in ("held", "waits")]
    assert plan(world(held, queued=tuple(entries))).actions == (DropSpent(entries[0]),)


def test_arming_is_written_before_anybody_is_reaped() -> None:
    dead, late = look(attempt("dead"), beat_age_s=500), look(attempt("late"), worker="w2", beat_age_s=80)
    known = world(dead, armed_s=TTL_S).observed
    others = [look(attempt(name), worker=name) for name in ("w3", "w4")]
    planned = plan(world(dead, late, *others, observed=known))
    assert [type(action) for action in planned.actions] == [Remember, Reap]


def test_ends_left_half_way_are_settled_but_not_those_of_a_moment_ago() -> None:
    old, fresh = look(attempt("old"), ended_at=T0 - 60), look(attempt("fresh"), ended_at=T0 - 1)
    assert plan(world(old, fresh), settling_s=5.0).actions == (SettleEnded(old.held),)
    assert plan(world(old, fresh)).actions == (SettleEnded(old.held), SettleEnded(fresh.held))


def test_end_seen_just_after_the_listing_is_settled_too() -> None:
    ended = look(ended_at=T0 + 0.2)
    assert plan(world(ended)).actions == (SettleEnded(ended.held),)


def test_open_jobs_are_told_what_was_seen_of_their_ranks() -> None:
    j = JobId("default", "train", 1)
    state = world(look(attempt(rank=3, n=2)), later=(later("train", 50),), open_jobs=(OpenJob(j, T0 - 90),))
    assert plan(state).actions == (MendJob(j, T0 - 90, {3: 2}, {0: 2}),)


def test_open_job_under_a_verdict_is_left_to_the_pass_of_cancels() -> None:
    j = JobId("default", "train", 1)
    assert plan(world(open_jobs=(OpenJob(j, T0),), cancels=((j, None),))).actions == (SettleCancel(j),)


def test_sweep_passes_over_what_somebody_holds() -> None:
    held, other = attempt("held").job, attempt("other").job
    state = world(look(attempt("held")), swept=(SweptJob(held, T0), SweptJob(other, T0)))
    assert plan(state).actions == (SweepJob(other, T0),)


def gathering(*waiting: str, members: dict[int, Member], begun: tuple[str, ...] = ()) -> Gathering:
    """Groups a (ranks 0, 1), b (rank 2, waits for a), c (rank 3, waits for a and b)."""
    groups = [
        {"name": "a", "task_template": {"command": "x", "requested_resources": {"machines": 2}}},
        {"name": "b", "depends_on": [{"group_name": "a"}], "task_template": {"command": "x"}},
        {"name": "c", "depends_on": [{"group_name": "a"}, {"group_name": "b"}], "task_template": {"command": "x"}},
    ]
    terms = terms_of({"metadata": {"name": "run"}, "spec": {"task_groups": groups}})
    return Gathering(JobId("default", "run", 1), terms, waiting, frozenset(begun), members)


RUNS, DONE, WAITS = (Member(state) for state in (TaskState.RUNNING, TaskState.COMPLETED, TaskState.PENDING))


def ended(state: TaskState, rank: int = 1) -> Member:
    return Member(state, TaskEnd(rank, f"run-a-{rank}", state, "why", "m1"))


@pytest.mark.parametrize(
    ("members", "released"),
    [
        ({0: RUNS, 1: RUNS}, ("b",)),
        ({0: RUNS, 1: DONE}, ("b",)),
        ({0: RUNS, 1: WAITS}, ()),
        ({0: RUNS}, ()),
        ({0: RUNS, 1: Member(TaskState.STALE)}, ()),
        ({0: RUNS, 1: Member(TaskState.STARTING)}, ()),
        ({0: RUNS, 1: Member(TaskState.STOPPING)}, ()),
        ({0: RUNS, 1: RUNS, 2: RUNS}, ("b", "c")),
    ],
)
def test_groups_are_released_when_all_that_they_wait_for_runs(
    members: dict[int, Member], released: tuple[str, ...]
) -> None:
    seen = gathering("b", "c", members=members)
    assert plan(world(gatherings=(seen,))).actions == tuple(ReleaseGroup(seen.job, name) for name in released)


def test_group_that_began_is_released_to_its_last_rank_whatever_the_others_do() -> None:
    for other in (WAITS, ended(TaskState.FAILED)):
        seen = gathering("b", members={0: RUNS, 1: other}, begun=("b",))
        assert plan(world(gatherings=(seen,))).actions == (ReleaseGroup(seen.job, "b"),)


@pytest.mark.parametrize(
    ("state", "job", "why"),
    [
        (TaskState.FAILED, JobState.FAILED, "Worker run-a-1 failed on m1: why"),
        (TaskState.DOWN, JobState.FAILED, "Worker run-a-1 was lost on m1: why"),
        (TaskState.PREEMPTED, JobState.FAILED, "Worker run-a-1 was lost on m1: why"),
        (TaskState.CANCELLED, JobState.CANCELLED, "Worker run-a-1 was stopped: why"),
    ],
)
def test_group_that_waits_for_what_ended_for_good_ends_its_job(state: TaskState, job: JobState, why: str) -> None:
    seen = gathering("b", "c", members={0: WAITS, 1: ended(state)})
    sentence = f"{why}; worker group b cannot start without it"
    assert plan(world(gatherings=(seen,))).actions == (GiveUp(seen.job, job, sentence),)


def test_what_a_waiting_group_says() -> None:
    seen = gathering("b", "c", members={0: RUNS, 1: WAITS})
    group = seen.terms.group("c")
    assert group is not None
    assert groups.wait_reason(seen.terms, group, seen.members) == "Waits for worker group a to be running"
    up = {**seen.members, 1: RUNS}
    assert groups.wait_reason(seen.terms, group, up) == "Waits for worker group b to be running"
    assert groups.wait_reason(seen.terms, group, {**up, 2: RUNS}) == ""
    assert sorted(groups.awaited(seen.terms, ("c",))) == [0, 1, 2]


def test_entries_that_lie_long_are_looked_at_last() -> None:
    a = attempt("waits")
    lying = LyingEntry(keys.entry(keys.QUEUED_HELD, a, 0, 1, ASK), a)
    j = JobId("default", "other", 1)
    assert plan(world(lying=(lying,), swept=(SweptJob(j, T0),))).actions == (SweepJob(j, T0), SweepEntry(lying.key, a))


def test_every_room_that_could_not_be_listed_defers_its_pass() -> None:
    """Counts differ between two listings, or do not come: what is not read is not concluded from."""
    rooms = ("cancels", "later", "queued", "running", "groups", "open", "jobs", "entries")
    planned = plan(World(now=T0, unread=dict.fromkeys(rooms, "timed out")))
    assert [type(action) for action in planned.actions] == [Deferred] * len(rooms)
    deferred = {name for name, actions in planned.passes if actions}
    assert deferred == {"cancels", "later", "reap", "groups", "jobs", "sweep"}
