"""`stado <noun> <verb>` is `commands/<noun>_<verb>.py`, imported only when it is run or its own help is asked.

click wants a command object before it can print one line about it; with a dozen commands that would import half the
program for `stado --help`. So the lines come from a table, and `get_command` alone imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click

from stado_cli.context import Context

GLOBAL_FLAGS = ("json", "stats", "debug", "no-color")

OTHER_NAMES: Mapping[str, str] = {
    "--ram": "--memory",
    "--mem": "--memory",
    "--cpus-per-task": "--cpus",
    "--ncpus": "--cpus",
    "--cores": "--cpus",
    "--ngpus": "--gpus",
    "--gres": "--gpus",
    "--nodes": "--machines",
    "--num-nodes": "--machines",
    "--walltime": "--time",
    "--timeout": "--time",
    "--time-limit": "--time",
    "--job-name": "--name",
    "--chdir": "--workdir",
    "--cwd": "--workdir",
    "--retries": "--restarts",
    "--export": "--env",
    "--dependency": "--after",
    "--depends-on": "--after",
    "--nnodes": "--machines",
    "--color": "--no-color",
}
"""What the same thing is called elsewhere, for the hint after a mistyped option."""


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    held = context.find_object(Context)
    if held is not None and option.name is not None and value:
        held.flag(option.name.removeprefix("global_"), value)


def add_global_options(command: click.Command) -> None:
    """Every group and every command takes these, so they may stand anywhere on the line before the job's own words."""
    texts = {
        "json": "Print JSON; errors too.",
        "stats": "Tell the requests made to the store, and their price.",
        "debug": "Show the traceback of an error.",
        "no-color": "No colours (also: NO_COLOR).",
    }
    command.params.append(
        click.Option(
            ["--store", "global_store"],
            metavar="URL",
            expose_value=False,
            callback=_remember,
            help="The store: file:///path, s3://bucket/prefix, memory://name.",
        )
    )
    for flag in GLOBAL_FLAGS:
        names = [f"--{flag}", f"global_{flag.replace('-', '_')}"]
        command.params.append(
            click.Option(names, is_flag=True, expose_value=False, callback=_remember, help=texts[flag])
        )


class Branch(click.Group):
    """A noun, or the root: its children are lines of the table that begin with its path."""

    def __init__(
        self,
        path: str,
        commands: Mapping[str, str],
        nouns: Mapping[str, str],
        aliases: Mapping[str, str],
        **more: Any,
    ) -> None:
        super().__init__(name=path or "stado", **more)
        self._path = path
        self._commands = commands
        self._nouns = nouns
        self._aliases = aliases
        add_global_options(self)

    def _children(self) -> dict[str, str]:
        """Name of each child and its one line, in the table's order."""
        children: dict[str, str] = {}
        for full, line in self._commands.items():
            if self._path:
                noun, _, verb = full.partition(" ")
                if noun == self._path and verb:
                    children[verb] = line
            else:
                first = full.partition(" ")[0]
                children[first] = line if first == full else self._nouns[first]
        return children

    def _shorthands(self) -> dict[str, str]:
        if self._path:
            return {}
        return {short: full for short, full in self._aliases.items() if full in self._commands}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._children(), *self._shorthands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        full = self._shorthands().get(cmd_name) or f"{self._path} {cmd_name}".strip()
        if full in self._commands:
            return load_command(full, self._commands[full])
        if not self._path and cmd_name in self._children():
            return Branch(cmd_name, self._commands, self._nouns, {}, help=self._nouns[cmd_name] + ".")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = nearest(args[0], self.list_commands(ctx))
            ctx.fail(f"There is no command '{ctx.command_path} {args[0]}'; the nearest is '{ctx.command_path} {near}'.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._children().items()))
        shorthands = self._shorthands()
        if shorthands:
            with formatter.section("In short"):
                formatter.write_dl([(short, f"stado {full}") for short, full in shorthands.items()])


def load_command(full: str, line: str) -> click.Command:
    """Import `commands/<noun>_<verb>.py` and make its `command` ready: its name, its line, the global options."""
    module = import_module("stado_cli.commands." + full.replace(" ", "_").replace("-", "_"))
    command: click.Command = module.command
    command.name = full.rpartition(" ")[2]
    command.short_help = line
    if not any(one.name == "global_store" for one in command.params):
        add_global_options(command)
    return command


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`, however unlike; a hint is better than none."""
    from difflib import SequenceMatcher

    known = list(known)
    if OTHER_NAMES.get(word) in known:
        return OTHER_NAMES[word]
    return max(known, key=lambda one: SequenceMatcher(None, word, one).ratio())
