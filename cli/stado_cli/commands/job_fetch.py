"""`stado job fetch`: the files that a job's tasks left, into a directory here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stado_cli.context import Context
from stado_cli.opening import one_rank, open_client
from stado_like.errors import PartlyDone, Refused

if TYPE_CHECKING:
    from stado_like.fetching import Fetched

SHOWN_MISSING = 10


@click.command()
@click.argument("job")
@click.argument("dest", metavar="DIR")
@click.option("--task", metavar="R", help="Only this task. Default: all.")
@click.option(
    "--attempt", type=click.IntRange(min=1), metavar="N", help="This attempt. Default: the newest with files."
)
@click.option("--force", is_flag=True, help="Replace files that are there already with other contents.")
@click.pass_obj
def command(context: Context, job: str, dest: str, task: str | None, attempt: int | None, force: bool) -> None:
    """Write what --collect kept of JOB below DIR: into DIR itself, or, of several tasks, into a folder for each.

    Absolute paths lie below DIR too. Exit code 3: nothing was collected; 4: other files are in the way; 6: some files
    are not here, each named with why.
    """
    from stado_like.fetching import fetch

    client = open_client(context)
    rank = one_rank(task) if task is not None else None
    j = client.resolve(job)
    try:
        done = fetch(client.bucket, j, Path(dest), task=rank, attempt=attempt, force=force, on_note=context.output.note)
    except OSError as error:
        raise Refused(f"{dest} cannot be written to: {error.strerror or error}", "Give another directory.") from None
    context.output.value([_shown(one) for one in done], "\n".join(_line(one) for one in done))
    for one in done:
        for left in [left for left in one.left_out if left.missing][:SHOWN_MISSING]:
            context.output.note(f"{one.task}: {left.path} was not collected: {left.why}")
    partly = {f"{one.task}: {path}": why for one in done for path, why in one.failed.items()}
    partly |= {
        f"{one.task}: {left.path}": f"not collected: {left.why}"
        for one in done
        for left in one.left_out
        if not left.missing
    }
    if any(not one.is_whole for one in done):
        raise PartlyDone(
            f"{sum(len(one.files) for one in done)} files were fetched, others were not",
            "Each is named.",
            detail=partly,
        )


def _shown(one: Fetched) -> dict[str, Any]:
    return {
        "task": one.task,
        "rank": one.rank,
        "attempt": one.attempt,
        "into": one.into,
        "files": [{"path": file.path, "size_bytes": file.size_bytes, "sha256": file.digest} for file in one.files],
        "size_bytes": one.size_bytes,
        "failed": one.failed,
        "left_out": [{"path": left.path, "why": left.why, "missing": left.missing} for left in one.left_out],
        "left_out_count": one.left_out_count,
    }


def _line(one: Fetched) -> str:
    from stado_like.job.spec.units import size_words

    return f"{one.task}  attempt {one.attempt}  {len(one.files)} files, {size_words(one.size_bytes)}, in {one.into}"
