"""`stado job list`: unfinished jobs and the last day's, newest first; from listings, so that an old bucket answers
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from stado_cli.context import Context
from stado_cli.job_text import STYLES, row_counts
from stado_cli.opening import kept_rows, set_aside, states
from stado_cli.output import Column, column, times
from stado_like.reading.job_row import row_json

if TYPE_CHECKING:
    from stado_like.reading.job_row import JobRow

DELETED = "Deleted"
"""No state of a job: what a list shows of a tombstone."""


@click.command()
@click.option("--state", "wanted_states", multiple=True, metavar="S", help="Only jobs in this state; may be repeated.")
@click.option("-w", "--workspace", default="", help="Only this workspace. Default: all.")
@click.option("--label", "label", multiple=True, metavar="K=V", help="Only jobs with this label; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many, the newest.")
@click.option("--all", "every", is_flag=True, help="Finished ones of any age too.")
@click.option("--deleted", is_flag=True, help="What was deleted instead, as long as tombstones are kept.")
@click.option("--no-cache", is_flag=True, help="Ask for everything again. Also: STADO_CACHE=off.")
@click.pass_obj
def command(
    context: Context,
    wanted_states: tuple[str, ...],
    workspace: str,
    label: tuple[str, ...],
    limit: int | None,
    every: bool,
    deleted: bool,
    no_cache: bool,
) -> None:
    """List jobs, newest first: unfinished ones, and those submitted in the last day.

    Exit code 6 when a record could not be read: the rest is shown.
    """
    # Not through `Client`: what that loads to submit and cancel takes longer than a list.
    from stado_like.bucket.bucket import Bucket
    from stado_like.reading.listing import Wanted, stream_jobs

    if deleted:
        _deleted(context, workspace, limit)
        return
    bucket = Bucket(context.store)
    wanted = Wanted(
        workspace=workspace, states=states(wanted_states), labels=_labels(label), limit=limit or 0, every=every
    )
    unread: dict[str, str] = {}
    found = stream_jobs(bucket, wanted, unread, kept_rows(context, cache=not no_cache))
    here = context.settings.workspace
    columns = [
        Column("JOB", lambda row: row["name"] if row["workspace"] == here else f"{row['workspace']}/{row['name']}"),
        Column("STATE", lambda row: row["state"], style=lambda row: STYLES.get(row["state"], "")),
        column("TASKS", "_tasks", right=True),
        column("PRIORITY", "priority", right=True),
        Column("AGE", lambda row: times.duration(max(0.0, row["_age"])), right=True),
        column("REASON", "reason"),
    ]
    rows = map(row_json, found) if context.settings.json else _shown(found, bucket.now)
    context.output.table(columns, rows, empty="No jobs; `--all` shows finished ones of any age.")
    set_aside(unread)


def _shown(found: Iterable[JobRow], now: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """With what only people are shown."""
    at = 0.0
    for one in found:
        at = at or now()
        yield {**row_json(one), "_tasks": row_counts(one), "_age": at - one.created_at}


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    if not given:
        return {}
    from stado_like.asking.variables import labels

    return labels(given)


def _deleted(context: Context, workspace: str, limit: int | None) -> None:
    from stado_like.bucket.bucket import Bucket
    from stado_like.reading.listing import list_deleted

    found, unread = list_deleted(Bucket(context.store), workspace)
    rows = [
        {
            "name": j.name,
            "workspace": j.workspace,
            "incarnation": j.k,
            "state": DELETED,
            "ended_as": stone.state or None,
            "created_at": times.iso(stone.created_ms / 1000) if stone.created_ms else None,
            "deleted_at": times.iso(stone.at),
            "deleted_by": stone.by or None,
        }
        for j, stone in found[:limit]
    ]
    columns = [
        column("JOB", "name"),
        column("WORKSPACE", "workspace"),
        column("INCARNATION", "incarnation", right=True),
        column("STATE", "state"),
        column("ENDED AS", "ended_as"),
        column("DELETED AT", "deleted_at"),
        column("BY", "deleted_by"),
    ]
    context.output.table(columns, rows, empty="Nothing was deleted, as far as tombstones tell.")
    set_aside(unread)
