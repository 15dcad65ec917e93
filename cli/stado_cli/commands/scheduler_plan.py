"""`stado scheduler plan`: what the next tick would do, without doing it, and why it leaves waiting what it does."""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.config import ticks_kept_in


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Read the store as a tick does and print its plan. Nothing is written."""
    from stado_coordinator.tick import Tick
    from stado_like.bucket.apply import describe
    from stado_like.bucket.bucket import Bucket

    client = open_client(context)
    _, plan = Tick(Bucket(client.store, ambient=client.ambient), cache=ticks_kept_in(context.settings)).look()
    steps = [(name, action) for name, actions in plan.passes for action in actions]
    shown: list[dict[str, Any]] = [
        {"pass": name, "action": type(one).__name__, "what": describe(one)} for name, one in steps
    ]
    lines = [f"{name}: {describe(one)}" for name, one in steps]
    waits = sorted(plan.placing.waiting.items(), key=lambda each: (not each[1].headline, each[0]))
    for job, one in waits:
        shown.append({"pass": "place", "action": "Wait", "what": str(job), "reason": one.reason, "head": one.headline})
        lines.append(f"{job} waits: {one.reason}")
    context.output.value(shown, "\n".join(lines) or "The next tick has nothing to do.")
