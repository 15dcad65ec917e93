"""`stado job submit`: a job into the queue. Standard output carries its name alone, for scripts."""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client, permitted_as_far_as_seen
from stado_cli.submit_command import SubmitCommand
from stado_cli.submit_options import SECTIONS, asked, submit_options
from stado_cli.submitting import explained, stored_form
from stado_like.errors import UsageError


@click.command(cls=SubmitCommand, sections=SECTIONS, context_settings={"allow_interspersed_args": False})
@submit_options
@click.option("--dry-run", is_flag=True, help="Check it, print what would be stored, and write nothing.")
@click.option("--explain", is_flag=True, help="With --dry-run: also what the next tick would do with it, and why.")
@click.pass_obj
def command(
    context: Context, /, words: tuple[str, ...], dry_run: bool, explain: bool, request_id: str, **options: Any
) -> None:
    """Submit CMD, or the specification of -f FILE, or a script: `stado job submit script.sh ARGS`.

    Prints the job's name; with --json the stored form. What durations, sizes and arrays were taken for is said on
    standard error. Options of the job's own command go after it, or after `--`. There is no shell: for `$`, `|` and
    `*` submit a script, or `-- bash -c '…'`.

    A file given before `--` is a script: its text travels with the job, so what runs is what was submitted, whatever
    becomes of the file. Its #! line says what runs it; without one, bash. After `--` every word is the command's.

    Exit code 2 when it is refused, with one sentence per wrong field; 3 when a job to wait for is not there; 4 when
    the name is taken.
    """
    if explain and not dry_run:
        raise UsageError("--explain goes with --dry-run", "`stado job explain JOB` explains a job that was submitted.")
    client = open_client(context)
    said = asked(words, options, client.bucket.now)
    document = stored_form(context, client, said, request_id)
    if dry_run:
        permitted_as_far_as_seen(context, client, document)
        from stado_cli.output.as_yaml import dumps

        shown, text = document, dumps(document).removesuffix("\n")
        if explain:
            told, lines = explained(client, document)
            shown, text = {**document, "explain": told}, "\n".join((text, "", *lines))
        context.output.value(shown, text)
        return
    job = client.submit_document(document, request_id=request_id, renumber=said.renumber)
    if job.name != document["metadata"]["name"]:
        context.output.note(f"the name {document['metadata']['name']} is taken: this job is {job.name}")
    document = {**document, "metadata": {**document["metadata"], "name": job.name}}
    stored = {**document, "incarnation": job.id.k, "id": str(job.id), "request_id": request_id or None}
    context.output.value(stored, job.name)
