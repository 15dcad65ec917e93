"""`stado queue resume`: workers claim again."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Let workers claim again after `queue pause`."""
    stood = open_client(context).operate.resume()
    text = "the queue goes on" if stood else "the queue was not paused"
    context.output.value({"paused": False, "was_paused": stood}, text)
