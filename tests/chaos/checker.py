"""The rules a history must keep, one function each. Each yields a sentence for what it finds broken.

What ran is known from the effect log, what was decided from the end records, and what was struck from the diary: none
of the three asks the code under test. Explanations are looked for only where a rule allows one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from stado_like.job.keys import AttemptId
from stado_like.job.records import End
from stado_like.job.states import Cause, Decision, JobState, Outcome
from tests.chaos.company import COMPANY
from tests.chaos.history import DEAFENING, OF_A_LAUNCH, OF_AN_ATTEMPT, SILENCING, Harm, History, Sent, Strike

Rule = Callable[[History], Iterator[str]]

TTL_S = 10.0
FENCED_WITHIN_S = TTL_S / 2 + 5.0
"""A gate is asked again before exec when its claim is older than TTL/2; the rest is a loaded machine."""
HEARD_WITHIN_S = 2.0
FELT_S = 3 * TTL_S + 15.0
"""How long after it was taken back a fault still explains what a tick decided: Stale, then Down."""


def lost(history: History) -> Iterator[str]:
    """Every job that was acknowledged ended, unless somebody deleted it."""
    for one in history.acknowledged:
        if one.delete_asked_at or one.id is None:
            continue
        if one.id not in history.standing:
            yield f"{one.id} was acknowledged, and its job is gone"
        elif one.state is None:
            yield f"{one.id} ({one.kind}) never ended"


def unexpected(history: History) -> Iterator[str]:
    """Nothing ran that nobody submitted, and nothing started long after its job was deleted."""
    tasks = {one.id: one.tasks for one in history.acknowledged}
    for line in history.lines:
        if line.what != "start":
            continue
        j = line.attempt.job
        if j not in tasks and j not in history.jobs_seen:
            yield f"{line.attempt} ran, and nobody submitted its job"
        elif line.attempt.rank >= tasks.get(j, line.attempt.rank + 1):
            yield f"{line.attempt} ran, and its job has {tasks[j]} tasks"
        buried = history.buried_at.get(j)
        if buried is not None and line.at > buried + FENCED_WITHIN_S:
            yield f"{line.attempt} started {line.at - buried:.1f} s after its job was deleted"


def committed_twice(history: History) -> Iterator[str]:
    """One end per attempt, whose bytes never change; one final end per task, and nothing after it."""
    for a, seen in sorted(history.ends.items()):
        if seen.others:
            yield f"the end of {a} changed after it stood"
    for key in history.rewritten:
        yield f"{key} changed after it stood"
    for attempts in history.by_task().values():
        finals = [a for a in attempts if a in history.ends and history.ends[a].end.is_final]
        if len(finals) > 1:
            yield f"several final ends: {', '.join(map(str, finals))}"
        later = [a for a in attempts if finals and a in history.ends and a > finals[0]]
        if later:
            yield f"{later[0]} ended after {finals[0]} was final"


def ends_tell_the_truth(history: History) -> Iterator[str]:
    """An attempt recorded as exit 0 has done its work, and one recorded as exit 3 has failed at the end of it."""
    lines = history.by_attempt()
    for a, seen in sorted(history.ends.items()):
        said = {line.what for line in lines.get(a, [])}
        if seen.end.outcome is Outcome.COMPLETED and "done" not in said:
            yield f"{a} is recorded as Completed, and it only said {sorted(said)}"
        if seen.end.exit_code == 3 and "fail" not in said:
            yield f"{a} is recorded with exit code 3, and it only said {sorted(said)}"


def started_twice(history: History) -> Iterator[str]:
    """An attempt is started once."""
    starts = Counter(line.attempt for line in history.lines if line.what == "start")
    for a, count in sorted(starts.items()):
        if count > 1:
            yield f"{a} was started {count} times"


def executions(history: History) -> Iterator[tuple[AttemptId, str, bool]]:
    """Work that was done once more than was committed: the attempt, why, and whether that is an explanation."""
    done = {line.attempt for line in history.lines if line.what == "done"}
    for attempts in history.by_task().values():
        finished = [a for a in attempts if a in done]
        if len(finished) < 2:
            continue
        committed = [a for a in finished if a in history.ends and history.ends[a].end.outcome is Outcome.COMPLETED]
        for a in finished:
            if a in committed[:1]:
                continue
            yield _why_once_more(history, a)


def _why_once_more(history: History, a: AttemptId) -> tuple[AttemptId, str, bool]:
    seen = history.ends.get(a)
    if seen is None:
        return a, "no end record", False
    end = seen.end
    by = "tick" if end.by == "tick" else "its own worker"
    why = f"{end.outcome.value}, {end.cause.value or 'exit 0'}, by {by}"
    struck = [strike.harm.value for strike in history.strikes if str(a) in strike.attempts]
    if end.cause is Cause.FAILURE and Harm.TASK_KILLED.value in struck:
        return a, f"{why}, its process was killed after its last line", True
    lost_one = end.cause in (Cause.MACHINE_LOST, Cause.UNDELIVERED)
    explained = lost_one and (end.by != "tick" or explanation(history, a, end) is not None)
    stopped = end.cause in (Cause.REQUESTED, Cause.REQUEUED, Cause.MOVED)
    return a, f"{why}, {struck[-1] if struck else 'not struck itself'}", explained or stopped


def executed_twice_unexplained(history: History) -> Iterator[str]:
    for a, why, explained in executions(history):
        if not explained:
            yield f"{a} did its work once more: {why}"


def overlapping(history: History) -> Iterator[str]:
    """An attempt runs beside the one before it only where a tick had to guess that the machine was lost."""
    lines = history.by_attempt()
    for attempts in history.by_task().values():
        for a in attempts:
            before = a.previous
            if before is None or a not in lines or before not in lines:
                continue
            beside_s = lines[before][-1].at - lines[a][0].at
            seen = history.ends.get(before)
            if beside_s > 0 and (seen is None or seen.end.by != "tick"):
                by = seen.end.by if seen is not None else "nobody"
                yield f"{before}, ended by {by}, ran beside {a} for {beside_s:.2f} s"


def stops_dropped(history: History) -> Iterator[str]:
    """An acknowledged cancel ends its job as Cancelled and lets nothing start after it; so does a stop for its task."""
    starts = [line for line in history.lines if line.what == "start"]
    for one in history.acknowledged:
        if one.id is None or one.deleted_at:
            continue
        if one.cancelled_at and one.state is not JobState.CANCELLED and not _was_over_first(history, one):
            yield f"{one.id} was cancelled, and is {one.state.value if one.state else 'not over'}"
        for line in starts:
            if line.attempt.job != one.id:
                continue
            asked = one.stopped_at.get(line.attempt.rank) or one.cancelled_at
            if asked and line.at > asked + FENCED_WITHIN_S:
                yield f"{line.attempt} started {line.at - asked:.1f} s after it was stopped"
        for rank in one.stopped_at:
            if history.final_end(one.id, rank) is None and not one.cancelled_at and one.state is None:
                yield f"task {rank} of {one.id} was stopped, and has no final end"


def _was_over_first(history: History, one: Sent) -> bool:
    """A job of one task is what its last attempt was: that may have ended by itself before its supervisor heard of the
    cancel, at its next look or, in an outage, after it."""
    assert one.id is not None
    a = history.final_end(one.id, 0)
    if a is None or one.several:
        return False
    ended_at = history.ends[a].end.ended_at
    deaf = any(
        strike.covers(one.cancelled_at, ended_at, FENCED_WITHIN_S)
        and (strike.harm in DEAFENING or strike.worker == history.ends[a].end.worker)
        for strike in history.strikes
    )
    return deaf or ended_at <= one.cancelled_at + TTL_S / 4 + HEARD_WITHIN_S


def explanation(history: History, a: AttemptId, end: End) -> Strike | None:
    """What was done to the machine or the supervisor of an attempt that a tick declared dead, or to its launch."""
    seen_at = history.ends[a].seen_at
    for strike in sorted(history.strikes, key=lambda one: (one.harm not in SILENCING, one.harm not in OF_AN_ATTEMPT)):
        if not strike.covers(end.claimed_at, seen_at, FELT_S):
            continue
        of_machine = strike.harm in SILENCING and strike.worker == end.worker
        of_attempt = strike.harm in OF_AN_ATTEMPT and str(a) in strike.attempts
        of_launch = strike.harm in OF_A_LAUNCH and strike.worker == end.worker and end.cause is Cause.UNDELIVERED
        if of_machine or of_attempt or of_launch:
            return strike
    return None


def reaped(history: History) -> list[AttemptId]:
    dead = (Cause.MACHINE_LOST, Cause.UNDELIVERED)
    return [a for a, seen in sorted(history.ends.items()) if seen.end.by == "tick" and seen.end.cause in dead]


def healthy_reaped(history: History) -> Iterator[str]:
    """A tick declares dead only what was killed, stopped, or on a machine that was away."""
    for a in reaped(history):
        if explanation(history, a, history.ends[a].end) is None:
            yield f"{a} was reaped ({history.ends[a].end.reason}), and nothing had happened to it"


def healthy_lost(history: History) -> Iterator[str]:
    """A worker reports its own attempt as lost only where its supervisor was killed."""
    for a, seen in sorted(history.ends.items()):
        if seen.end.cause is not Cause.MACHINE_LOST or seen.end.by == "tick":
            continue
        killed = any(
            strike.covers(seen.end.claimed_at, seen.seen_at, FELT_S)
            and (
                (strike.harm in OF_AN_ATTEMPT and str(a) in strike.attempts)
                or (strike.harm in SILENCING and strike.worker == seen.end.worker)
                or (strike.harm is Harm.DISK_FULL and strike.worker == seen.end.worker)
            )
            for strike in history.strikes
        )
        if not killed:
            yield f"{a} was ended as lost by {seen.end.by} ({seen.end.reason}), and nobody had killed its supervisor"


def budgets_wrong(history: History) -> Iterator[str]:
    """What a task has spent is what its ends spent, each once. (Nothing runs here for ten minutes, which resets it.)"""
    for attempts in history.by_task().values():
        failures = machine = 0
        for a in attempts:
            seen = history.ends.get(a)
            if seen is None:
                break
            end = seen.end
            if end.decision is Decision.RETRY:
                failures += end.cause is Cause.FAILURE
                machine += end.cause is Cause.MACHINE_LOST
            if (end.budgets.failures, end.budgets.machine) != (failures, machine):
                yield f"{a} says {end.budgets}, and {failures} failures and {machine} losses were seen"
                break


def outcomes(history: History) -> Iterator[str]:
    """A job that nobody stopped ends as its program says."""
    for one in history.acknowledged:
        if one.state is not None and not one.asked_at and one.state not in one.may_end:
            yield f"{one.id} ({one.kind}) is {one.state.value}{_last(history, one)}"


def _last(history: History, one: Sent) -> str:
    ends = [seen.end for a, seen in sorted(history.ends.items()) if a.job == one.id]
    return f": {ends[-1].reason}" if ends else ""


def ended_by_themselves(history: History) -> Iterator[str]:
    yield from history.ended_by_themselves


def fsck(history: History) -> Iterator[str]:
    yield from history.fsck


RULES: dict[str, Rule] = {
    "lost": lost,
    "unexpected": unexpected,
    "committed twice": committed_twice,
    "ends that are not true": ends_tell_the_truth,
    "attempts started twice": started_twice,
    "executed twice, unexplained": executed_twice_unexplained,
    "attempts side by side, unexplained": overlapping,
    "stops dropped": stops_dropped,
    "healthy tasks reaped": healthy_reaped,
    "healthy tasks reported lost": healthy_lost,
    "budget mismatches": budgets_wrong,
    "jobs that ended otherwise": outcomes,
    **COMPANY,
    "processes that ended by themselves": ended_by_themselves,
    "fsck findings": fsck,
}


def check(history: History) -> dict[str, list[str]]:
    """Rule -> what broke it."""
    return {name: list(rule(history)) for name, rule in RULES.items()}
