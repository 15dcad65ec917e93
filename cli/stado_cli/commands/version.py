"""`stado version`, and what `stado --version` prints: this program and the Python it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version

import click

from stado_cli.context import Context


def line() -> str:
    return f"stado {version('stado-like')} (Python {platform.python_version()})"


@click.command()
@click.pass_obj
def command(context: Context) -> None:
    """Print the version of this program and of the Python it runs on."""
    shown = {"version": version("stado-like"), "python": platform.python_version()}
    context.output.value(shown, line())
