"""The command line: the table of commands, and the one place where a command begins and ends.

A new command is one line in COMMANDS and one file, `commands/<noun>_<verb>.py`, with a click command called `command`
that is handed a `Context` and returns an exit code or nothing. This module and what it imports are all that
`stado --help` loads: click, and no boto3, pydantic or rich.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from stado_cli.context import Context
from stado_cli.failure import tell
from stado_cli.tree import Branch
from stado_like.errors import Exit

COMMANDS: dict[str, str] = {
    "run": "Run a command as a job: submit, stream its output, exit as it did",
    "up": "A one-machine cluster: a worker and the coordinator in one process",
    "job submit": "Put a job into the queue",
    "job schema": "Every field of a specification, as JSON Schema",
    "job list": "Jobs: unfinished ones and the last day's",
    "job show": "Everything about one job",
    "job watch": "A job as it changes, until it is over",
    "job wait": "Wait until jobs are over",
    "job logs": "What a job's tasks print",
    "job events": "What happened to a job and its tasks, one per line",
    "job explain": "Why a job waits: each machine with its reasons",
    "job cancel": "Stop jobs for good",
    "job rerun": "Submit a job again, as a new one",
    "job requeue": "Put a task back into the queue; it spends no restart",
    "job progress": "Attempts, restarts by cause, previous ends, how far each is",
    "job fetch": "Files that tasks left (--collect), into a directory here",
    "job delete": "Remove jobs that have ended",
    "task list": "Every task of a job",
    "task show": "One task of a job",
    "task stop": "Stop single tasks; the others go on",
    "worker start": "Work on this machine, until stopped",
    "worker list": "The machines that work, and what they have free",
    "worker show": "One machine",
    "worker cordon": "Machines that take nothing new",
    "worker uncordon": "Machines that work again",
    "worker drain": "Machines that let go of what they hold",
    "queue status": "What waits, and who could take it",
    "queue pause": "No worker claims anything; what runs goes on",
    "queue resume": "Workers claim again",
    "scheduler tick": "One tick of the coordinator, now: what cron runs",
    "scheduler run": "The resident coordinator",
    "scheduler plan": "What the next tick would do, without doing it",
    "workspace list": "Workspaces that were set: limits, grants",
    "workspace show": "What one workspace may have",
    "workspace set": "Set limits and grants of a workspace",
    "storage check": "Probe the store: which promises it keeps",
    "storage fsck": "Check every promise of the protocol; --repair carries on what was cut short",
    "storage ls": "List the keys under a prefix",
    "storage stat": "Size, age and etag of one object",
    "storage cat": "Print one object",
    "storage put": "Write one object",
    "storage rm": "Delete objects",
    "config show": "Every setting and where it came from",
    "config cluster": "Defaults and ceilings that hold for everybody",
    "help exit-codes": "What each exit code means",
    "version": "The version of this program and of Python",
}

NOUNS: dict[str, str] = {
    "job": "Submit jobs, look at them, stop them",
    "task": "Single tasks of a job",
    "worker": "The machines that work",
    "queue": "What waits, and why",
    "scheduler": "The coordinator: one tick, or a resident one",
    "workspace": "What workspaces may have",
    "storage": "The store itself: probe it, look at its objects",
    "config": "The settings of this program",
    "help": "Pages about the whole program",
}

ALIASES: dict[str, str] = {
    "submit": "job submit",
    "ps": "job list",
    "logs": "job logs",
    "cancel": "job cancel",
    "watch": "job watch",
}

ABOUT = """A job queue and scheduler without a server: its whole state is objects in a bucket.

`stado <noun> <verb> --help` explains one command. The store is --store, STADO_STORE, or `store` in
~/.config/stado/config.toml; without any, a directory of your own.
"""


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from stado_cli.commands.version import line

        click.echo(line())
        context.exit()


def root() -> Branch:
    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="The version, and exit."
    )
    return Branch(
        "",
        COMMANDS,
        NOUNS,
        ALIASES,
        help=ABOUT,
        params=[version],
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    words = list(sys.argv[1:] if args is None else args)
    if "_STADO_COMPLETE" in os.environ:
        root().main(words, prog_name="stado")  # click's own protocol with the shell; it exits
    context = Context()
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no reason to fail
        code = _run(context, words)
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("Interrupted.\n")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`). Python flushes once more at exit: let it write into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    finally:
        context.close()


def _run(context: Context, words: list[str]) -> int:
    try:
        try:
            with root().make_context("stado", list(words), obj=context) as line:
                answer = line.command.invoke(line)
            return answer if isinstance(answer, int) else Exit.DONE
        finally:
            context.report_requests()
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.exceptions.NoArgsIsHelpError as bare:
        sys.stderr.write(bare.format_message() + "\n")
        return Exit.REFUSED
    except (BrokenPipeError, click.Abort):
        raise
    except Exception as raised:
        return tell(raised, as_json=_wants(context, "json", words), debug=_wants(context, "debug", words))


def _wants(context: Context, name: str, words: list[str]) -> bool:
    """Whether errors are to be told this way. A line or a settings file that could not be read has settled nothing:
    then a flag anywhere before `--`, or the variable, decides."""
    if "settings" in context.__dict__:
        return bool(getattr(context.settings, name))
    before_dashes = words[: words.index("--")] if "--" in words else words
    return f"--{name}" in before_dashes or os.environ.get(f"STADO_{name.upper()}", "0").lower() in ("1", "true", "yes")


if __name__ == "__main__":
    sys.exit(main())
