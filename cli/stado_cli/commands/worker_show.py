"""`stado worker show`: one machine as its last broadcast tells it."""

from __future__ import annotations

import click

from stado_cli.commands.worker_list import worker_json
from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.argument("worker", metavar="ID")
@click.pass_obj
def command(context: Context, worker: str) -> None:
    """Show worker ID: what it has, what is free, what it runs, and how old that is. Exit code 3 when not there."""
    context.output.value(worker_json(open_client(context).worker(worker)))
