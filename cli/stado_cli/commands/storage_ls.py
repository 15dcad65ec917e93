"""`stado storage ls`: the keys under a prefix, as the store lists them.

A listing is a hint, never evidence of absence: `storage stat` asks for one key.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from stado_cli.context import Context
from stado_cli.output import Column, column, times
from stado_like.store.protocol import list_all


@click.command()
@click.argument("prefix", default="")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many keys.")
@click.option("--start-after", default="", metavar="KEY", help="Begin after this key.")
@click.pass_obj
def command(context: Context, prefix: str, limit: int | None, start_after: str) -> None:
    """List the keys that begin with PREFIX, in ascending order, with size and age.

    PREFIX is a text, not a folder: `jobs/default/tr` finds `jobs/default/train.1.json`.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for row in islice(list_all(context.store, prefix, start_after=start_after), limit):
            yield {
                "key": row.key,
                "size_bytes": row.size_bytes,
                "last_modified": times.iso(row.last_modified),
                "etag": row.etag,
            }

    columns = [
        Column("SIZE", lambda row: times.size(row["size_bytes"]), right=True),
        column("LAST MODIFIED", "last_modified"),
        column("KEY", "key"),
    ]
    context.output.table(columns, rows(), empty=f"No key begins with '{prefix}' in {context.store.url}.")
