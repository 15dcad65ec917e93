"""`stado worker start`: this machine works, until it is told to stop.

Ctrl-C and SIGTERM stop the claiming and leave the tasks running: the next start adopts them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stado_cli.context import Context
from stado_like.errors import UsageError


@click.command()
@click.option(
    "--id", "worker", default="", help="This worker's id. Default: the host name and a suffix kept on this machine."
)
@click.option("--label", "labels", multiple=True, metavar="K=V", help="A label of this machine; may be repeated.")
@click.option("--address", default="", help="The address under which other machines reach this one.")
@click.option("--cpus", type=float, help="Cores to offer, taken as given: load is ignored.")
@click.option("--memory", metavar="SIZE", help="Memory to offer, taken as given: 16GiB, 512MiB.")
@click.option(
    "--gpus",
    metavar="N|none|file:PATH",
    help="GPUs to offer: so many, of which nothing else is known; none; or those, and the network ports, that a JSON "
    "file describes.",
)
@click.option("--once", is_flag=True, help="End when what was claimed first has ended.")
@click.option("--until-idle", metavar="D", help="End after so long without work: 30s, 10m.")
@click.pass_obj
def command(
    context: Context,
    worker: str,
    labels: tuple[str, ...],
    address: str,
    cpus: float | None,
    memory: str | None,
    gpus: str | None,
    once: bool,
    until_idle: str | None,
) -> None:
    """Claim and run what fits this machine, until Ctrl-C or SIGTERM; running tasks go on then."""
    from stado_like.job.spec.units import duration_s, size_bytes
    from stado_worker.machine.described import NO_HARDWARE, hardware_said
    from stado_worker.run import Worker, WorkerOptions

    if cpus is not None and cpus <= 0:
        raise UsageError(f"--cpus {cpus:g}: a worker offers more than no core", "Leave it out to offer all of them.")
    settings = context.settings
    options = WorkerOptions(
        store_url=settings.store,
        worker=worker,
        labels=_labels(labels),
        address=address,
        cpus=cpus,
        memory_bytes=size_bytes(memory) if memory is not None else None,
        hardware=hardware_said(gpus) if gpus is not None else NO_HARDWARE,
        once=once,
        until_idle_s=float(duration_s(until_idle)) if until_idle is not None else None,
        grace_s=settings.grace_s,
        most_grace_s=settings.most_grace_s,
    )
    running = Worker(options, state_dir=Path(settings.state_dir).expanduser(), log=_log)
    running.catch_signals()
    adopted = running.start()
    _log(f"worker {running.name} on {settings.store}" + (f": adopted {adopted} attempts" if adopted else ""))
    try:
        running.run()
    finally:
        held = running.stop()
        if held:
            _log(f"worker {running.name} stopped; {held} tasks go on, and the next start adopts them")
        else:
            _log(f"worker {running.name} stopped")


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise UsageError(f"--label {one}: a label is written KEY=VALUE")
        labels[key] = value
    return labels


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
