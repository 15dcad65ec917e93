"""`stado job requeue`: a person puts single tasks back into the queue; it spends none of their restarts."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import all_or_partly, open_client, ranks
from stado_like.errors import StadoError


@click.command()
@click.argument("job")
@click.option("--task", "which", required=True, metavar="R[-R]", help="The task, or a range of tasks.")
@click.option("--reason", default="", help="Why; shown as the attempt's reason. Default: Requeued by <you>.")
@click.pass_obj
def command(context: Context, job: str, which: str, reason: str) -> None:
    """Stop task R of JOB with grace and queue it again, as its next attempt.

    One that waits for its time after a failure is queued now; one that is queued already is left alone. Exit code 4
    when it has ended, or is being stopped for good.
    """
    client = open_client(context)
    j = client.resolve(job)
    done, failed = [], {}
    for rank in ranks(which, client.terms(j).tasks):
        try:
            requeued = client.operate.requeue(j, rank, reason)
        except StadoError as error:
            failed[f"{j.name}-{rank}"] = error
            continue
        row = {"name": f"{j.name}-{rank}", "rank": rank, "attempt": requeued.attempt.n, "done": requeued.how.value}
        done.append({**row, "worker": requeued.worker or None})
    context.output.value(done, "\n".join(_said(one) for one in done))
    all_or_partly(done, failed, "requeued", "tasks")


def _said(row: dict[str, object]) -> str:
    name, n = row["name"], row["attempt"]
    if row["done"] == "stopping":
        return f"{name}: attempt {n} is being stopped on {row['worker']}; it runs again"
    if row["done"] == "queued":
        return f"{name}: attempt {n} is queued now"
    return f"{name}: attempt {n} waits on the queue already; nothing was done"
