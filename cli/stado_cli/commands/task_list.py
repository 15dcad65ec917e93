"""`stado task list`: every task of a job."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.job_text import TASK_COLUMNS, task_rows
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.pass_obj
def command(context: Context, job: str) -> None:
    """List the tasks of JOB with state, worker, attempt and reason."""
    from stado_like.reading.shapes import task_json

    view = open_client(context).view(job)
    rows = [task_json(one) for one in view.tasks] if context.settings.json else task_rows(list(view.tasks))
    context.output.table(TASK_COLUMNS, rows)
