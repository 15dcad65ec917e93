"""A job once more, as a new one: under which name, and from where its tasks go on.

Not obvious because a name may be taken between looking for a free one and submitting, and because a checkpoint must be
found before the new job exists: a job that quietly began from nothing would not be what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from stado_like.asking.naming import next_name
from stado_like.bucket import checkpoints
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, Refused
from stado_like.job import checkpoint, keys
from stado_like.job.ids import JobId
from stado_like.job.terms import terms_of
from stado_like.store.protocol import list_all

J = TypeVar("J")
TRIES = 5


def under_a_free_name(bucket: Bucket, document: Mapping[str, Any], submit: Callable[[dict[str, Any]], J]) -> J:
    """Submit under the next free name: `train` -> `train-2`. Raises `Conflict` when others took each one found."""
    metadata = document["metadata"]
    for _ in range(TRIES):
        taken = {_name_of(row.key) for row in list_all(bucket.store, keys.jobs_of(metadata["workspace"]))}
        free = next_name(metadata["name"], frozenset(taken))
        try:
            return submit(renamed(document, free))
        except Conflict:
            continue  # somebody took the name in between
    raise Conflict(f"no free name was found for another {metadata['name']}", "Give one: --name.", code="JOB_EXISTS")


def stripped(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what held for the first run only: whose child it was, what it waited for, and its moment. That it is
    resident, or ends its own agent, is what the job is."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "parent"}
    spec = {name: value for name, value in document["spec"].items() if name not in ("after", "deadline")}
    return {**document, "metadata": metadata, "spec": spec}


def renamed(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    from stado_like.job.spec.validate import validate

    return validate({**document, "metadata": {**document["metadata"], "name": name}})


def from_checkpoint(bucket: Bucket, j: JobId, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of `j`, whose tasks start from what those of `j` saved. Raises `Refused` where that is nothing."""
    terms = terms_of(document)
    every = [checkpoint.wanted(terms.for_rank(rank).checkpoint) for rank in range(terms.tasks)]
    if not any(every):
        raise Refused(
            f"the job {j} has no checkpoint.dir, so nothing of it was kept to go on from",
            f"Run it again from its beginning: `stado job rerun {j.name}`.",
            code="NO_CHECKPOINT",
        )
    if not checkpoints.ranks_with_one(bucket, j, [one.prefix if one is not None else "" for one in every]):
        raise Refused(
            f"no task of the job {j} has left a complete checkpoint",
            f"Run it again from its beginning: `stado job rerun {j.name}`.",
            code="NO_CHECKPOINT",
        )
    return {**document, "spec": {**document["spec"], "checkpoint_from": str(j)}}


def _name_of(key: str) -> str:
    return key.rsplit("/", 1)[-1].split(".", 1)[0]
