"""`stado job explain`: why a job waits: what it says itself, every machine with what keeps the job off it, and whether
a tick looks at this store at all."""

from __future__ import annotations

from typing import Any

import click

from stado_cli.context import Context
from stado_cli.opening import open_client


@click.command()
@click.argument("job")
@click.pass_obj
def command(context: Context, job: str) -> None:
    """Explain why JOB waits: its reason, each machine's reasons with the numbers, and when a tick last looked."""
    from stado_like.reading.explaining import explain, explain_json

    client = open_client(context)
    found = explain(client.bucket, client.resolve(job))
    shown = explain_json(found)
    context.output.value(shown, _text(shown))


def _text(shown: dict[str, Any]) -> str:
    told = [f"{shown['name']}  {shown['state']}", f"  {shown['reason']}"]
    if shown["waiting"]:
        told += [f"  waiting    {', '.join(one['name'] for one in shown['waiting'][:5])}"]
        told[-1] += f" and {len(shown['waiting']) - 5} more" if len(shown["waiting"]) > 5 else ""
    told += [f"  {shown['tick']}", ""]
    if not shown["machines"]:
        return "\n".join([*told, "No machines are registered: `stado worker start` on one, or `stado up`."])
    told.append("machines:")
    told += [f"  {one['name']:<20} {'; '.join(one['reasons']) or 'it fits'}" for one in shown["machines"]]
    return "\n".join(told)
