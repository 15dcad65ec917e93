"""`stado storage stat`: one object without its body. Its age compares two times of the store: no clock here matters."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.output import times
from stado_like.errors import NotFound


@click.command()
@click.argument("key")
@click.pass_obj
def command(context: Context, key: str) -> None:
    """Show size, age and etag of the object under KEY. Exit code 3 when there is none."""
    found = context.store.head(key)
    if found is None:
        raise NotFound(
            f"there is no object {key} in {context.store.url}", f"`stado storage ls {key}` lists what begins like it."
        )
    shown = {
        "key": key,
        "size_bytes": found.size_bytes,
        "last_modified": times.iso(found.last_modified),
        "age_s": round(max(0.0, found.now - found.last_modified), 3),
        "etag": found.etag,
    }
    context.output.value(shown)
