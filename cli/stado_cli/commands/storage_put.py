"""`stado storage put`: one object written by hand.

`--if-absent` is the store's create. Its answer may be lost on the way; then the object is read back, and equal bytes
mean that they stand, though not by whom: a body that must tell its writer apart carries a nonce of its own.
"""

from __future__ import annotations

from typing import BinaryIO

import click

from stado_cli.context import Context
from stado_like.errors import Conflict, Refused
from stado_like.store.conditional import Lost, create_once, write_again
from stado_like.store.protocol import ObjectStore, Rejected, Unknown

MOST_BYTES = 64 * 1024 * 1024


@click.command()
@click.argument("key")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--if-absent", is_flag=True, help="Refuse, exit code 4, when the key exists.")
@click.pass_obj
def command(context: Context, key: str, file: BinaryIO, if_absent: bool) -> None:
    """Write FILE (standard input when left out, or `-`) under KEY.

    The first writer of a store probes it; one that does not keep its promises is refused with exit code 5.
    """
    from stado_like.store.probe import ensure_trusted

    body: bytes = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise Refused(f"more than {MOST_BYTES} bytes for {key}", "Copy large data with a tool of your store.")
    store = context.store
    ensure_trusted(store)
    if if_absent:
        _create(store, key, body)
    else:
        write_again(store, key, body)
    context.output.value({"key": key, "size_bytes": len(body)}, f"Wrote {len(body)} bytes to {key}.")


def _create(store: ObjectStore, key: str, body: bytes) -> None:
    answer = store.create(key, body)
    lost = isinstance(answer, Rejected)
    if isinstance(answer, Unknown):
        lost = isinstance(create_once(store, key, body), Lost)
    if lost:
        raise Conflict(f"{key} exists already in {store.url}", f"`stado storage cat {key}` shows what is there.")
