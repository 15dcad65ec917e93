"""`stado job schema`: every field of a specification as JSON Schema, for editors that complete and check."""

from __future__ import annotations

import click

from stado_cli.context import Context


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Print the JSON Schema of a job's document: types, units, defaults and limits of every field."""
    import orjson

    from stado_like.job.spec.validate import json_schema

    context.output.raw(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2) + b"\n")
