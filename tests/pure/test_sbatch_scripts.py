"""Ten batch scripts in the style of cluster manuals: each becomes the document that stands beside it, and runs.

`<name>.json` holds the document (`<script>` stands for the text of the script) and the notes. Slurm 22.05 reads the
same options from all ten; what it refused of them is what its cluster lacks: a licence, a feature, GPUs, a plug-in.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stado_like.errors import UsageError
from stado_like.job.keys import AttemptId
from stado_like.job.spec.validate import validate
from stado_like.job.terms import terms_of
from stado_like.sbatch import Imported, read_script
from stado_worker.shim.environment import build
from stado_worker.shim.slurm import told_slurm

FOLDER = Path(__file__).resolve().parent.parent / "data" / "sbatch"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
CREATED_MS = 1_790_000_000_000
SRUN = '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n'
"""What a person installs who wants such scripts to run as they are: it drops the options and runs the command."""


def of(script: Path) -> Imported:
    return read_script(script.read_text(), script.name)


def shown(found: Imported, text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(found.document))
    template = document["spec"]["task_template"]
    template["args"] = ["<script>" if word == text else word for word in template["args"]]
    return {"document": document, "notes": list(found.notes)}


def test_there_are_ten() -> None:
    assert len(SCRIPTS) == 10
    assert [one.stem for one in sorted(FOLDER.glob("*.json"))] == [one.stem for one in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_becomes_the_document_beside_it(script: Path) -> None:
    expected = json.loads(script.with_suffix(".json").read_text())
    assert shown(of(script), script.read_text()) == expected


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_its_document_is_valid_and_stored_as_it_is(script: Path) -> None:
    stored = validate(of(script).document)
    assert validate(stored) == stored


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_directive_of_it_is_carried_over_or_noted(script: Path) -> None:
    lines = script.read_text().split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.lstrip().startswith(("#SBATCH", "#PBS"))]
    assert len(numbers) >= 6
    whole = of(script)
    for number in numbers:
        if any(note.startswith(f"line {number}: ") for note in whole.notes) or lines[number - 1] in IMPLIED:
            continue
        without = "\n".join([*lines[: number - 1], "#", *lines[number:]])
        try:
            rest = shown(read_script(without, script.name), without)
        except UsageError:
            continue  # another directive needs it
        assert rest != shown(whole, script.read_text())


IMPLIED = ("#SBATCH --nodes=1-1", "#SBATCH --ntasks=1", "#SBATCH -N 2", "#SBATCH -n 4")
"""What the others say already, or what one task on one machine is anyway."""


PRINTED = {
    "array": ["task 96 of 1-96 in array", "sample_096"],
    "days_hours": ["running in /tmp, submitted in "],
    "dependency": ["report of report, submitted from laptop"],
    "gpu_train": [" in partition gpu on gpu1", "2 GPUs, 16 cores, 122880 MiB, NCCL_DEBUG=INFO", "workers: 8"],
    "hybrid_openmp": ["node 1: 2 tasks of 8 threads"],
    "mem_per_cpu": ["parameter 8 with 2048 MiB"],
    "mpi": ["rank 7 of 8 on node 1 of 2", "srun reached"],
    "options_and_quotes": ["started in options_and_quotes.sh", "tidy up: NONE"],
    "python_body": ["histogram: 11 squared is 121, arguments ['A', 'B']"],
    "signal_requeue": ["going on after restart 2", "step 3"],
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs_as_its_last_task(script: Path, tmp_path: Path) -> None:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "hostname").write_text("#!/bin/sh\necho srun reached\n")
    (tmp_path / "hostname").chmod(0o755)
    found = of(script)
    terms = terms_of(validate(found.document))
    rank = max(0, (terms.array_size or _members(found)) - 1)
    attempt = AttemptId.parse(f"default.{terms.name}.1.{rank:05}.000003")
    cwd = terms.workdir or str(tmp_path)
    told = told_slurm(
        terms, attempt, created_ms=CREATED_MS, host="gpu1", submit_host="laptop", submit_dir=str(tmp_path)
    )
    told["STADO_OUTPUTS"] = str(tmp_path / "outputs")
    env = build({"PATH": f"{tmp_path}:{os.environ['PATH']}"}, terms.env, told)
    ran = subprocess.run(
        [*terms.command, "A", "B"], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )
    output = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 0, output
    assert [line for line in PRINTED[script.stem] if line not in output] == [], output


def _members(found: Imported) -> int:
    asked = found.document["spec"]["task_template"].get("requested_resources", {})
    return int(asked.get("machines") or asked.get("node_selection", {}).get("count") or 1)
