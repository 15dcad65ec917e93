"""`stado storage rm`: objects deleted by hand.

For what does not belong in a store; a job is removed by `job delete`.
"""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_like.errors import NotFound, PartlyDone
from stado_like.store.conditional import delete_again


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.pass_obj
def command(context: Context, keys: tuple[str, ...]) -> None:
    """Delete the objects under each KEY.

    Nothing in a job's life needs this: deleting its records by hand loses it. `stado job delete` removes a job.
    Exit code 3 when no KEY exists, 6 when some do not.
    """
    store = context.store
    found = dict(zip(keys, store.heads(keys), strict=True))
    absent = [key for key, stat in found.items() if stat is None]
    present = [key for key, stat in found.items() if stat is not None]
    for key in present:
        delete_again(store, key)
    detail = dict.fromkeys(absent, "there is no such object")
    if not present:
        raise NotFound(
            f"none of {len(found)} keys exists in {store.url}", "`stado storage ls` lists keys.", detail=detail
        )
    context.output.value({"deleted": present, "absent": absent}, "\n".join(f"Deleted {key}." for key in present))
    if absent:
        raise PartlyDone(
            f"deleted {len(present)} of {len(found)} objects; {len(absent)} did not exist",
            "`stado storage ls` lists keys.",
            detail=detail,
        )
