"""`stado scheduler tick`: one tick of the coordinator, in this process; what cron runs.

Exit code 0; 4 when another tick holds the store; 6 when something was set aside or left for the next tick. `--cron` is
quiet about what is normal: a held store is no failure there, since another tick is doing the work.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.config import ticks_kept_in
from stado_like.errors import Exit, TickHeld

if TYPE_CHECKING:
    from stado_coordinator.report import Report


@click.command()
@click.option("--reap-now", is_flag=True, help="End what looks dead even when half of all machines look dead at once.")
@click.option("--cron", is_flag=True, help="Print nothing but trouble; a store held by another tick is none.")
@click.pass_obj
def command(context: Context, reap_now: bool, cron: bool) -> int:
    """Settle cancels, move what is due, end what died, finish what was left half-way; then say what was done."""
    from stado_coordinator.tick import Tick
    from stado_like.bucket.bucket import Bucket

    client = open_client(context)
    bucket = Bucket(client.store, ambient=client.ambient)
    log = (lambda line: None) if cron else _log
    tick = Tick(bucket, reap_now=reap_now, log=log, cache=ticks_kept_in(context.settings))
    try:
        report = tick.step()
    except TickHeld:
        if cron:
            return Exit.DONE
        raise
    for what, why in report.deferred:
        _log(f"[tick] deferred: {what}: {why}")
    for one in report.set_aside:
        _log(f"[tick] set aside: {one.what}: {one.why}")
    if not cron:
        context.output.value(report.as_json(), _in_words(report) or "Nothing to do.")
    return report.exit_code


def _in_words(report: Report) -> str:
    lines = []
    for name, counts in report.passes.items():
        done = [f"{n} {what}" for what, n in counts.items() if n]
        if done:
            lines.append(f"{name}: {', '.join(done)}")
    return "\n".join(lines)


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
