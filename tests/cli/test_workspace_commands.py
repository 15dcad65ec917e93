"""`stado workspace list, show, set`, and what a submit is told when its workspace does not permit it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Stado

PRIVILEGED = """
metadata: {name: a}
spec:
  priority: 7
  task_template: {command: "true"}
"""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


def test_never_set_shows_the_defaults_and_makes_nothing(stado: Stado, store: Path) -> None:
    value = stado("workspace", "show", "lab", "--json").value
    assert value == {
        "name": "lab",
        "quota": {"max_gpus": None, "max_cpus": None, "max_memory_bytes": None, "max_running_jobs": None},
        "max_priority": 0,
        "pools": {},
        "grants": {"privileged": False, "bind_paths": []},
        "was_set": False,
        "changed_by": None,
        "changed_at": None,
    }
    assert stado("workspace", "list", "--json").value == []
    said = stado("workspace", "list")
    assert (said.code, said.out) == (0, "") and "maximum priority 0" in said.err
    assert "never set" in stado("workspace", "show", "default").out
    assert not store.exists()


def test_set_show_list_and_take_back(stado: Stado) -> None:
    limits = ["--max-gpus", "8", "--max-cpus", "64", "--max-memory", "4TiB", "--max-running-jobs", "3"]
    grants = ["--grant", "privileged", "--bind-path", "/data//x/", "--bind-path", "/b", "--pool", "pool=h100"]
    said = stado("workspace", "set", "lab", *limits, *grants, "--max-priority", "10", "--json")
    assert said.code == 0
    assert said.err == ""
    value = stado("workspace", "show", "lab", "--json").value
    assert value == said.value
    assert value["quota"] == {
        "max_gpus": 8,
        "max_cpus": 64,
        "max_memory_bytes": 4 << 40,
        "max_running_jobs": 3,
    }
    assert (value["max_priority"], value["pools"]) == (10, {"pool": "h100"})
    assert value["grants"] == {"privileged": True, "bind_paths": ["/data/x", "/b"]}
    assert value["changed_by"] and value["changed_at"].endswith("Z")
    assert "max memory: 4.0 TiB" in stado("workspace", "show", "lab").out
    line = stado("workspace", "list").out.splitlines()[1]
    assert line.split() == ["lab", "8", "64", "4.0", "TiB", "3", "10", "pool=h100", "privileged,", "/data/x,", "/b"]
    back = ["--max-gpus", "none", "--no-grant", "privileged", "--no-bind-path", "/data/x", "--no-pool", "pool"]
    said = stado("workspace", "set", "lab", *back, "--max-priority", "0", "--json")
    assert (said.code, said.err) == (0, "")
    assert said.value["quota"]["max_gpus"] is None and said.value["quota"]["max_cpus"] == 64
    assert said.value["grants"] == {"privileged": False, "bind_paths": ["/b"]}
    assert (said.value["max_priority"], said.value["pools"]) == (0, {})


@pytest.mark.parametrize(
    "words",
    [
        ["lab"],
        ["lab", "--max-gpus", "-1"],
        ["lab", "--max-gpus", "1.5"],
        ["lab", "--max-gpus", "many"],
        ["lab", "--max-cpus", "9" * 40],
        ["lab", "--max-memory", "4 elephants"],
        ["lab", "--max-running-jobs", ""],
        ["lab", "--max-priority", "1001"],
        ["lab", "--max-priority", "-1"],
        ["lab", "--max-priority", "none"],
        ["lab", "--pool", "h100"],
        ["lab", "--grant", "root"],
        ["lab", "--grant", "privileged", "--no-grant", "privileged"],
        ["lab", "--bind-path", "data"],
        ["lab", "--bind-path", "/data/../etc"],
        ["lab", "--no-bind-path", "x"],
        ["LAB", "--max-gpus", "1"],
        ["a/b", "--max-gpus", "1"],
        ["", "--max-gpus", "1"],
    ],
    ids=" ".join,
)
def test_wrong_words_are_refused_and_nothing_is_written(stado: Stado, store: Path, words: list[str]) -> None:
    said = stado("--json", "workspace", "set", *words)
    assert said.code == 2
    assert said.error["message"] and said.error["next_step"]
    assert not store.exists()


def test_show_of_what_is_no_name(stado: Stado) -> None:
    assert stado("workspace", "show", "No Such").code == 2


def test_one_bad_record_is_set_aside(stado: Stado, store: Path) -> None:
    assert stado("workspace", "set", "good", "--max-priority", "1").code == 0
    (store / "config/workspaces/bad.json").write_text("{")
    said = stado("workspace", "list", "--json")
    assert said.code == 6 and [one["name"] for one in said.value] == ["good"]
    assert list(said.error["detail"]) == ["config/workspaces/bad.json"]
    assert stado("workspace", "show", "bad").code == 6


# ---- submitting


def refused(stado: Stado, *words: str) -> dict[str, str]:
    said = stado("--json", *words)
    assert (said.code, said.error["code"]) == (2, "VALIDATION_ERROR")
    assert "stado workspace show" in said.error["next_step"]
    detail: dict[str, str] = said.error["detail"]
    return detail


def test_a_priority_above_the_cap_is_refused_everywhere(stado: Stado, store: Path) -> None:
    (store.parent / "run.yaml").write_text(PRIVILEGED)
    sentence = (
        "Must be at most 0, the maximum priority of workspace default, got 7; an administrator raises it with "
        "stado workspace set default --max-priority 7"
    )
    for words in (
        ["submit", "-J", "a", "-p", "7", "true"],
        ["submit", "-J", "a", "-p", "7", "--dry-run", "true"],
        ["submit", "-f", "run.yaml"],
        ["submit", "-f", "run.yaml", "--dry-run"],
        ["run", "-f", "run.yaml"],
    ):
        assert refused(stado, *words) == {"priority": sentence}
    assert not store.exists()
    assert stado("workspace", "set", "default", "--max-priority", "7").code == 0
    assert stado("submit", "-f", "run.yaml", "--dry-run").code == 0
    assert stado("submit", "-f", "run.yaml").out == "a\n"
    assert list(refused(stado, "submit", "-w", "other", "-p", "7", "true")) == ["priority"]
    assert stado("workspace", "set", "default", "--max-priority", "6").code == 0
    assert list(refused(stado, "job", "rerun", "a")) == ["priority"]


def test_a_dry_run_without_a_store_says_what_it_could_not_look_up(stado: Stado) -> None:
    store = "s3://bucket/x?endpoint_url=http://127.0.0.1:9&region=x"
    said = stado("submit", "--dry-run", "-p", "7", "--store", store, "-J", "a", "--json", "true")
    if said.code == 0:
        assert said.value["spec"]["priority"] == 7
        assert "whether workspace default permits the job could not be looked up" in said.err
    else:  # without credentials there is nobody to ask as
        assert said.code == 5
