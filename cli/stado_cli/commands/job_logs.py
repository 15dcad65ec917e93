"""`stado job logs`: the output of a job's tasks, stdout and stderr as one stream, exact to the byte where asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from stado_cli.context import Context
from stado_cli.opening import one_rank, open_client
from stado_like.errors import Exit, UsageError

if TYPE_CHECKING:
    from stado_cli.log_lines import LogLines
    from stado_like.client import Client
    from stado_like.job.keys import AttemptId
    from stado_like.reading.logs import TaskFollower


@click.command()
@click.argument("job")
@click.option("--task", metavar="R", help="Only this task. Default: all, each line with its rank before it.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="This attempt. Default: the newest one.")
@click.option("--follow", "-F", is_flag=True, help="Go on until the tasks end.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines, of each task.")
@click.option("--raw", is_flag=True, help="The bytes exactly, of one task.")
@click.pass_obj
def command(
    context: Context, job: str, task: str | None, attempt: int | None, follow: bool, tail: int | None, raw: bool
) -> int:
    """Print the output of JOB.

    What is not UTF-8 is shown with replacement marks; --raw gives the bytes. Bytes that a machine could not upload
    before it died are named on standard error. With --json: one piece a line.
    """
    from stado_cli.log_lines import LogLines
    from stado_like.job.keys import AttemptId

    client = open_client(context)
    j = client.resolve(job)
    attempts = client.attempts(j) if task is None else [client.attempt(j, one_rank(task), attempt)]
    if attempt is not None:
        attempts = [AttemptId(j, a.rank, attempt) for a in attempts]
    if raw and len(attempts) > 1:
        raise UsageError(f"--raw gives the bytes of one task, and {j.name} has {len(attempts)}", "Add --task R.")
    lines = LogLines(context.output, prefixed=len(attempts) > 1, raw=raw, json=context.settings.json)
    try:
        followers = [_so_far(client, lines, a, tail, follow=follow) for a in attempts]
        if follow:
            for rank, n, part in client.follow(j, followers, on_note=context.output.note):
                lines.write(rank, n, part)
    except KeyboardInterrupt:
        context.output.note(f"Interrupted; the job {j.name} goes on.")
        return Exit.INTERRUPTED
    finally:
        lines.close()
    return Exit.DONE


def _so_far(client: Client, lines: LogLines, a: AttemptId, tail: int | None, *, follow: bool) -> TaskFollower:
    """Write what is there now, unless following brings it anyway; returns where to go on."""
    from stado_like.reading import logs

    at = 0
    parts: Iterable[logs.Part] = []
    if tail is not None:
        parts = logs.read_tail(client.bucket, a, tail) if tail else list(logs.read_parts(client.bucket, a))
    elif not follow:
        parts = logs.read_parts(client.bucket, a)
    for one in parts:
        if tail != 0:
            lines.write(a.rank, a.n, one)
        at = one.offset + (one.size_bytes if isinstance(one, logs.Gap) else len(one.body))
    return logs.TaskFollower(client.bucket, a.job, a.rank, a.n, begin=at)
