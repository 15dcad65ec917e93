"""`stado workspace set`: limits and grants of a workspace, given and taken back.

What is not named stays as it is. Two people may edit one workspace at once: each edit lands on the other's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from stado_cli.commands.workspace_show import workspace_json, workspace_text
from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.errors import UsageError


@click.command()
@click.argument("name", metavar="W")
@click.option("--max-gpus", metavar="N|none", help="GPUs that its running jobs may hold together.")
@click.option("--max-cpus", metavar="N|none", help="Cores that its running jobs may hold together.")
@click.option("--max-memory", metavar="SIZE|none", help="Memory likewise: 512GiB, 4TiB.")
@click.option("--max-running-jobs", metavar="N|none", help="How many of its jobs may run at once.")
@click.option("--max-priority", type=int, metavar="P", help="The highest priority of its jobs, 0 to 1000. Default 0.")
@click.option("--pool", "pool", multiple=True, metavar="K=V", help="Only machines with this label; may be repeated.")
@click.option("--no-pool", "no_pool", multiple=True, metavar="K", help="Take the pool of this label away.")
@click.option("--grant", type=click.Choice(["privileged"]), help="Let its jobs ask for privileged work.")
@click.option("--no-grant", type=click.Choice(["privileged"]), help="Take it back.")
@click.option("--bind-path", "bind_path", multiple=True, metavar="P", help="Let its jobs mount P and what lies in it.")
@click.option("--no-bind-path", "no_bind_path", multiple=True, metavar="P", help="Take a granted path back.")
@click.pass_obj
def command(
    context: Context,
    /,
    name: str,
    max_priority: int | None,
    pool: tuple[str, ...],
    no_pool: tuple[str, ...],
    grant: str | None,
    no_grant: str | None,
    bind_path: tuple[str, ...],
    no_bind_path: tuple[str, ...],
    **limits: str | None,
) -> None:
    """Set limits and grants of workspace W; what is not named stays as it is. `none` takes a limit away.

    Jobs that were submitted before are not looked at again. Exit code 2 when a value is wrong.
    """
    from stado_like.asking.variables import labels
    from stado_like.job.workspace import Edit

    if grant and no_grant:
        raise UsageError("--grant and --no-grant contradict each other", "Give one of them.")
    edit = Edit(
        quota=_quota(limits),
        max_priority=max_priority,
        pools=labels(pool),
        no_pools=no_pool,
        privileged=True if grant else False if no_grant else None,
        bind_paths=bind_path,
        no_bind_paths=no_bind_path,
    )
    if edit.is_empty:
        raise UsageError("nothing to set was given", "`stado workspace set --help` lists limits and grants.")
    shown = workspace_json(open_client(context).workspaces.edit(name, edit))
    context.output.value(shown, workspace_text(shown))


def _quota(said: dict[str, str | None]) -> dict[str, int | None]:
    from stado_like.job.spec.units import size_bytes

    readers: dict[str, tuple[str, Callable[[str], int]]] = {
        "max_gpus": ("max_gpus", _count),
        "max_cpus": ("max_cpus", _count),
        "max_memory": ("max_memory_bytes", size_bytes),
        "max_running_jobs": ("max_running_jobs", _count),
    }
    found: dict[str, Any] = {}
    for option, (name, read) in readers.items():
        text = said[option]
        if text is not None:
            found[name] = None if text.strip().lower() == "none" else read(text)
    return found


def _count(text: str) -> int:
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise UsageError(f"{text[:60]!a} is not a limit", "Accepted forms: a whole number from 0, or none.")
    return int(digits)
