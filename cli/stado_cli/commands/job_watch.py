"""`stado job watch`: the picture now, or until the job is over."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.job_text import picture
from stado_cli.opening import open_client
from stado_like.errors import Exit


@click.command()
@click.argument("job")
@click.option("--follow", "-F", is_flag=True, help="Until it is over; exit code 0 when it Completed, 1 otherwise.")
@click.pass_obj
def command(context: Context, job: str, follow: bool) -> int:
    """Show JOB as it is now; with --follow as it changes, until it is over.

    Into a pipe --follow writes a line per change, with --json a JSON object per line.
    """
    from stado_cli.watching import watch
    from stado_like.job.states import JobState
    from stado_like.reading.shapes import job_json

    client = open_client(context)
    j = client.resolve(job)
    if not follow:
        view = client.view(j)
        context.output.value(job_json(view), picture(view, history=False))
        return Exit.DONE
    try:
        view = watch(context, client, j)
    except KeyboardInterrupt:
        context.output.note(f"Interrupted; the job {j.name} goes on.")
        return Exit.INTERRUPTED
    return Exit.DONE if view.state is JobState.COMPLETED else Exit.FAILED
