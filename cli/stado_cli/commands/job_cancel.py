"""`stado job cancel`: jobs by name, or all that match. Once it is acknowledged no new attempt starts; what runs is
stopped with grace.
"""

from __future__ import annotations

import click

from stado_cli.choosing import chosen
from stado_cli.context import Context
from stado_cli.opening import all_or_partly, open_client
from stado_like.errors import StadoError


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--state", "wanted_states", multiple=True, metavar="S", help="All unfinished jobs in this state.")
@click.option("--label", "label", multiple=True, metavar="K=V", help="All unfinished jobs with this label.")
@click.option("-w", "--workspace", default="", help="The workspace. Default: that of the settings.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", help="Why; shown as the job's reason.")
@click.pass_obj
def command(
    context: Context,
    jobs: tuple[str, ...],
    wanted_states: tuple[str, ...],
    label: tuple[str, ...],
    workspace: str,
    yes: bool,
    reason: str,
) -> None:
    """Cancel each JOB, or all unfinished jobs that match --state and --label.

    Exit code 4 when it has ended already, 6 when that holds for some of several.
    """
    client = open_client(context, workspace)
    ids = chosen(context, client, jobs, wanted_states, label, over=False, yes=yes, verb="cancel")
    done, failed = [], {}
    for j in ids:
        try:
            cancelled = client.cancel(j, reason)
        except StadoError as error:
            failed[str(j)] = error
            continue
        done.append(
            {
                "name": j.name,
                "id": str(j),
                "ended": cancelled.ended,
                "running": cancelled.running,
                "over": cancelled.over,
            }
        )
    said = [f"{one['name']}: {_outcome(one['over'], one['running'])}" for one in done]
    context.output.value(done, "\n".join(said))
    all_or_partly(done, failed, "cancelled")


def _outcome(over: object, running: object) -> str:
    if over:
        return "cancelled"
    return f"cancelled; {running} {'task is' if running == 1 else 'tasks are'} being stopped"
