"""What `job submit` reads from files: specifications under options, variables, lines, scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Stado


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(stado: Stado, *words: str, stdin: bytes = b"") -> Any:
    said = stado("job", "submit", "--dry-run", "--json", *words, stdin=stdin)
    assert said.code == 0, said.err
    return said.value


def template(stado: Stado, *words: str, stdin: bytes = b"") -> Any:
    return stored(stado, *words, stdin=stdin)["spec"]["task_template"]


FILE = """
metadata: {name: sft, labels: {team: nlp}}
spec:
  priority: -3
  array: {size: 4, indices: [1, 2, 3, 9], max_parallel: 2}
  task_template:
    command: python
    args: [a.py]
    env: {A: "0", B: "0"}
    requested_resources:
      per_gpu: {cpu_cores: 4, memory_bytes: 1073741824}
      gpu_requests: {count: 2, models: [H100]}
    resilience: {max_retries_failure: 3, backoff_seconds: 30}
"""


def test_options_are_laid_over_a_file(stado: Stado, here: Path) -> None:
    (here / "run.yaml").write_text(FILE)
    plain = stored(stado, "-f", "run.yaml")
    assert plain["metadata"]["name"] == "sft" and plain["spec"]["array"]["indices"] == [1, 2, 3, 9]
    over = stored(stado, "-f", "run.yaml", "-J", "b", "-e", "A=1", "-G", "4", "-a", "3", "--restarts", "5")
    assert over["metadata"] == {**plain["metadata"], "name": "b"}
    assert over["spec"]["priority"] == -3
    assert over["spec"]["array"] == {"size": 3, "max_parallel": 0}
    told = over["spec"]["task_template"]
    assert (told["command"], told["args"], told["env"]) == ("python", ["a.py"], {"A": "1", "B": "0"})
    assert told["requested_resources"]["gpu_requests"]["count"] == 4
    assert told["requested_resources"]["gpu_requests"]["models"] == ["H100"]
    assert (told["resilience"]["max_restarts"], told["resilience"]["backoff_seconds"]) == (5, 30)
    sized = template(stado, "-f", "run.yaml", "-c", "2", "-m", "1GiB")["requested_resources"]
    assert sized["cpu_cores"] == 2 and "per_gpu" not in sized


def test_a_command_beside_a_file_is_the_command(stado: Stado, here: Path) -> None:
    (here / "run.yaml").write_text(FILE)
    told = template(stado, "-f", "run.yaml", "--", "sh", "-c", "exit 3")
    assert (told["command"], told["args"], told["env"]["B"]) == ("sh", ["-c", "exit 3"], "0")
    launched = template(stado, "-f", "run.yaml", "--torchrun", "--", "train.py")
    assert launched["args"] == ["--standalone", "--nproc-per-node=2", "train.py"]


@pytest.mark.parametrize(
    "body", [b"spec: {task_template: {command: x}}", b'{"spec": {"task_template": {"command": "x"}}}']
)
def test_a_specification_from_standard_input(stado: Stado, body: bytes) -> None:
    assert stored(stado, "-f", "-", "-J", "a", stdin=body)["spec"]["task_template"]["command"] == "x"


def test_options_of_a_template_do_not_go_with_groups(stado: Stado, here: Path) -> None:
    (here / "g.yaml").write_text(
        "metadata: {name: g}\nspec: {task_groups: [{name: a, task_template: {command: x}}, "
        "{name: b, task_template: {command: y}}]}\n"
    )
    assert len(stored(stado, "-f", "g.yaml", "-p", "0")["spec"]["task_groups"]) == 2
    said = stado("job", "submit", "-f", "g.yaml", "-e", "A=1", "-t", "1h")
    assert said.code == 2 and "task_groups" in said.err and "env and time_limit_seconds" in said.err


def test_what_a_file_holds_in_the_wrong_form_is_not_hidden_by_options(stado: Stado) -> None:
    body = b'{"metadata": [], "spec": {"task_template": {"command": "x", "env": [], "requested_resources": 5}}}'
    said = stado("submit", "--json", "-f", "-", "-J", "a", "-e", "A=1", "-G", "2", "true", stdin=body)
    assert said.code == 2
    at = "task_template."
    assert {"metadata", f"{at}env", f"{at}requested_resources"} <= set(said.error["detail"])


@pytest.mark.parametrize("option", ["-f", "--env-file", "--each-line", "--from-sbatch"])
@pytest.mark.parametrize("file", ["absent", "."])
def test_a_file_that_cannot_be_read_is_one_error(stado: Stado, here: Path, option: str, file: str) -> None:
    said = stado("job", "submit", "--json", option, file, "true")
    assert said.code == 2
    assert file in said.error["message"] and "cannot be read" in said.error["message"]
    assert list(here.iterdir()) == []


def test_variables_of_a_file_and_of_options(stado: Stado, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t")
    (here / "vars").write_text("# mine\nexport A='1 # x'\nB=\"two\\nlines\"\n\nTOKEN\nC=c # comment\n")
    (here / "more").write_text("B=3\n")
    env = template(stado, "--env-file", "vars", "--env-file", "more", "-e", "C=9", "true")["env"]
    assert env == {"A": "1 # x", "B": "3", "TOKEN": "t", "C": "9"}
    (here / "bad").write_bytes(b"A=1\n\nB\xff=2\n")
    said = stado("submit", "--env-file", "bad", "true")
    assert said.code == 2 and "line 3" in said.err
    (here / "wrong").write_text("A=1\nB='x\n")
    said = stado("--json", "submit", "--env-file", "wrong", "true")
    assert said.error["detail"] == {"line 2": "the quote of B is never closed"}


def test_each_line_is_a_task(stado: Stado, here: Path) -> None:
    (here / "names").write_text("a b\n\nc\n")
    said = stado("submit", "--dry-run", "--json", "--each-line", "names", "-a", "%1", "cat", "{}")
    assert said.value["spec"]["array"] == {"size": 2, "max_parallel": 1, "entries": ["a b", "c"]}
    assert "each line of names: 2 tasks; 1 empty line is left out" in said.err
    assert stored(stado, "--each-line", "-", "cat", stdin=b"x\ny")["spec"]["array"]["entries"] == ["x", "y"]
    (here / "bad").write_bytes(b"a\n\xe4\n")
    said = stado("submit", "--each-line", "bad", "cat")
    assert said.code == 2 and "line 2 of bad is not UTF-8" in said.err


def test_a_script_travels_as_text(stado: Stado, here: Path) -> None:
    text = "#!/bin/bash -e\n#SBATCH --time=5\necho $1 'x'\n"
    (here / "go.sh").write_text(text)
    said = stado("submit", "--dry-run", "--json", "go.sh", "x", "--y")
    told = said.value["spec"]["task_template"]
    assert [told["command"], *told["args"]] == ["/bin/bash", "-e", "-c", text, "go.sh", "x", "--y"]
    assert said.value["metadata"]["name"].startswith("go-sh-")
    assert said.err.splitlines() == ["the #SBATCH lines of go.sh are not read: `--from-sbatch go.sh` reads them"]
    assert "time_limit_seconds" not in told


def test_a_script_on_a_store_elsewhere_needs_no_file_there(stado: Stado, here: Path) -> None:
    (here / "go.sh").write_text("echo hi\n")
    told = template(stado, "--store", f"memory://{here.name}", "go.sh")
    assert [told["command"], *told["args"]] == ["bash", "-c", "echo hi\n", "go.sh"]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("plain", b"echo hi\n", ["bash", "-c", "echo hi\n", "plain"]),
        ("./plain", b"echo hi\n", ["bash", "-c", "echo hi\n", "./plain"]),
        ("env", b"#!/bin/sh\nexit 3\n", ["env"]),
        ("./env", b"#!/bin/sh\nexit 3\n", ["/bin/sh", "-c", "#!/bin/sh\nexit 3\n", "./env"]),
        ("tool", b"\x7fELF\0\0", ["tool"]),
        ("./tool", b"\x7fELF\0\0", ["./tool"]),
    ],
)
def test_which_files_are_scripts(stado: Stado, here: Path, name: str, body: bytes, words: list[str]) -> None:
    (here / os.path.basename(name)).write_bytes(body)
    told = template(stado, name)
    assert [told["command"], *told["args"]] == words
    dashed = template(stado, "--", name)
    assert [dashed["command"], *dashed["args"]] == [name]


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("a.py", b"print(1)\n", "-- python a.py"),
        ("run.yaml", b"spec: {}\n", "-f run.yaml"),
        ("a.sh", b"#!/bin/sh\r\nls\r\n", "sed -i"),
        ("a.sh", b"#!/bin/sh\n\xff\n", "line 2"),
        ("a.sh", b"#" * 130_000, "--workdir"),
        ("a.sh", b"", "empty"),
    ],
)
def test_a_script_that_would_not_run_as_meant_is_refused(
    stado: Stado, here: Path, name: str, body: bytes, told: str
) -> None:
    (here / name).write_bytes(body)
    said = stado("job", "submit", name)
    assert said.code == 2 and told in said.err and said.out == ""
    assert [path.name for path in here.iterdir()] == [name]


def test_sbatch_lines_become_the_document_and_options_win(stado: Stado, here: Path) -> None:
    text = (
        "#!/bin/bash\n#SBATCH --job-name=prep\n#SBATCH --time=30\n#SBATCH --array=1-5:2\n#SBATCH --qos=high\necho $1\n"
    )
    (here / "go.sbatch").write_text(text)
    said = stado("submit", "--dry-run", "--json", "--from-sbatch", "go.sbatch", "x", "--y")
    spec = said.value["spec"]
    assert said.value["metadata"]["name"] == "prep"
    assert spec["array"]["indices"] == [1, 3, 5] and spec["slurm_variables"] is True
    told = spec["task_template"]
    assert [told["command"], *told["args"]] == ["/bin/bash", "-c", text, "go.sbatch", "x", "--y"]
    assert told["time_limit_seconds"] == 1800
    assert "--qos" in said.err, "what has no counterpart is said"
    over = stored(stado, "--from-sbatch", "go.sbatch", "-a", "4", "-t", "1h", "-J", "other")
    assert over["metadata"]["name"] == "other" and over["spec"]["array"] == {"size": 4, "max_parallel": 0}
    assert over["spec"]["task_template"]["time_limit_seconds"] == 3600
    piped = stored(stado, "--from-sbatch", "-", stdin=b"#!/bin/sh\n#SBATCH -t 1\ntrue\n")
    assert piped["spec"]["task_template"]["time_limit_seconds"] == 60


def test_an_empty_first_word_is_no_command_and_does_not_fall_back_to_the_files(stado: Stado, here: Path) -> None:
    (here / "run.yaml").write_text(FILE)
    for before in (["-f", "run.yaml"], ["--torchrun"], []):
        said = stado("--json", "submit", *before, "--", "", "b")
        assert said.code == 2 and said.error["message"] == "the first word of the command is empty"


def test_every_character_that_a_document_may_hold_comes_back_from_what_is_printed(stado: Stado, here: Path) -> None:
    held = "".join(map(chr, (*range(1, 0x300), 0x2028, 0xFEFF, 0xFFFE, 0xFFFF, 0x1F600, 0x10FFFF)))
    (here / "run.json").write_text(
        json.dumps({"metadata": {"name": "a"}, "spec": {"task_template": {"command": "x", "env": {"A": held}}}})
    )
    first = stado("job", "submit", "--dry-run", "--json", "-f", "run.json")
    assert first.code == 0 and first.value["spec"]["task_template"]["env"]["A"] == held
    again = stado("job", "submit", "--dry-run", "--json", "-f", "-", stdin=first.out_bytes)
    assert (again.code, again.out_bytes) == (0, first.out_bytes)
    as_yaml = stado("job", "submit", "--dry-run", "-f", "-", stdin=first.out_bytes).out_bytes
    assert stado("job", "submit", "--dry-run", "--json", "-f", "-", stdin=as_yaml).out_bytes == first.out_bytes


def test_a_standard_input_that_is_closed_is_one_error(here: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "stado_cli", "submit", "-f", "-"],
        capture_output=True,
        text=True,
        timeout=30,
        preexec_fn=lambda: os.close(0),
    )
    assert said.returncode == 2 and "standard input is closed" in said.stderr
