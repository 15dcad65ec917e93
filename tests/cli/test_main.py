"""The table of commands, options anywhere on the line, errors in one shape, and a help that is quick."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

import stado_cli.commands
from stado_cli.context import Context
from stado_cli.exit_codes import MEANINGS
from stado_cli.main import ALIASES, COMMANDS, NOUNS, root
from stado_like.errors import Exit
from tests.cli.conftest import Stado

HEAVY = ("boto3", "botocore", "pydantic", "rich", "psutil", "yaml", "pynvml", "orjson", "filelock")


def _file(full: str) -> str:
    return full.replace(" ", "_").replace("-", "_")


def test_table_and_command_modules_agree() -> None:
    folder = Path(stado_cli.commands.__path__[0])
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    assert modules == {_file(full) for full in COMMANDS}


@pytest.mark.parametrize("full", COMMANDS)
def test_every_command_has_its_words_and_the_global_options(full: str) -> None:
    module = import_module(f"stado_cli.commands.{_file(full)}")
    assert module.__doc__
    tree: click.Command | None = root()
    with click.Context(root()) as line:
        for word in full.split():
            assert isinstance(tree, click.Group)
            tree = tree.get_command(line, word)
    assert tree is module.command
    assert tree.help
    options = {name for one in tree.params for name in one.opts}
    assert {"--store", "--json", "--stats", "--debug", "--no-color"} <= options


def test_every_noun_of_the_table_has_its_line() -> None:
    assert {full.split()[0] for full in COMMANDS if " " in full} <= NOUNS.keys()


def test_every_short_form_that_is_listed_leads_to_a_command(stado: Stado) -> None:
    for short, full in ALIASES.items():
        if full in COMMANDS:
            assert stado(short, "--help").code == Exit.DONE


def test_every_exit_code_is_explained() -> None:
    assert set(MEANINGS) == set(Exit)


def test_help_exit_codes_json_lists_all(stado: Stado) -> None:
    assert [row["code"] for row in stado("help", "exit-codes", "--json").value] == sorted(Exit)


@pytest.mark.parametrize("noun", ["", *dict.fromkeys(full.split()[0] for full in COMMANDS if " " in full)])
def test_help_imports_nothing_heavy(noun: str) -> None:
    program = (
        "import sys; from stado_cli.main import main; code = main(sys.argv[1:]); "
        f"print(code, sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *noun.split(), "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.stderr.strip() == "0 []"
    assert "Commands:" in ran.stdout


def test_global_options_are_taken_before_and_after_the_verb(stado: Stado, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    for words in (
        ("--json", "--store", url, "config", "show"),
        ("config", "--json", "--store", url, "show"),
        ("config", "show", "--json", "--store", url),
    ):
        said = stado(*words)
        assert said.code == Exit.DONE
        row = next(row for row in said.value if row["name"] == "store")
        assert (row["value"], row["origin"], row["source"]) == (url, "flag", "--store")


def test_unknown_option_is_refused_with_the_nearest(stado: Stado) -> None:
    """`--ram 8G` silently becomes part of the command. Unknown flag before `--`: exit 2 with the nearest known flag."""
    said = stado("storage", "ls", "--limt", "3")
    assert said.code == Exit.REFUSED
    assert "--limt" in said.err
    assert "--limit" in said.err
    assert said.out == ""


def test_unknown_option_as_json_is_the_error_object(stado: Stado) -> None:
    said = stado("storage", "ls", "--limt", "3", "--json")
    assert said.code == Exit.REFUSED
    assert said.error["code"] == "USAGE"
    assert said.error["detail"] == {"--limt": "unknown option"}


def test_unknown_command_names_the_nearest(stado: Stado) -> None:
    said = stado("storage", "lst")
    assert said.code == Exit.REFUSED
    assert "'stado storage ls'" in said.err


def test_bare_noun_shows_its_commands_and_is_refused(stado: Stado) -> None:
    said = stado("storage")
    assert said.code == Exit.REFUSED
    assert "check" in said.err


def test_version_is_told_both_ways(stado: Stado) -> None:
    assert stado("--version").out.startswith("stado ")
    assert stado("version", "--json").value["version"] in stado("--version").out


def test_unexpected_exception_is_one_line_without_a_traceback(stado: Stado, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "settings", property(lambda self: 1 / 0))
    said = stado("config", "show")
    assert said.code == Exit.FAILED
    assert said.err.splitlines()[0] == "Error: internal error: ZeroDivisionError: division by zero."
    assert "--debug" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in stado("config", "show", "--debug").err


def test_reader_that_goes_away_ends_the_command_quietly() -> None:
    program = "import sys; from stado_cli.main import main; sys.exit(main(['help', 'exit-codes']))"
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert ran.returncode == Exit.FAILED
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


def test_ctrl_c_is_exit_130_without_a_traceback(tmp_path: Path) -> None:
    """The command reads a pipe whose writing end opens only when the command has opened its own: then it is stopped."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = (
        "import sys, signal; from stado_cli.main import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "--store", "memory://x", "storage", "put", "k", str(pipe)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running, pipe.open("wb"):
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == Exit.INTERRUPTED
    assert err.strip().endswith("Interrupted.")
    assert "Traceback" not in err
