"""`stado job rerun`: a new job from the stored specification of another."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.option("-J", "--name", default="", help="The new job's name. Default: the next free one, train-2 after train.")
@click.option("--from-checkpoint", is_flag=True, help="Each task goes on from the newest checkpoint of its rank.")
@click.pass_obj
def command(context: Context, job: str, name: str, from_checkpoint: bool) -> None:
    """Submit JOB again, whatever became of it, as a new job. Prints the new name."""
    client = open_client(context)
    again = client.rerun(job, name, from_checkpoint=from_checkpoint)
    context.output.value({"name": again.name, "id": str(again.id), "incarnation": again.id.k}, again.name)
