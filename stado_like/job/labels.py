"""The labels that a job and its tasks carry: those of the document, and those that follow from it.

What follows is derived by whoever looks and stored nowhere: a document keeps what was submitted, and keys under
`astraeus.io/` are refused there, so that nobody can take another's name.
"""

from __future__ import annotations

from typing import Final

from stado_like.job.terms import Terms, group_rank

CREATED_BY: Final = "astraeus.io/created-by"
JOB: Final = "job.astraeus.io/name"
RANK: Final = "job.astraeus.io/replica-index"
GROUP: Final = "job.astraeus.io/group"
GROUP_RANK: Final = "job.astraeus.io/group-replica-index"


def of_job(terms: Terms, submitted_by: str) -> dict[str, str]:
    """The document's, and who submitted it."""
    return {**terms.labels, **({CREATED_BY: submitted_by} if submitted_by else {})}


def of_task(terms: Terms, submitted_by: str, rank: int) -> dict[str, str]:
    """The job's, and which of its tasks this is."""
    found = {**of_job(terms, submitted_by), JOB: terms.name, RANK: str(rank)}
    group = terms.group_of(rank).name if rank < terms.tasks else ""
    if group:
        found |= {GROUP: group, GROUP_RANK: str(group_rank(terms, rank))}
    return found


def is_of_tasks(name: str) -> bool:
    """Whether only tasks carry this label, and not their job."""
    return name in (JOB, RANK, GROUP, GROUP_RANK)


def is_of_a_task(terms: Terms, name: str, value: str) -> bool:
    """Whether a derived label that only tasks carry is one of some task of this job."""
    if name == JOB:
        return value == terms.name
    if name == GROUP:
        return bool(value) and terms.group(value) is not None
    most = {RANK: terms.tasks, GROUP_RANK: max(one.tasks for one in terms.groups) if terms.groups[0].name else 0}
    return value.isdecimal() and value == str(int(value)) and int(value) < most.get(name, 0)
