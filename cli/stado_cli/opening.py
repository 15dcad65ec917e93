"""The client of a command, over the store that its context opens once and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stado_cli.context import Context
from stado_like.errors import PartlyDone, StadoError, StoreError, UsageError

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.reading.kept_rows import KeptRows


def open_client(context: Context, workspace: str = "") -> Client:
    from stado_like.client import Client

    client = Client(context.settings, workspace=workspace, opened=context.store)
    client.shipping.on_note = context.output.note
    return client


def kept_rows(context: Context, *, cache: bool = True) -> KeptRows:
    """What lists of jobs told on this disk, unless the settings say no."""
    import os

    from stado_like.reading.kept_rows import KeptRows, place

    return KeptRows(place(context.store.url, os.environ) if cache and context.settings.cache else None)


def permitted_as_far_as_seen(context: Context, client: Client, document: Mapping[str, Any]) -> None:
    """For a dry run: what the job's workspace refuses is refused; a store that does not answer is only said so."""
    try:
        client.workspaces.permit(document)
    except StoreError as unread:
        workspace = document["metadata"]["workspace"]
        context.output.note(f"whether workspace {workspace} permits the job could not be looked up: {unread.message}")


def set_aside(records: dict[str, str], what: str = "records") -> None:
    """Exit code 6 with every record that could not be read; nothing when there is none."""
    if records:
        raise PartlyDone(
            f"{len(records)} {what} could not be read and were set aside",
            "The rest is shown; `stado storage cat` shows each of them.",
            detail=records,
        )


def all_or_partly(done: Sequence[object], failed: dict[str, StadoError], what: str, noun: str = "jobs") -> None:
    """One failure of one is that failure; some of several are exit code 6, with a sentence each."""
    if not failed:
        return
    if not done and len(failed) == 1:
        raise next(iter(failed.values()))
    raise PartlyDone(
        f"{what} {len(done)} of {len(done) + len(failed)} {noun}",
        "The others are named with what kept them; repeat the command for those.",
        detail={name: error.message for name, error in failed.items()},
    )


def ranks(words: str, tasks: int) -> range:
    """`3` or `3-7`. Raises `UsageError`."""
    first, dash, last = words.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise UsageError(f"{words[:60]!a} is not a rank", "Accepted forms: 3 or 3-7.")
    begin, end = int(first), int(last) if dash else int(first)
    if end < begin:
        raise UsageError(f"{words} is a range that ends before it begins", "Write the lower rank first.")
    if end >= tasks:
        raise UsageError(f"rank {end} is beyond the job's {tasks} tasks", f"Its ranks are 0 to {tasks - 1}.")
    return range(begin, end + 1)


def one_rank(words: str) -> int:
    """A rank, or a task's display name's number. Raises `UsageError`."""
    if not words.isdecimal() or len(words) > 5:
        raise UsageError(f"{words[:60]!a} is not a rank", "A rank is a number from 0.")
    return int(words)


def states(given: Iterable[str]) -> tuple[str, ...]:
    """Job states by name, in any case. Raises `UsageError` for what is none."""
    from stado_like.job.states import JobState

    known = {state.value.lower(): state.value for state in JobState}
    wrong = [one for one in given if one.lower() not in known]
    if wrong:
        raise UsageError(f"{wrong[0][:60]!a} is not a state of a job", f"States: {', '.join(known.values())}.")
    return tuple(known[one.lower()] for one in given)
