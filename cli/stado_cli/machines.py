"""What `cordon`, `uncordon` and `drain` have in common: several machines, each said so when it is not there to hear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stado_cli.context import Context
from stado_cli.opening import all_or_partly
from stado_cli.output import times
from stado_like.errors import StadoError

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.job.wanted import Wanted


def set_on(
    context: Context, client: Client, workers: Sequence[str], change: Callable[[str], Wanted], said: str
) -> None:
    """Make the change on each, and print it. Raises what one failed with, or exit code 6 when some of several did."""
    done, failed = [], {}
    for worker in workers:
        try:
            made = change(worker)
        except StadoError as error:
            failed[worker] = error
            continue
        done.append(
            {
                "worker": worker,
                "cordoned": made.cordoned,
                "drain": made.drain,
                "reason": made.reason or None,
                "by": made.by or None,
                "at": times.iso(made.at or None),
            }
        )
    context.output.value(done, "\n".join(f"{one['worker']}: {said}" for one in done))
    _say_who_is_away(context, client, [str(one["worker"]) for one in done])
    all_or_partly(done, failed, said, "workers")


def _say_who_is_away(context: Context, client: Client, workers: Sequence[str]) -> None:
    there = {one.capacity.worker: one for one in client.workers()[0]}
    for worker in workers:
        view = there.get(worker)
        if view is None:
            known = ", ".join(sorted(there)) or "none"
            context.output.note(
                f"no worker {worker} says that it is there (those that do: {known}); it obeys when it starts"
            )
        elif view.stale:
            context.output.note(
                f"worker {worker} was last heard {times.duration(view.age_s)} ago; it obeys when it is back, "
                "and a tick judges what it holds"
            )
