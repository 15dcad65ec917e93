"""`stado job progress`: each task's attempt, its restarts by cause, how far it says it is, and what is the matter with
it."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.job_text import progress
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.pass_obj
def command(context: Context, job: str) -> None:
    """Show attempts and restarts of JOB: F after its own failures, M after faults of machines, P after preemptions.

    NOTE: how far a task says it is (STADO_PROGRESS), whether it is stalled or behind the others, how its previous
    attempt ended.
    """
    from stado_like.reading.shapes import progress_json

    view = open_client(context).view(job)
    context.output.value(progress_json(view), progress(view))
