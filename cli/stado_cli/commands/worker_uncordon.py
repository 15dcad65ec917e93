"""`stado worker uncordon`: machines that work again."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.machines import set_on
from stado_cli.opening import open_client


@click.command()
@click.argument("workers", nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def command(context: Context, workers: tuple[str, ...]) -> None:
    """Let each worker ID take work again: one that was cordoned or drained, and one that has closed itself."""
    client = open_client(context)
    set_on(context, client, workers, client.operate.uncordon, "takes work")
