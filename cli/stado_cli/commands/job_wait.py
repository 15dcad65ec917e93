"""`stado job wait`: block until jobs are over; the exit code says how they ended."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.errors import Exit


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--timeout", metavar="D", help="Give up after so long: exit code 124. The jobs go on.")
@click.pass_obj
def command(context: Context, jobs: tuple[str, ...], timeout: str | None) -> int:
    """Wait until every JOB is over. Exit code 0: all Completed; 1: one did not; 124: timed out."""
    from stado_like.job.spec.units import duration_s
    from stado_like.job.states import JobState

    client = open_client(context)
    ids = [client.resolve(job) for job in jobs]
    timeout_s = float(duration_s(timeout)) if timeout is not None else None
    ended = client.wait(ids, timeout_s, on_note=context.output.note)
    rows = [
        {"name": j.name, "workspace": j.workspace, "incarnation": j.k, "state": one.state.value, "reason": one.reason}
        for j, one in zip(ids, ended, strict=True)
    ]
    context.output.value(rows, "\n".join(f"{row['name']}  {row['state']}: {row['reason']}" for row in rows))
    return Exit.DONE if all(one.state is JobState.COMPLETED for one in ended) else Exit.FAILED
