"""`stado job submit`: a job into the queue. Standard output carries its name alone, for scripts."""

from __future__ import annotations

import json
from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client, permitted_as_far_as_seen
from stado_cli.submit_options import spec_of, submit_options


@click.command(context_settings={"allow_interspersed_args": False})
@submit_options
@click.option("--dry-run", is_flag=True, help="Check it, print what would be stored, and write nothing.")
@click.pass_obj
def command(context: Context, /, words: tuple[str, ...], dry_run: bool, request_id: str, **options: Any) -> None:
    """Submit CMD, or the specification of -f FILE, or a script: `stado job submit script.sh`.

    Prints the job's name; with --json the stored form. Options of the job's own command go after it, or after `--`.
    Exit code 2 when it is refused, with one sentence per wrong field; 4 when the name is taken.
    """
    client = open_client(context)
    spec = spec_of(words, options, is_local=client.store.url.startswith("file:"))
    for sentence in spec.understood():
        context.output.note(sentence)
    document = client.document(spec, request_id)
    if dry_run:
        permitted_as_far_as_seen(context, client, document)
        context.output.value(document, json.dumps(document, indent=2, ensure_ascii=False))
        return
    job = client.submit_document(document, request_id=request_id)
    stored = {**document, "incarnation": job.id.k, "id": str(job.id), "request_id": request_id or None}
    context.output.value(stored, job.name)
