"""`--dependency=afterok:prepare:fetch,afterany:clean` -> `after`: the jobs that must be over first.

Slurm names jobs by number; here a job has a name (or workspace.name.incarnation), so that is what a script has to
say. A word with a number alone is taken for a name, and said. What waits for something else than a job's end (`after`:
its start; `?`: any one of several) is refused, because the job would start too early; `singleton` and `aftercorr` are
said, because what is done instead is no earlier.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from stado_like.sbatch.directives import Directive

FORMS: Final = "afterok:JOB, afterany:JOB, afternotok:JOB; several jobs with : or , between"

_STATES: Final = {
    "afterok": "Completed",
    "afterany": "Ended",
    "afternotok": "Failed",
    "aftercorr": "Completed",
    "afterburstbuffer": "Ended",
}
_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def after(given: Directive, say: Callable[[Directive, str], None]) -> list[dict[str, Any]]:
    """The entries of `after`; `say` takes a note. Raises `UsageError`."""
    found: list[dict[str, Any]] = []
    if "?" in given.value:
        raise given.refused("waits for any one of several jobs, which is not possible here", FORMS)
    for piece in given.value.split(","):
        kind, *jobs = piece.strip().split(":")
        if kind == "singleton" and not jobs:
            say(given, "a job's name is taken until it is deleted, so a second one of that name does not start anyway")
            continue
        if not jobs:  # `--dependency=prepare`: Slurm's default kind
            kind, jobs = "afterany", [kind]
        if kind not in _STATES:
            raise given.refused(f"{kind!r} is not a kind of dependency that exists here", FORMS)
        if kind == "aftercorr":
            say(given, "each task waits for the whole of that job, not for its task of the same index")
        for job in jobs:
            if _JOB.fullmatch(job) is None:
                raise given.refused(f"{job!r} is not a job; variables are not expanded in #SBATCH lines", FORMS)
            if job.isdecimal():
                say(given, f"{job} is taken for a job's name: there are no job numbers here")
            found.append({"job": job, "state": _STATES[kind]})
    return found
