"""`stado workspace show`: what one workspace may have, defaults where nobody set anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_cli.output import times

if TYPE_CHECKING:
    from stado_like.job.workspace import Workspace


@click.command()
@click.argument("name", metavar="W")
@click.pass_obj
def command(context: Context, name: str) -> None:
    """Show workspace W: quota, maximum priority, pools and grants.

    A workspace that was never set has the defaults: no quota, maximum priority 0, nothing granted.
    """
    shown = workspace_json(open_client(context).workspaces.read(name))
    context.output.value(shown, workspace_text(shown))


def workspace_json(one: Workspace) -> dict[str, Any]:
    """The shape of a workspace in every command's --json. A limit of null is no limit."""
    quota, grants = one.quota, one.grants
    return {
        "name": one.name,
        "quota": {
            "max_gpus": quota.max_gpus,
            "max_cpus": quota.max_cpus,
            "max_memory_bytes": quota.max_memory_bytes,
            "max_running_jobs": quota.max_running_jobs,
        },
        "max_priority": one.max_priority,
        "pools": dict(one.pools),
        "grants": {"privileged": grants.privileged, "bind_paths": list(grants.bind_paths)},
        "was_set": one.was_set,
        "changed_by": one.by or None,
        "changed_at": times.iso(one.at or None),
    }


def workspace_text(shown: Mapping[str, Any]) -> str:
    told = {
        "workspace": shown["name"] + ("" if shown["was_set"] else " (never set: the defaults)"),
        "max gpus": limit(shown, "max_gpus"),
        "max cpus": limit(shown, "max_cpus"),
        "max memory": limit(shown, "max_memory_bytes"),
        "max running jobs": limit(shown, "max_running_jobs"),
        "max priority": str(shown["max_priority"]),
        "pools": pools(shown),
        "grants": grants(shown),
    }
    if shown["was_set"]:
        told["changed"] = f"{shown['changed_at']} by {shown['changed_by'] or 'nobody who gave a name'}"
    return "\n".join(f"{name}: {said}" for name, said in told.items())


def limit(shown: Mapping[str, Any], name: str) -> str:
    value = shown["quota"][name]
    if value is None:
        return "no limit"
    return times.size(value) if name == "max_memory_bytes" else str(value)


def pools(shown: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(shown["pools"].items())) or "any"


def grants(shown: Mapping[str, Any]) -> str:
    given = ["privileged"] if shown["grants"]["privileged"] else []
    return ", ".join([*given, *shown["grants"]["bind_paths"]]) or "none"
