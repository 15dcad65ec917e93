"""How a command ends when it did not succeed: one clear error, the right exit code, never a traceback by itself.

Everything that can go wrong becomes a `StadoError` here, also what click and the interpreter raise, so that people and
programs meet one shape: two sentences on standard error, or with `--json` the error object as its last line.
"""

from __future__ import annotations

import json
import sys
import traceback

import click

from stado_cli.tree import nearest
from stado_like.errors import StadoError, UsageError


def as_error(raised: Exception) -> StadoError:
    if isinstance(raised, StadoError):
        return raised
    if isinstance(raised, click.NoSuchOption):
        return _unknown_option(raised)
    if isinstance(raised, click.UsageError):
        return UsageError(raised.format_message(), _see_help(raised.ctx))
    if isinstance(raised, click.ClickException):
        return UsageError(raised.format_message(), "Correct the command line.")
    if isinstance(raised, MemoryError):
        return StadoError("this machine has no memory left for the command", "Free some, or ask for less at once.")
    what = " ".join(str(raised).split())
    return StadoError(
        f"internal error: {type(raised).__name__}{': ' + what if what else ''}",
        "Run it again with --debug to see where.",
        code="INTERNAL",
    )


def _unknown_option(raised: click.NoSuchOption) -> UsageError:
    context = raised.ctx
    if context is None:
        return UsageError(raised.format_message(), _see_help(context))
    known = [
        name
        for one in context.command.get_params(context)
        if isinstance(one, click.Option) and not one.hidden
        for name in one.opts
        if name.startswith("--")
    ]
    near = nearest(raised.option_name, known)
    return UsageError(
        f"'{context.command_path}' has no option {raised.option_name}; the nearest is {near}.",
        "Options of a job's own command go after `--`. " + _see_help(context),
        detail={raised.option_name: "unknown option"},
    )


def _see_help(context: click.Context | None) -> str:
    path = context.command_path if context is not None else "stado"
    return f"`{path} --help` shows what it takes."


def tell(raised: Exception, *, as_json: bool, debug: bool) -> int:
    """Say it on standard error and return the exit code."""
    error = as_error(raised)
    if debug:
        traceback.print_exception(raised, file=sys.stderr)
    if as_json:
        sys.stderr.write(json.dumps(error.as_json()) + "\n")
        return int(error.exit_code)
    sys.stderr.write(f"Error: {_sentence(error.message)}\n")
    for path, sentence in error.detail.items():
        sys.stderr.write(f"  {path}: {sentence}\n")
    if error.next_step:
        sys.stderr.write(_sentence(error.next_step) + "\n")
    return int(error.exit_code)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else text + "."
