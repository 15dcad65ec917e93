"""The page for people who come from Slurm says of every option what the code does with it."""

from __future__ import annotations

import re
from pathlib import Path

from stado_like.sbatch.options import OPTIONS

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "from-slurm.md").read_text()


def test_every_option_without_a_counterpart_stands_with_its_sentence() -> None:
    expected = [
        f"| `--{one.name}`{f', `-{one.short}`' if one.short else ''} | {one.note} |"
        for one in OPTIONS.values()
        if one.note
    ]
    assert PAGE.split("## What has no counterpart", 1)[1].splitlines()[6:] == expected


def test_every_option_that_is_carried_over_stands_in_the_table() -> None:
    table = PAGE.split("## What becomes of the options", 1)[1].split("### ", 1)[0]
    named = set(re.findall(r"`--([a-z-]+)", table))
    assert {one.name for one in OPTIONS.values() if not one.note} - named == set()


def test_every_variable_that_is_told_is_in_the_page() -> None:
    sources = (ROOT / "worker/stado_worker/shim/slurm.py", *sorted((ROOT / "stado_like/sbatch").glob("*.py")))
    told = {name for path in sources for name in re.findall(r'"(SLURMD?_[A-Z_]+)"', path.read_text())}
    assert len(told) >= 30
    assert {name for name in told if f"`{name}`" not in PAGE} == set()
