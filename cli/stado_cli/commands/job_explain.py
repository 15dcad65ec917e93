"""`stado job explain`: why a job waits: what it says itself, what the next tick would do about it, every machine with
what keeps the job off it, and whether a tick looks at this store at all."""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.pass_obj
def command(context: Context, job: str) -> None:
    """Explain why JOB waits: its reason, what the next tick would do about it, who is at the head of the queue and
    which room is held, each machine's reasons with the numbers, and when a tick last looked."""
    from stado_like.reading.explaining import explain, explain_json

    client = open_client(context)
    found = explain(client.bucket, client.resolve(job))
    shown = explain_json(found)
    context.output.value(shown, _text(shown))


def _text(shown: dict[str, Any]) -> str:
    from stado_like.reading.planned import machine_line, next_text

    told = [f"{shown['name']}  {shown['state']}", f"  {shown['reason']}"]
    if shown["waiting"]:
        told += [f"  waiting    {', '.join(one['name'] for one in shown['waiting'][:5])}"]
        told[-1] += f" and {len(shown['waiting']) - 5} more" if len(shown["waiting"]) > 5 else ""
    if shown["next"]:
        told += next_text(shown["next"])
    told += [f"  {shown['tick']}", ""]
    if not shown["machines"]:
        return "\n".join([*told, "No machines are registered: `stado worker start` on one, or `stado up`."])
    told.append("machines:")
    told += [machine_line(one) for one in shown["machines"]]
    return "\n".join(told)
