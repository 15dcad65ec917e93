"""`stado job show`: everything a reader knows of one job. A finished one-task job costs four requests."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.job_text import picture
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.pass_obj
def command(context: Context, job: str) -> None:
    """Show JOB: state, reason, tasks, attempts, history, last failure.

    JOB is NAME, WORKSPACE/NAME, or either with .INCARNATION for an earlier job of the same name.
    """
    from stado_like.reading.shapes import job_json

    view = open_client(context).view(job)
    context.output.value(job_json(view), picture(view, history=True))
