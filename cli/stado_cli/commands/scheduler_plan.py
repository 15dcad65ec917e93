"""`stado scheduler plan`: what the next tick would do, without doing it."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Read the store as a tick does and print its plan. Nothing is written."""
    from stado_coordinator.tick import Tick
    from stado_like.bucket.apply import describe
    from stado_like.bucket.bucket import Bucket

    client = open_client(context)
    _, plan = Tick(Bucket(client.store, ambient=client.ambient)).look()
    steps = [(name, action) for name, actions in plan.passes for action in actions]
    shown = [{"pass": name, "action": type(one).__name__, "what": describe(one)} for name, one in steps]
    lines = [f"{name}: {describe(one)}" for name, one in steps]
    context.output.value(shown, "\n".join(lines) or "The next tick has nothing to do.")
