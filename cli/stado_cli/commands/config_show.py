"""`stado config show`: every setting, its value, and which of flag, environment, file or default it came from."""

from __future__ import annotations

import click

from stado_cli.context import Context
from stado_cli.output import column
from stado_like.config import SECRETS, SETTINGS
from stado_like.secret_sources import shown


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Show every setting, its value, and where it came from: a flag, the environment, the file, or the default."""
    settings = context.settings
    names = ["config_file", *(one.name for one in SETTINGS)]
    rows = [
        {
            "name": name,
            "value": getattr(settings, name),
            "origin": settings.origins[name].kind,
            "source": settings.origins[name].name,
        }
        for name in names
    ]
    source = settings.origins[SECRETS]
    rows += [
        {"name": name, "value": where, "origin": source.kind, "source": source.name}
        for name, where in shown(settings.secrets).items()
    ]
    columns = [column("SETTING", "name"), column("VALUE", "value"), column("FROM", "origin"), column("", "source")]
    context.output.table(columns, rows)
