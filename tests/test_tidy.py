"""The few rules of style that a machine can judge: sizes, names, leftovers, and that nothing points outside."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("stado_like", "worker", "coordinator", "cli", "examples", "tests")
FILE_LINES = 400
FUNCTION_LINES = 70
LONGER_FILES: dict[str, int] = {}
LONGER_FUNCTIONS: dict[str, int] = {}
"""Allowed exceptions: `path` or `path:function`, and the size they may have. Empty is best."""

FORBIDDEN_NAMES = ("utils", "util", "common", "helpers", "helper", "manager", "base", "misc")
LEFTOVERS = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))
OUTSIDE = re.compile("|".join(("/work" + "/", r"\.\./" + "shared", r"\.lib" + "rary")))


def _sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def _texts() -> list[Path]:
    kinds = {".py", ".md", ".toml", ".txt", ".sh", ".yaml", ".json", ""}
    found = [path for folder in (*ROOMS, "docs", "scripts", ".ci") for path in (ROOT / folder).rglob("*")]
    found += ROOT.iterdir()
    return sorted(path for path in found if path.is_file() and path.suffix in kinds and "__pycache__" not in path.parts)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_hold_one_question() -> None:
    sizes = {_name(path): len(path.read_text().splitlines()) for path in _sources()}
    assert {name: lines for name, lines in sizes.items() if lines > LONGER_FILES.get(name, FILE_LINES)} == {}


def test_functions_fit_on_a_page() -> None:
    long: dict[str, int] = {}
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{_name(path)}:{node.name}"
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGER_FUNCTIONS.get(name, FUNCTION_LINES):
                    long[name] = lines
    assert long == {}


def test_no_module_collects_anything() -> None:
    assert [_name(path) for path in _sources() if path.stem in FORBIDDEN_NAMES] == []


def test_every_module_says_why_it_is_there() -> None:
    silent = [
        _name(path)
        for path in _sources()
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []


@pytest.mark.parametrize("pattern", [LEFTOVERS, OUTSIDE], ids=["leftovers", "outside"])
def test_nothing_is_left_over_or_points_outside(pattern: re.Pattern[str]) -> None:
    found = [
        f"{_name(path)}:{number}: {line.strip()}"
        for path in _texts()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_dependency_says_what_for() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    every = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    bare = [one for one in every if not re.search(re.escape(f'"{one}"') + r",\s*# \w", text)]
    assert bare == []
    pinned = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    names = [re.split(r"[\[<>=]", one)[0].lower().replace("_", "-") for one in every]
    assert [name for name in names if f"\n{name}==" not in pinned] == []
