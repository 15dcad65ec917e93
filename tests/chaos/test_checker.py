"""A checker that never failed is no checker: for each rule a history that breaks it, and one that breaks none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.states import Cause, Decision, JobState, Outcome, TaskState
from tests.chaos.checker import RULES, check, executions
from tests.chaos.history import EndSeen, Harm, History, Line, Sent, Strike
from tests.chaos.table import markdown

J = JobId("default", "one", 1)
FIRST, SECOND = AttemptId(J, 0, 1), AttemptId(J, 0, 2)


def _end(a: AttemptId, **more: object) -> End:
    end = End(
        nonce=f"n-{a}",
        attempt=str(a),
        outcome=Outcome.COMPLETED,
        decision=Decision.FINAL,
        state=TaskState.COMPLETED,
        reason="Exited with code 0",
        exit_code=0,
        worker="w1",
        claimed_at=100.0,
        by="w1",
        budgets=Budgets(machine=1),
    )
    return replace(end, **more)  # type: ignore[arg-type]


def _sound() -> History:
    """One job whose first attempt lost its supervisor, after which a tick ended it, and whose second one completed."""
    lost = _end(
        FIRST,
        outcome=Outcome.DOWN,
        decision=Decision.RETRY,
        state=TaskState.PENDING,
        cause=Cause.MACHINE_LOST,
        exit_code=None,
        by="tick",
    )
    sent = Sent("one", "plain", "r", 1, frozenset({JobState.COMPLETED}), 99.0, id=J, acknowledged_at=99.5)
    sent.state = JobState.COMPLETED
    return History(
        sent=[sent],
        lines=[
            Line(FIRST, 1, "start", 101.0),
            Line(FIRST, 1, "done", 150.0),
            Line(SECOND, 2, "start", 140.0),
            Line(SECOND, 2, "done", 142.0),
        ],
        ends={FIRST: EndSeen(lost, b"1", 139.0), SECOND: EndSeen(_end(SECOND, claimed_at=139.5), b"2", 143.0)},
        jobs_seen={J},
        standing={J},
        strikes=[Strike(Harm.MACHINE_PAUSED, 102.0, "w1", frozenset({str(FIRST)}), until=162.0)],
    )


def _second(history: History, **more: object) -> None:
    history.ends[SECOND].end = replace(history.ends[SECOND].end, **more)  # type: ignore[arg-type]


def _forgotten(history: History) -> None:
    history.sent[0].state = None


def _never_submitted(history: History) -> None:
    history.lines.append(Line(AttemptId(JobId("default", "two", 1), 0, 1), 3, "start", 103.0))


def _started_after_its_deletion(history: History) -> None:
    history.buried_at[J] = 120.0


def _end_changed(history: History) -> None:
    history.ends[SECOND].others.append(b"3")


def _final_twice(history: History) -> None:
    history.ends[FIRST].end = replace(history.ends[FIRST].end, decision=Decision.FINAL)


def _completed_and_never_done(history: History) -> None:
    history.lines = [line for line in history.lines if line.pid == 1]


def _started_again(history: History) -> None:
    history.lines.append(Line(SECOND, 4, "start", 141.0))


def _nobody_struck(history: History) -> None:
    history.strikes.clear()


def _side_by_side(history: History) -> None:
    history.ends[FIRST].end = replace(history.ends[FIRST].end, by="w1")


def _cancel_forgotten(history: History) -> None:
    history.sent[0].asked_at = history.sent[0].cancelled_at = 110.0


def _cancel_unheard(history: History) -> None:
    """Its last attempt ran at the cancel, and went on for twenty seconds more though nothing was in its way."""
    history.sent[0].asked_at = history.sent[0].cancelled_at = 139.0
    history.strikes.clear()
    _second(history, ended_at=160.0)


def _key_rewritten(history: History) -> None:
    history.rewritten.append("status/default/one.1/verdict.json")


def _gone(history: History) -> None:
    history.standing.clear()


def _ended_after_its_final_end(history: History) -> None:
    third = SECOND.next
    history.ends[third] = EndSeen(_end(third, decision=Decision.RETRY), b"3", 150.0)


def _reported_lost(history: History) -> None:
    history.ends[FIRST].end = replace(history.ends[FIRST].end, by="w1")
    history.strikes.clear()


def _spent_twice(history: History) -> None:
    _second(history, budgets=Budgets(machine=2))


def _failed(history: History) -> None:
    history.sent[0].state = JobState.FAILED


def _died(history: History) -> None:
    history.ended_by_themselves.append("w1 ended by itself with 1")


def _left_behind(history: History) -> None:
    history.fsck.append("claim-of-ended running/…")


def _awaited(history: History) -> JobId:
    """Another job of one task, which ended at 145."""
    other = JobId("default", "other", 1)
    ended = _end(AttemptId(other, 0, 1), ended_at=145.0, budgets=Budgets())
    history.ends[AttemptId(other, 0, 1)] = EndSeen(ended, b"4", 145.0)
    return other


def _waiter_started_early(history: History) -> None:
    history.sent[0].after = _awaited(history)


def _group_started_early(history: History) -> None:
    history.sent[0].tasks, history.sent[0].needs = 2, {0: (1,)}


def _child_started_late(history: History) -> None:
    history.sent[0].parent = _awaited(history)
    history.lines.append(Line(SECOND.next, 5, "start", 170.0))


def _moved_by_nobody(history: History) -> None:
    _second(history, cause=Cause.MOVED, outcome=Outcome.CANCELLED)


def _put_back_by_nobody(history: History) -> None:
    _second(history, cause=Cause.REQUEUED, outcome=Outcome.CANCELLED)


def _move_that_was_charged(history: History) -> None:
    _second(history, cause=Cause.MOVED, outcome=Outcome.CANCELLED, budgets=Budgets(machine=2))


def _checkpoint_of_nobody(history: History) -> None:
    history.lines += [Line(FIRST, 1, "kept 3", 102.0), Line(SECOND, 2, "resumed 5", 141.0)]


BROKEN: dict[str, tuple[Callable[[History], None], ...]] = {
    "lost": (_forgotten, _gone),
    "unexpected": (_never_submitted, _started_after_its_deletion),
    "committed twice": (_end_changed, _final_twice, _key_rewritten, _ended_after_its_final_end),
    "ends that are not true": (_completed_and_never_done,),
    "attempts started twice": (_started_again,),
    "executed twice, unexplained": (_nobody_struck,),
    "attempts side by side, unexplained": (_side_by_side,),
    "stops dropped": (_cancel_forgotten, _cancel_unheard),
    "healthy tasks reaped": (_nobody_struck,),
    "healthy tasks reported lost": (_reported_lost,),
    "budget mismatches": (_spent_twice,),
    "jobs that ended otherwise": (_failed,),
    "waiters that did not wait": (_waiter_started_early, _group_started_early),
    "children after their parents": (_child_started_late,),
    "attempts stopped unasked": (_moved_by_nobody, _put_back_by_nobody),
    "orders that spent something": (_move_that_was_charged,),
    "checkpoints of nobody": (_checkpoint_of_nobody,),
    "processes that ended by themselves": (_died,),
    "fsck findings": (_left_behind,),
}


def test_every_rule_has_a_history_that_breaks_it() -> None:
    assert set(BROKEN) == set(RULES)


def test_sound_history_breaks_no_rule_and_explains_what_ran_twice() -> None:
    history = _sound()
    assert {name: found for name, found in check(history).items() if found} == {}
    assert [(a, explained) for a, _, explained in executions(history)] == [(FIRST, True)]
    assert "| executed twice | 1 (1 Down, machine-lost, by tick, machine paused for 9 TTL) |" in markdown(history)


@pytest.mark.parametrize(
    ("rule", "break_it"),
    [(rule, one) for rule, broken in BROKEN.items() for one in broken],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_broken_history_is_caught(rule: str, break_it: Callable[[History], None]) -> None:
    history = _sound()
    break_it(history)
    assert check(history)[rule]
