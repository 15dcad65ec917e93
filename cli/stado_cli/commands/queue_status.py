"""`stado queue status`: what waits, on which index, since when; who could take it; when a tick was last seen."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client, set_aside
from stado_cli.output import Column, times
from stado_cli.output.human import aligned


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Show the queue: `open` any worker may claim, `held` waits for a placement, `later` is a retry not yet due."""
    found = open_client(context).queue()
    shown = {
        "indexes": {
            one.name: {
                "count": one.count,
                "oldest": one.oldest or None,
                "oldest_age_s": None if one.oldest_s is None else round(one.oldest_s, 3),
            }
            for one in found.indexes
        },
        "workers": {"ready": found.workers_ready, "stale": found.workers_stale, "closed": found.workers_closed},
        "paused": None
        if found.paused is None
        else {
            "reason": found.paused.reason or None,
            "by": found.paused.by or None,
            "at": times.iso(found.paused.at or None),
        },
        "last_tick": {
            "at": times.iso(found.last_tick_at or None),
            "age_s": None if found.last_tick_age_s is None else round(found.last_tick_age_s, 3),
        },
    }
    columns = [
        Column("INDEX", lambda row: row["name"]),
        Column("ENTRIES", lambda row: row["count"], right=True),
        Column("OLDEST", lambda row: row["age"], right=True),
        Column("ATTEMPT", lambda row: row["oldest"] or "-"),
    ]
    rows = [
        {"name": one.name, "count": one.count, "age": times.duration(one.oldest_s), "oldest": one.oldest}
        for one in found.indexes
    ]
    text = [
        *aligned(columns, rows),
        "",
        f"workers: {found.workers_ready} ready, {found.workers_closed} closed, {found.workers_stale} stale",
        "last tick: "
        + (f"{times.duration(found.last_tick_age_s)} ago" if found.last_tick_at else "none has run on this store"),
    ]
    if found.paused is not None:
        text = [f"paused: {found.paused.why}", "", *text]
    context.output.value(shown, "\n".join(text))
    set_aside(found.set_aside)
