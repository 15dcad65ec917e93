"""`stado job delete`: jobs that have ended, with their logs and outputs. A tombstone stays, so that nothing of them
comes back.
"""

from __future__ import annotations

import click

from stado_cli.choosing import chosen
from stado_cli.context import Context
from stado_cli.opening import all_or_partly, open_client
from stado_like.errors import StadoError


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--older-than", metavar="D", help="All that ended and were submitted longer ago than this: 7d, 2-12.")
@click.option("--state", "wanted_states", multiple=True, metavar="S", help="Of those, only in this state.")
@click.option("-w", "--workspace", default="", help="The workspace. Default: that of the settings.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(
    context: Context,
    jobs: tuple[str, ...],
    older_than: str | None,
    wanted_states: tuple[str, ...],
    workspace: str,
    yes: bool,
) -> None:
    """Delete each JOB, or all ended ones that match. Exit code 4 while a JOB goes on."""
    from stado_like.job.spec.units import duration_s

    client = open_client(context, workspace)
    age_s = float(duration_s(older_than)) if older_than is not None else None
    ids = chosen(context, client, jobs, wanted_states, (), over=True, yes=yes, verb="delete", older_than_s=age_s)
    done, failed = [], {}
    for j in ids:
        try:
            client.delete(j)
        except StadoError as error:
            failed[str(j)] = error
            continue
        done.append({"name": j.name, "id": str(j)})
    context.output.value(done, "\n".join(f"Deleted {one['name']} ({one['id']})." for one in done))
    all_or_partly(done, failed, "deleted")
