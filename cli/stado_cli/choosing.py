"""Which jobs a command is about: those named, or all that match, after asking."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from stado_cli.context import Context
from stado_cli.opening import kept_rows, states
from stado_like.errors import UsageError

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.job.keys import JobId


def chosen(
    context: Context,
    client: Client,
    named: tuple[str, ...],
    wanted_states: tuple[str, ...],
    label: tuple[str, ...],
    *,
    over: bool,
    yes: bool,
    verb: str,
    older_than_s: float | None = None,
) -> list[JobId]:
    """`over`: only jobs that have ended, or only those that have not. Raises `UsageError`, `Abort` when a person says
    no.
    """
    matching = bool(wanted_states or label or older_than_s is not None)
    if named and matching:
        raise UsageError("both jobs and a filter were given", "Name the jobs, or say which ones match.")
    if named:
        return [client.resolve(one) for one in named]
    if not matching:
        raise UsageError(f"no job to {verb} was given", f"`stado job {verb} JOB`, or a filter: --state Running.")
    from stado_like.asking.variables import labels
    from stado_like.reading.listing import Wanted

    wanted = Wanted(
        workspace=client.workspace,
        states=states(wanted_states),
        labels=labels(label),
        every=over,
        older_than_s=older_than_s or 0.0,
    )
    client.kept = kept_rows(context)
    ids = [row.id for row in client.listing(wanted).rows if row.is_over is over]
    if ids and not yes:
        _ask(context, ids, verb)
    if not ids:
        context.output.note(f"No job in workspace {client.workspace} matches.")
    return ids


def _ask(context: Context, ids: list[JobId], verb: str) -> None:
    shown = ", ".join(j.name for j in ids[:10]) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
    if not os.isatty(0):
        raise UsageError(f"this would {verb} {len(ids)} jobs: {shown}", "Add --yes to do it without being asked.")
    click.confirm(f"{verb.capitalize()} {len(ids)} jobs ({shown})?", abort=True, err=True)
