"""`stado worker cordon`: machines that take nothing new."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.machines import set_on
from stado_cli.opening import open_client


@click.command()
@click.argument("workers", nargs=-1, required=True, metavar="ID...")
@click.option("--reason", default="", help="Why; jobs that wait show it.")
@click.pass_obj
def command(context: Context, workers: tuple[str, ...], reason: str) -> None:
    """Let each worker ID take nothing new; what runs there goes on. It stays so until `uncordon`, across restarts."""
    client = open_client(context)
    set_on(context, client, workers, lambda worker: client.operate.cordon(worker, reason), "cordoned")
