"""`stado config cluster`: what holds for everybody on a store, shown and set."""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_cli.output import times
from stado_like.errors import UsageError

NAMES = {
    "max_restarts": "max_restarts",
    "max_machine_restarts": "max_machine_restarts",
    "stop_grace": "stop_grace_seconds",
    "max_stop_grace": "max_stop_grace_seconds",
}


@click.command()
@click.option("--max-restarts", metavar="N|none", help="Restarts of a task after its own failures, where it says none.")
@click.option("--max-machine-restarts", metavar="N|none", help="Likewise, after faults of its machine.")
@click.option("--stop-grace", metavar="D|none", help="The grace of a task that says none: 30s, 2m.")
@click.option("--max-stop-grace", metavar="D|none", help="The longest grace that a task may say.")
@click.pass_obj
def command(context: Context, /, **said: str | None) -> None:
    """Show what holds for everybody on this store; with an option, set it first. `none` takes a value away.

    A variable or setting of a machine (`stado config show`) stands before it. Submitters hear of a change within a
    minute, workers with their next sweep, for the tasks that they start from then on. Exit code 2 when a value is
    wrong.
    """
    client = open_client(context)
    values = {NAMES[option]: _value(option, text) for option, text in said.items() if text is not None}
    stands = client.cluster.change(values) if values else client.cluster.now()
    shown: dict[str, Any] = {name: getattr(stands, name) for name in NAMES.values()}
    text = "\n".join(f"{name}: {'-' if value is None else value}" for name, value in shown.items())
    shown |= {"changed_by": stands.by or None, "changed_at": times.iso(stands.at or None)}
    context.output.value(shown, text)


def _value(option: str, text: str) -> int | None:
    from stado_like.job.spec.units import duration_s

    word = text.strip()
    if word.lower() == "none":
        return None
    if option.endswith("grace"):
        seconds = duration_s(word)
        if seconds != int(seconds):
            raise UsageError(f"{word[:60]!a} is no whole number of seconds", "Accepted forms: 30s, 2m, 1h, or none.")
        return int(seconds)
    if not word.isascii() or not word.isdigit() or len(word) > 18:
        raise UsageError(f"{word[:60]!a} is no number of restarts", "Accepted forms: a whole number from 0, or none.")
    return int(word)
