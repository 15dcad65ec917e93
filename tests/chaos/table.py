"""The last line of trust: what was struck, what ran, and what of it broke a rule, as a Markdown table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stado_like.job.keys import AttemptId
from stado_like.job.states import Cause
from tests.chaos.checker import check, executions, explanation, reaped
from tests.chaos.company import resumed
from tests.chaos.history import SILENCING, Harm, History

KILLING = {Harm.SUPERVISOR_KILLED, Harm.MACHINE_LOST}


def detections(history: History) -> dict[str, list[float]]:
    """Seconds from the death of a supervisor to the record that says so, by who found out."""
    found: dict[str, list[float]] = {"its own worker": [], "a tick": []}
    for a, seen in history.ends.items():
        if seen.end.cause is not Cause.MACHINE_LOST:
            continue
        struck = [one.at for one in history.strikes if one.harm in KILLING and str(a) in one.attempts]
        if struck:
            found["a tick" if seen.end.by == "tick" else "its own worker"].append(seen.seen_at - struck[0])
    return found


def _spread(times_s: list[float]) -> str:
    if not times_s:
        return "none"
    ordered = sorted(times_s)
    middle = ordered[len(ordered) // 2]
    return f"{len(ordered)}: {ordered[0]:.1f} / {middle:.1f} / {ordered[-1]:.1f} s"


def rows(history: History) -> list[tuple[str, str]]:
    broken = check(history)
    acknowledged = history.acknowledged
    struck = Counter(strike.harm.value for strike in history.strikes)
    by_tick = reaped(history)
    why_reaped = Counter(
        strike.harm.value if strike else "nothing"
        for strike in (explanation(history, a, history.ends[a].end) for a in by_tick)
    )
    twice = [(why, explained) for _, why, explained in executions(history)]
    starts = sum(1 for line in history.lines if line.what == "start")
    told = detections(history)
    return [
        ("ran, drained", f"{history.ran_s:.0f} s, {history.drained_s:.0f} s"),
        ("faults", str(len(history.strikes))),
        *((f"fault: {name}", str(count)) for name, count in sorted(struck.items())),
        *((f"network: {name}", str(count)) for name, count in sorted(history.network.items())),
        ("jobs submitted", str(len(history.sent))),
        ("jobs acknowledged", str(len(acknowledged))),
        ("jobs ended", str(sum(1 for one in acknowledged if one.state is not None))),
        (
            "jobs cancelled, tasks stopped",
            f"{_count(one.cancelled_at for one in acknowledged)}, {sum(len(one.stopped_at) for one in acknowledged)}",
        ),
        (
            "jobs deleted, names used again",
            f"{_count(one.deleted_at for one in acknowledged)}, "
            f"{sum(1 for one in acknowledged if one.id is not None and one.id.k > 1)}",
        ),
        ("attempts started, ended", f"{starts}, {len(history.ends)}"),
        ("attempts reaped by a tick", f"{len(by_tick)}{_listed(why_reaped)}"),
        ("executed twice", f"{len(twice)}{_listed(Counter(why for why, _ in twice))}"),
        (
            "put back by a person, moved off drained machines",
            f"{sum(1 for seen in history.ends.values() if seen.end.cause is Cause.REQUEUED)}, "
            f"{sum(1 for seen in history.ends.values() if seen.end.cause is Cause.MOVED)}",
        ),
        ("in company", _listed(Counter(one.kind for one in acknowledged if one.after or one.parent or one.needs))),
        ("attempts that went on from a checkpoint", str(resumed(history))),
        ("zombie commits refused", f"{len(history.refused)}{_listed(_standing(history))}"),
        ("longest that a fenced attempt ran on", f"{_ran_on_s(history):.1f} s"),
        ("detection by its own worker, min / median / max", _spread(told["its own worker"])),
        ("detection by a tick, min / median / max", _spread(told["a tick"])),
        ("machines away", str(sum(strike.harm in SILENCING for strike in history.strikes))),
        *((name, str(len(sentences))) for name, sentences in broken.items()),
    ]


def _standing(history: History) -> Counter[str]:
    """What stood where a late end was refused."""
    ends = [(history.ends[a].end, _on_a_full_disk(history, a)) for a in history.refused]
    by = {"tick": "a tick", "canceller": "a canceller", "settle": "whoever settled"}
    return Counter(
        f"{end.cause.value or 'exit 0'} by {by.get(end.by, 'its worker')}{', disk full' * full}" for end, full in ends
    )


def _on_a_full_disk(history: History, a: AttemptId) -> bool:
    """There `exit.json` could not be kept, so whoever carries on for a dead supervisor composes the end anew."""
    end = history.ends[a].end
    return any(
        one.harm is Harm.DISK_FULL and one.worker == end.worker and one.covers(end.claimed_at, end.ended_at, 15.0)
        for one in history.strikes
    )


def _ran_on_s(history: History) -> float:
    """From the sight of an end that another wrote to the last line of its attempt."""
    others = {a: seen.seen_at for a, seen in history.ends.items() if seen.end.by != seen.end.worker}
    return max((0.0, *(line.at - others[line.attempt] for line in history.lines if line.attempt in others)))


def _count(times: Iterable[float]) -> int:
    return sum(1 for one in times if one)


def _listed(counted: Counter[str]) -> str:
    return f" ({'; '.join(f'{count} {name}' for name, count in counted.most_common())})" if counted else ""


def markdown(history: History) -> str:
    lines = ["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows(history))]
    for name, sentences in check(history).items():
        lines += ["", f"{name}:", *(f"- {one}" for one in sentences)] if sentences else []
    return "\n".join(lines)
