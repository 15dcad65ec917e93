"""`stado scheduler run`: the resident coordinator. One is enough; several take turns, and nothing depends on any."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.config import ticks_kept_in


@click.command()
@click.option("--interval", default="5s", show_default=True, metavar="D", help="The longest pause between two ticks.")
@click.pass_obj
def command(context: Context, interval: str) -> None:
    """Tick until Ctrl-C or SIGTERM: at the interval, when a retry becomes due, and when somebody rings."""
    from stado_coordinator.coordinator import Coordinator
    from stado_like.bucket.bucket import Bucket
    from stado_like.job.spec.units import duration_s

    client = open_client(context)
    ended: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    _log(f"coordinator of {client.store.url}")
    bucket = Bucket(client.store, ambient=client.ambient)
    coordinator = Coordinator(
        bucket, interval_s=float(duration_s(interval)), log=_log, cache=ticks_kept_in(context.settings)
    )
    coordinator.run(lambda: bool(ended))
    _log("coordinator stopped")


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
