"""The jobs a new one belongs to: those it waits for, named by words, and the one whose task submits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stado_like import Client
from tests.cli.conftest import Stado


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(stado: Stado, *words: str, stdin: bytes = b"") -> Any:
    said = stado("job", "submit", "--dry-run", "--json", *words, "--", "true", stdin=stdin)
    assert said.code == 0, said.err
    return said.value


def test_words_of_awaited_jobs_become_incarnations(stado: Stado) -> None:
    assert stado("submit", "-J", "prep", "true").code == 0
    assert stado("submit", "-J", "prep", "-w", "lab", "true").code == 0
    after = stored(stado, "--after", "prep", "--after", "lab/prep.1:afterany", "--after", "prep.1:failed")["spec"][
        "after"
    ]
    assert after == [
        {"job": "default.prep.1", "state": "Completed"},
        {"job": "lab.prep.1", "state": "Ended"},
        {"job": "default.prep.1", "state": "Failed"},
    ]
    in_lab = stored(stado, "-w", "lab", "--after", "prep")["spec"]["after"]
    assert in_lab == [{"job": "lab.prep.1", "state": "Completed"}]
    document = {"spec": {"after": [{"job": "prep"}], "task_template": {"command": "x"}}}
    from_file = stored(stado, "-f", "-", stdin=json.dumps(document).encode())["spec"]["after"]
    assert from_file == [{"job": "default.prep.1", "state": "Completed"}]


def test_a_name_that_is_used_again_means_its_newest(stado: Stado) -> None:
    assert stado("submit", "-J", "prep", "true").code == 0
    assert stado("cancel", "prep").code == 0
    assert stado("job", "delete", "prep", "--yes").code == 0
    assert stado("submit", "-J", "prep", "true").code == 0
    assert stored(stado, "--after", "prep")["spec"]["after"][0]["job"] == "default.prep.2"
    assert stado("submit", "--after", "prep.1", "true").code == 3


@pytest.mark.parametrize("words", ["absent", "prep.7", "lab/prep", "prep.2:Ended"])
def test_a_job_that_is_not_there_cannot_be_waited_for(stado: Stado, here: Path, words: str) -> None:
    assert stado("submit", "-J", "prep", "true").code == 0
    with Client() as client:
        before = [row.key for row in client.store.list("").rows]
        said = stado("job", "submit", "--json", "--after", words, "--", "true")
        assert (said.code, said.error["code"]) == (3, "NOT_FOUND")
        assert [row.key for row in client.store.list("").rows] == before


def test_waiting_for_a_job_of_an_empty_store_makes_no_store(stado: Stado, here: Path) -> None:
    assert stado("job", "submit", "--after", "absent", "true").code == 3
    assert list(here.iterdir()) == []


def test_a_job_submitted_in_a_task_is_its_child(stado: Stado, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "parent" not in stored(stado)["metadata"]
    monkeypatch.setenv("STADO_JOB", "default.train.1")
    monkeypatch.setenv("STADO_STORE", f"file://{here}/store")
    assert stored(stado)["metadata"]["parent"] == "default.train.1"
    assert stored(stado, "--store", f"file://{here}/./store?durable=0")["metadata"]["parent"] == "default.train.1"
    assert "parent" not in stored(stado, "--detached")["metadata"]
    assert "parent" not in stored(stado, "--store", f"memory://{here.name}")["metadata"]
    said = stado("job", "submit", "--dry-run", "true")
    assert "child of default.train.1" in said.err and "--detached" in said.err


def test_an_awaited_job_costs_one_listing_and_one_look(stado: Stado) -> None:
    assert stado("submit", "-J", "prep", "true").code == 0
    said = stado("job", "submit", "--dry-run", "--stats", "--after", "prep", "true")
    assert "store requests: 3 (list 1, get 1, head 1)" in said.err  # and what the cluster says of restarts
