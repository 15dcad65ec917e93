"""What is to be reached, figure by figure, and whether it was: bounds against peers and floors of the same run.

A bound whose figures were not taken is told as such, never as reached and never as missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Results


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, in words. `reached`: None where the bound only asks for as much as can be."""

    found: str
    reached: bool | None


@dataclass(frozen=True, slots=True)
class Bound:
    """`judge` answers None when a figure that it needs was not taken."""

    what: str
    bound: str
    judge: Callable[[Results], Verdict | None]


def times(name: str, other: str, least: float) -> Callable[[Results], Verdict | None]:
    """At least `least` times another figure of the same rounds."""

    def judge(results: Results) -> Verdict | None:
        ratio = results.ratio(name, other)
        if ratio is None:
            return None
        return Verdict(f"{ratio:.2f} × ({results.told(name)} to {results.told(other)})", ratio >= least)

    return judge


def near(name: str, other: str) -> Callable[[Results], Verdict | None]:
    def judge(results: Results) -> Verdict | None:
        ratio = results.ratio(name, other)
        if ratio is None:
            return None
        return Verdict(f"{ratio:.2f} × ({results.told(name)} to {results.told(other)})", None)

    return judge


def least(name: str, value: float) -> Callable[[Results], Verdict | None]:
    return lambda results: Verdict(results.told(name), results.median(name) >= value) if results.has(name) else None


def most(*bounds: tuple[str, float]) -> Callable[[Results], Verdict | None]:
    """At most so much, of every one."""

    def judge(results: Results) -> Verdict | None:
        if not results.has(*(name for name, _ in bounds)):
            return None
        found = ", ".join(results.told(name) for name, _ in bounds)
        return Verdict(found, all(results.median(name) <= value for name, value in bounds))

    return judge


SINGLES = "500 × true, single jobs, directory in memory, no fsync"
BOUNDS = (
    Bound(SINGLES, "≥ 1.5 × HyperQueue's jobs of one task", times("singles", "hq.singles", 1.5)),
    Bound(SINGLES, "≥ 4 × RQ's fork worker", times("singles", "rq.singles", 4.0)),
    Bound(SINGLES, "≥ 100 × Slurm's jobs", times("singles", "slurm.singles", 100.0)),
    Bound(SINGLES, "≥ 100 × Ray's jobs", times("singles", "ray_jobs.singles", 100.0)),
    Bound(
        "the same on disk, every deciding record synced",
        "≥ Celery + Redis with AOF synced always",
        times("disk_singles", "celery.singles", 1.0),
    ),
    Bound(
        "5,000 × true as one array, directory in memory",
        "≥ 2.5 × HyperQueue's one job of 5,000 tasks",
        times("array", "hq.array", 2.5),
    ),
    Bound("the same", "as near as can be to Popen + session + log file", near("array", "popen")),
    Bound("SeaweedFS: single jobs", "≥ 60 jobs/s", least("s3_singles", 60.0)),
    Bound("SeaweedFS: one array", "≥ 200 tasks/s", least("s3_array", 200.0)),
    Bound("submit to first instruction, idle, p50, embedded", "≤ 30 ms", most(("start_p50", 30.0))),
    Bound("submit to first instruction, idle, p50, SeaweedFS", "≤ 80 ms", most(("s3_start_p50", 80.0))),
    Bound("one-task job without heartbeats, PUT", "≤ 4 and a ring", most(("job.puts", 4.0), ("job.rings", 1.0))),
    Bound("one-task job without heartbeats, GET and HEAD", "≤ 8", most(("job.gets", 8.0))),
    Bound("one rank of an array, PUT", "≤ 0.2", most(("rank.puts", 0.2))),
    Bound("idle worker, reaction within 1 s, a minute", "≤ 70 requests", most(("idle_minute", 70.0))),
    Bound("idle worker, reaction within 1 s, a day", "≤ $0.08", most(("idle_day", 0.08))),
    Bound(
        "tick, 100,000 queued, 100 changes",
        "≤ 115 LIST + 300 GET",
        most(("tick_100000.list", 115.0), ("tick_100000.gets", 300.0)),
    ),
    Bound("tick, 100,000 queued, 100 changes", "≤ 5 s", most(("tick_100000.seconds", 5.0))),
    Bound("tick, 10,000 queued, 100 changes", "≤ 1 s", most(("tick_10000.seconds", 1.0))),
    Bound("plan, 10,000 queued × 1,000 machines", "≤ 1 s", most(("plan_10000", 1.0))),
    Bound("stado --help", "≤ 70 ms", most(("help", 70.0))),
    Bound("stado job list, 1,000 jobs, embedded", "≤ 250 ms", most(("job_list", 250.0))),
    Bound("agent + nursery, resident", "≤ 55 MiB", most(("worker", 55.0))),
    Bound("agent + nursery, resident, on S3", "≤ 55 MiB", most(("s3_worker", 55.0))),
    Bound("one supervisor, resident", "≤ 8 MiB", most(("supervisor", 8.0))),
    Bound("one supervisor, resident, on S3", "≤ 8 MiB", most(("s3_supervisor", 8.0))),
)


def judged(results: Results) -> list[tuple[Bound, Verdict | None]]:
    return [(bound, bound.judge(results)) for bound in BOUNDS]
