"""`stado worker drain`: machines that take nothing new and let go of what they hold."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.machines import set_on
from stado_cli.opening import open_client


@click.command()
@click.argument("workers", nargs=-1, required=True, metavar="ID...")
@click.option("--reason", default="", help="Why; jobs that wait show it.")
@click.option("--wait", is_flag=True, help="Wait until each holds nothing. Ctrl-C ends the waiting, not the drain.")
@click.option("--timeout", metavar="D", help="With --wait: give up after so long, exit code 124. The drain goes on.")
@click.pass_obj
def command(context: Context, workers: tuple[str, ...], reason: str, wait: bool, timeout: str | None) -> None:
    """Stop what each worker ID holds, with grace, and queue it again; take nothing new until `uncordon`.

    A move counts as no restart. A machine that is away is drained when it comes back.
    """
    from stado_like.job.spec.units import duration_s

    client = open_client(context)
    timeout_s = float(duration_s(timeout)) if timeout is not None else None
    set_on(context, client, workers, lambda worker: client.operate.drain(worker, reason), "is being drained")
    if wait:
        for worker in workers:
            client.operate.wait_until_it_let_go(worker, timeout_s, on_note=context.output.note)
            context.output.note(f"{worker} holds nothing")
