"""The keys of gangs: what was decided for all members of a job at once. `keys` has all others.

    gangs/<J>/<g>/placement.json        who runs where in generation g
    gangs/<J>/<g>/join.<rank>.<n>.json  one member that came later
    gangs/<J>/<g>/ready.<rank>.<n>      this attempt waits at the barrier
    gangs/<J>/<g>/barrier.json          the verdict at the barrier: go, or abort

`<g>` is the generation, from 1, in six digits: each restart of the whole is another one. Everything by which members
find each other lies under it, so none ever meets what an earlier generation left.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.job.ids import AttemptId, JobId, bad, is_number


def of_job(j: JobId) -> str:
    return f"gangs/{j.folder}/"


def of_generation(j: JobId, g: int) -> str:
    return f"{of_job(j)}{g:06d}/"


def placement(j: JobId, g: int) -> str:
    return f"{of_generation(j, g)}placement.json"


def barrier(j: JobId, g: int) -> str:
    return f"{of_generation(j, g)}barrier.json"


def join(a: AttemptId, g: int) -> str:
    return f"{of_generation(a.job, g)}join.{a.rank:05d}.{a.n:06d}.json"


def ready(a: AttemptId, g: int) -> str:
    return f"{of_generation(a.job, g)}ready.{a.rank:05d}.{a.n:06d}"


@dataclass(frozen=True, slots=True)
class GangKey:
    """`kind` is placement | barrier | join | ready; the last two concern an attempt."""

    kind: str
    g: int
    attempt: AttemptId | None = None


def parse(j: JobId, key: str) -> GangKey:
    """A key below `of_job(j)`. Raises `BadRecord`."""
    rest = key[len(of_job(j)) :] if key.startswith(of_job(j)) else ""
    number, _, name = rest.partition("/")
    if is_number(number, 6) and int(number) > 0:
        g = int(number)
        if name in ("placement.json", "barrier.json"):
            return GangKey(name.removesuffix(".json"), g)
        kind, *parts = name.removesuffix(".json").split(".")
        named = name.endswith(".json") == (kind == "join")
        if (
            kind in ("join", "ready")
            and named
            and len(parts) == 2
            and is_number(parts[0], 5)
            and is_number(parts[1], 6)
        ):
            return GangKey(kind, g, AttemptId(j, int(parts[0]), int(parts[1])))
    raise bad(key, f"a gang's key of {j}")
