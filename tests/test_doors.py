"""The checkers of the doors can fail: each contract and each banned name is broken once, in a copy, and noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = Path(sys.executable).parent

OFFENCES = {
    "The command line starts the worker and the coordinator; both rest on the library": (
        "stado_like/bucket/offence.py",
        "import stado_worker",
    ),
    "Inside the library: reading, then bucket beside bundle, then planning beside store, then job, then errors": (
        "stado_like/planning/offence_of_layers.py",
        "import stado_like.bucket",
    ),
    "The store knows nothing of jobs": ("stado_like/store/offence_of_jobs.py", "import stado_like.job"),
    "Pure rooms: job, planning and sbatch ask nothing of the machine; `now_s` is an argument": (
        "stado_like/job/offence.py",
        "import os",
    ),
    "Errors import nothing of ours, and settings only errors": ("stado_like/errors.py", "import stado_like.ambient"),
    "boto3, botocore and urllib3 only in the store's drivers and where a worker asks AWS for credentials": (
        "coordinator/stado_coordinator/offence.py",
        "def late() -> None:\n    import boto3",
    ),
    "filelock only in the worker's host lock": ("cli/stado_cli/offence.py", "import filelock"),
    "click and rich only in the command line": ("worker/stado_worker/offence.py", "from rich import table"),
}


def test_every_import_contract_notices_its_offence(tmp_path: Path) -> None:
    contracts = [contract["name"] for contract in PYPROJECT["tool"]["importlinter"]["contracts"]]
    assert contracts == list(OFFENCES)
    rooms = ("stado_like", "worker", "coordinator", "cli")
    for room in rooms:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for place, line in OFFENCES.values():
        with (tmp_path / place).open("a") as file:
            file.write(f"\n{line}\n")
    path = os.pathsep.join(str(tmp_path / room) for room in (".", *rooms[1:]))
    ran = subprocess.run(
        [TOOLS / "lint-imports", "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode != 0
    broken = {name for name in contracts if any(name in line and "BROKEN" in line for line in ran.stdout.splitlines())}
    assert broken == set(contracts), ran.stdout


def test_every_banned_name_is_noticed_in_the_library_and_has_a_replacement() -> None:
    banned = PYPROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert all("`" in ban["msg"] for ban in banned.values())
    modules = sorted({name.partition(".")[0] for name in banned})
    program = "".join(f"import {module}\n" for module in modules) + "".join(f"print({name})\n" for name in banned)
    ran = subprocess.run(
        [TOOLS / "ruff", "check", "--select", "TID251", "--stdin-filename", "stado_like/bucket/offence.py", "-"],
        cwd=ROOT,
        input=program,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [name for name in banned if f"`{name}` is banned" not in ran.stdout] == []
