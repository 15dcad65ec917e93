"""`stado queue pause`: no worker claims anything until the queue is resumed."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_cli.output import times


@click.command()
@click.option("--reason", default="", help="Why; jobs that wait show it.")
@click.pass_obj
def command(context: Context, reason: str) -> None:
    """Let no worker claim anything. What runs goes on, and jobs can be submitted and cancelled as ever."""
    standing, ours = open_client(context).operate.pause(reason)
    shown = {
        "paused": True,
        "reason": standing.reason or None,
        "by": standing.by or None,
        "at": times.iso(standing.at or None),
        "was_paused": not ours,
    }
    text = f"the queue is paused: {standing.why}"
    context.output.value(shown, text if ours else f"the queue was paused before: {standing.why}")
