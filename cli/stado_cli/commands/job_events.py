"""`stado job events`: everything that happened to a job and its tasks, one per line, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_cli.output import times
from stado_like.errors import Exit

if TYPE_CHECKING:
    from stado_like.reading.events import Event


@click.command()
@click.argument("job")
@click.option("--follow", "-F", is_flag=True, help="Go on as they come, until the job is over.")
@click.pass_obj
def command(context: Context, job: str, follow: bool) -> int:
    """Show what happened to JOB: every change of its state and its tasks', with reason and time.

    With --json a JSON object per line. What only whoever looks can know (a heartbeat is late) is marked in `details`.
    """
    from stado_cli.watching import views
    from stado_like.reading.events import Follower

    client = open_client(context)
    j = client.resolve(job)
    follower = Follower()
    if not follow:
        _tell(context, follower.news(client.view(j)))
        return Exit.DONE
    try:
        for view in views(context, client, j):
            _tell(context, follower.news(view))
    except KeyboardInterrupt:
        context.output.note(f"Interrupted; the job {j.name} goes on.")
        return Exit.INTERRUPTED
    return Exit.DONE


def _tell(context: Context, events: list[Event]) -> None:
    from stado_like.reading.events import event_json

    for one in events:
        context.output.stream(event_json(one), _line(one))


def _line(event: Event) -> str:
    """`2026-01-31T12:00:00.000Z  train-0 #2  Running      Process running  (w1)`"""
    change = event.change
    who = f"{event.task} #{event.attempt}" if event.task else event.job.split(".")[1]
    more = [one for one in (event.worker, change.cause) if one]
    more += ["as far as a reader can see"] if event.is_a_readers_view else []
    restart_at = change.details.get("restart_at")
    more += [f"restarts at {restart_at}"] if restart_at else []
    return f"{times.iso(change.at)}  {who:<16} {change.state:<13} {change.reason}" + (
        f"  ({', '.join(more)})" if more else ""
    )
