"""`stado task show`: one task, without reading the job's others."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import one_rank, open_client


@click.command()
@click.argument("job")
@click.argument("rank")
@click.pass_obj
def command(context: Context, job: str, rank: str) -> None:
    """Show task RANK of JOB: state, attempts, history, last failure."""
    from stado_like.reading.shapes import task_json

    context.output.value(task_json(open_client(context).task(job, one_rank(rank))))
