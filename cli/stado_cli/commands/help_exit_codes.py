"""`stado help exit-codes`: one page, made from the enum that the errors use."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.exit_codes import MEANINGS, NOTE
from stado_cli.output import column


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Tell what each exit code means."""
    rows = [{"code": int(code), "name": code.name, "meaning": meaning} for code, meaning in MEANINGS.items()]
    context.output.table([column("CODE", "code", right=True), column("MEANING", "meaning")], rows)
    context.output.note(NOTE)
