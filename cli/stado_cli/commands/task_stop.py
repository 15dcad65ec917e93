"""`stado task stop`: single tasks of a job, for good; the others go on."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import all_or_partly, open_client, ranks
from stado_like.errors import StadoError


@click.command()
@click.argument("job")
@click.argument("which", metavar="R[-R]")
@click.option("--reason", default="", help="Why; shown as the task's reason.")
@click.pass_obj
def command(context: Context, job: str, which: str, reason: str) -> None:
    """Stop task R, or tasks R to R, of JOB with grace. They are not started again. Exit code 4 when it has ended."""
    client = open_client(context)
    j = client.resolve(job)
    done, failed = [], {}
    for rank in ranks(which, client.terms(j).tasks):
        try:
            over = client.task_stop(j, rank, reason)
        except StadoError as error:
            failed[f"{j.name}-{rank}"] = error
            continue
        done.append({"name": f"{j.name}-{rank}", "rank": rank, "over": over})
    said = [f"{one['name']}: " + ("stopped" if one["over"] else "is being stopped") for one in done]
    context.output.value(done, "\n".join(said))
    all_or_partly(done, failed, "stopped", "tasks")
