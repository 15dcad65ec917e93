"""`stado storage check`: try every promise on the store, now, whatever an earlier verdict said.

The verdict that writers go by is kept by the first of them; a check stores nothing and takes its own objects away
again, so that it can be run at any time on a store that is in use.
"""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.output import Column, column
from stado_like.errors import StoreUntrusted
from stado_like.store.probe import Verdict, probe

WORDS = {True: "kept", False: "BROKEN", None: "unknown"}


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Probe the store: which of the promises that jobs rest on it keeps, a race for one key among them.

    Exit code 5 when one that is needed is broken; such a store is also refused by every command that writes.
    """
    store = context.store
    verdict = probe(store)
    if context.settings.json:
        context.output.value({"url": store.url, **_shown(verdict)})
    else:
        columns = [
            Column("", lambda row: WORDS[row["kept"]] if row["needed"] or row["kept"] else "without"),
            column("PROMISE", "name"),
            column("WHAT WAS SEEN", "sentence"),
        ]
        context.output.table(columns, _shown(verdict)["promises"])
    if verdict.broken:
        raise StoreUntrusted(
            f"{store.url} breaks {len(verdict.broken)} of the promises that are needed: "
            + "; ".join(promise.sentence for promise in verdict.broken),
            "Use a directory (file://), Amazon S3, or another store that passes this check.",
            detail={promise.name: promise.sentence for promise in verdict.broken},
        )
    context.output.note(f"{store.url} can be trusted.")


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {
        "trusted": verdict.ok,
        "can_replace": verdict.can_replace,
        "etag_style": verdict.etag_style,
        "clock_skew_s": round(verdict.clock_skew_s, 3),
        "promises": [
            {"name": one.name, "kept": one.kept, "needed": one.needed, "sentence": one.sentence}
            for one in verdict.promises
        ],
    }
