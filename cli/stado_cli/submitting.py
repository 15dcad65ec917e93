"""From what was asked to what would be stored, with everything that is to be said on the way: nothing is written here.

What was understood is said before the document is judged, so that a wrong number is seen beside its refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stado_cli.context import Context
from stado_cli.submit_options import Asked

if TYPE_CHECKING:
    from stado_like.client import Client


def stored_form(context: Context, client: Client, said: Asked, request_id: str) -> dict[str, Any]:
    """Raises `InvalidSpecification`, `NotFound` for a job to wait for, store errors."""
    for sentence in said.notes:
        context.output.note(sentence)
    document = client.document(said.spec, request_id)
    metadata, asked = document["metadata"], said.spec.document.get("metadata") or {}
    if metadata.get("parent") and "parent" not in asked:
        context.output.note(
            f"child of {metadata['parent']}, in which this runs: it ends with it (--detached: it does not)"
        )
    from stado_like.job.spec.standing import not_yet

    idle = not_yet(document)
    if idle:
        context.output.note(f"accepted, not yet acted upon: {', '.join(idle)}")
    return document


def explained(client: Client, document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the next tick would do with a job that is not there yet, as JSON and for people. Raises
    `StoreUnavailable`."""
    from stado_like.reading import planned
    from stado_like.reading.explaining import machines_json, tick_sentence
    from stado_like.reading.surroundings import Surroundings

    terms, following = planned.suppose(client.bucket, document)
    around = Surroundings(client.bucket)
    shown: dict[str, Any] = {
        "next": planned.next_json(following, terms.workspace),
        "machines": machines_json(following.nodes, following),
        "tick": tick_sentence(around),
    }
    lines = ["if it were submitted now:", *planned.next_text(shown["next"]), f"  {shown['tick']}", "machines:"]
    return shown, [*lines, *map(planned.machine_line, shown["machines"])]
