"""Watching a job until it is over: a live picture on a terminal, lines of what changed otherwise, JSON lines for
programs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stado_cli.context import Context
from stado_cli.job_text import picture
from stado_cli.output import times

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.job.keys import JobId
    from stado_like.reading.shapes import JobView

LOOK_EVERY_S = 0.2
"""A picture of an array reads every task: no more often than a person sees."""


def views(context: Context, client: Client, j: JobId) -> Iterator[JobView]:
    """One picture after another until the job is over. A client that waits may write the end of a job whose tasks have
    all ended, so that a store without a tick is no reason to wait for ever."""
    from stado_like.reading.awaiting import Awaited

    awaited = Awaited(client.bucket, j)
    patience = client.patience(
        on_note=context.output.note, rest=lambda pause: client.ambient.sleep(max(pause, LOOK_EVERY_S))
    )
    for _ in patience.rounds(steady=True):
        patience.ask(awaited.step)
        view = patience.ask(lambda: client.view(j))
        if view is not None:
            yield view
            if view.is_over:
                return


def watch(context: Context, client: Client, j: JobId) -> JobView:
    """Show it until it is over; returns the last picture."""
    live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not context.settings.json
    last: JobView | None = None
    if live:
        last = _live(context, client, j)
    else:
        before: dict[str, tuple[str, str]] = {}
        for view in views(context, client, j):
            _tell_changes(context, view, before)
            last = view
    assert last is not None
    return last


def _live(context: Context, client: Client, j: JobId) -> JobView | None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(no_color=context.settings.no_color, highlight=False)
    last: JobView | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for view in views(context, client, j):
            live.update(Text(picture(view, history=False)), refresh=True)
            last = view
    return last


def _tell_changes(context: Context, view: JobView, before: dict[str, tuple[str, str]]) -> None:
    """What is not as it was: the job, and each task, by name."""
    now = {one.name: (one.state.value, one.reason) for one in view.tasks}
    tasks = [one for one in view.tasks if before.get(one.name) != now[one.name]]
    job = (view.state.value, view.reason)
    if before.get("") == job and not tasks:
        return
    if context.settings.json:
        context.output.stream(_changed_json(view, tasks))
    else:
        at = times.iso(view.now)
        if (before and len(view.tasks) > 1) or not before:
            for one in tasks:
                if before or one.attempt > 1 or one.worker:
                    context.output.stream({}, f"{at}  {one.name}  {one.state.value}: {one.reason}")
        if before.get("") != job:
            context.output.stream({}, f"{at}  {view.id.name}  {view.state.value}: {view.reason}")
        elif len(view.tasks) == 1:
            context.output.stream({}, f"{at}  {tasks[0].name}  {tasks[0].state.value}: {tasks[0].reason}")
    before.clear()
    before.update(now)
    before[""] = job


def _changed_json(view: JobView, tasks: list[Any]) -> dict[str, Any]:
    return {
        "at": times.iso(view.now),
        "state": view.state.value,
        "reason": view.reason,
        "task_counts": {state.value: count for state, count in sorted(view.counts.items())},
        "tasks": [
            {
                "name": one.name,
                "rank": one.rank,
                "state": one.state.value,
                "reason": one.reason,
                "worker": one.worker or None,
                "attempt": one.attempt,
            }
            for one in tasks
        ],
    }
