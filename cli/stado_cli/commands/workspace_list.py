"""`stado workspace list`: the workspaces that somebody set; every other one has the defaults."""

from __future__ import annotations

import click

from stado_cli.commands.workspace_show import grants, limit, pools, workspace_json
from stado_cli.context import Context
from stado_cli.opening import open_client, set_aside
from stado_cli.output import Column, column


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """List the workspaces that were set, with their limits and grants.

    One that is not listed may be used all the same: it has no quota, maximum priority 0, and nothing granted.
    """
    found, unread = open_client(context).workspaces.every()
    columns = [
        column("WORKSPACE", "name"),
        Column("GPUS", lambda row: limit(row, "max_gpus"), right=True),
        Column("CPUS", lambda row: limit(row, "max_cpus"), right=True),
        Column("MEMORY", lambda row: limit(row, "max_memory_bytes"), right=True),
        Column("RUNNING JOBS", lambda row: limit(row, "max_running_jobs"), right=True),
        column("MAX PRIORITY", "max_priority", right=True),
        Column("POOLS", pools),
        Column("GRANTS", grants),
    ]
    context.output.table(
        columns,
        [workspace_json(one) for one in found],
        empty="No workspace was set; each has the defaults: no quota, maximum priority 0, nothing granted.",
    )
    set_aside(unread)
