"""`stado run`: a job as if it ran here. Submitted, its output streamed, its exit code ours.

On the embedded store this process also works the job (`stado_cli.working`), so one command on a fresh machine runs a
job. The task itself is held by a supervisor of its own: when this process is interrupted, the job goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_cli.submit_command import SubmitCommand
from stado_cli.submit_options import SECTIONS, asked, submit_options
from stado_cli.submitting import stored_form
from stado_like.errors import Exit

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.handle import Job
    from stado_like.reading.shapes import JobView


@click.command(cls=SubmitCommand, sections=SECTIONS, context_settings={"allow_interspersed_args": False})
@submit_options
@click.pass_obj
def command(context: Context, /, words: tuple[str, ...], request_id: str, **options: Any) -> int:
    """Run CMD as a job: submit it, stream its output, and exit as it did.

    It is not started again after a failure unless --restarts says so. Several tasks (--array): each line has its rank
    before it, and the exit code is the first failed one's. Ctrl-C: exit code 130, and the job goes on. Scripts and
    files as in `stado job submit`.
    """
    client = open_client(context)
    said = asked(words, options, client.bucket.now)
    if said.spec.restarts is None and not _says_restarts(said.spec.document):
        said = replace(said, spec=replace(said.spec, restart_policy="Never"))
    document = stored_form(context, client, said, request_id)
    if client.store.url.startswith("file:"):
        import stado_cli.working  # noqa: F401 - what cannot work here is found out before anything is written
    job = client.submit_document(document, request_id=request_id, renumber=said.renumber)
    context.output.note(f"job {job.name}")
    try:
        return _exit_code(context, _stream(context, client, job))
    except KeyboardInterrupt:
        context.output.note(
            f"Interrupted; the job {job.name} goes on: `stado logs -F {job.name}` shows it, "
            f"`stado cancel {job.name}` ends it."
        )
        return Exit.INTERRUPTED


def _says_restarts(document: Mapping[str, Any]) -> bool:
    """Whether a specification from a file has its own mind about restarts: a service and groups always have."""
    spec = document.get("spec")
    if not isinstance(spec, Mapping) or spec.get("task_groups") or spec.get("lifetime") == "Service":
        return isinstance(spec, Mapping)
    template = spec.get("task_template")
    return isinstance(template, Mapping) and bool({"restart_policy", "resilience"} & set(template))


def _stream(context: Context, client: Client, job: Job) -> JobView:
    from stado_cli.log_lines import LogLines
    from stado_like.reading.logs import TaskFollower

    tasks = client.terms(job).tasks
    lines = LogLines(context.output, prefixed=tasks > 1, json=context.settings.json)
    followers = [TaskFollower(client.bucket, job.id, rank) for rank in range(tasks)]
    with ExitStack() as stack:
        stack.callback(lines.close)
        rest = None
        if client.store.url.startswith("file:"):
            from stado_cli.working import OwnWorker

            rest = stack.enter_context(OwnWorker(context, client, job.id)).rest
        for rank, n, part in client.follow(job, followers, on_note=context.output.note, rest=rest):
            lines.write(rank, n, part)
        client.wait([job], on_note=context.output.note, rest=rest)
    return client.view(job)


def _exit_code(context: Context, view: JobView) -> int:
    """The job's own, where it ran; never 0 unless it Completed."""
    from stado_like.job.states import JobState

    if view.state is JobState.COMPLETED:
        return Exit.DONE
    context.output.note(f"job {view.id.name} {view.state.value}: {view.reason}")
    return next((task.exit_code for task in view.tasks if task.exit_code), int(Exit.FAILED))
