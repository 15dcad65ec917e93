"""`stado storage cat`: the body of one object, exact to the byte; with `--json` inside one JSON value."""

from __future__ import annotations

from base64 import b64encode

import click

from stado_cli.context import Context
from stado_cli.output import times
from stado_like.errors import NotFound


@click.command()
@click.argument("key")
@click.pass_obj
def command(context: Context, key: str) -> None:
    """Print the object under KEY, exact to the byte. Exit code 3 when there is none.

    With --json the body travels as `text`, or as `base64` when it is not UTF-8.
    """
    found = context.store.get(key)
    if found is None:
        raise NotFound(
            f"there is no object {key} in {context.store.url}", f"`stado storage ls {key}` lists what begins like it."
        )
    if not context.settings.json:
        context.output.raw(found.body)
        return
    shown = {
        "key": key,
        "size_bytes": len(found.body),
        "last_modified": times.iso(found.last_modified),
        "etag": found.etag,
    }
    try:
        body = {"text": found.body.decode()}
    except UnicodeDecodeError:
        body = {"base64": b64encode(found.body).decode()}
    context.output.value({**shown, **body})
