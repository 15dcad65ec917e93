"""What the operators of a cluster chose for restarts: it reaches documents that say nothing, and the budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stado_like import Client
from stado_like.job.budget import Ended, decide
from stado_like.job.records import Budgets
from stado_like.job.states import Cause, Decision
from stado_like.job.terms import terms_of
from tests.cli.conftest import Stado

NAMES = [
    ("STADO_RETRY_MAX_ATTEMPTS", "STADO_MACHINE_RESTARTS"),
    ("ASTRAEUS_RETRY_MAX_ATTEMPTS", "ASTRAEUS_MACHINE_RESTARTS"),
]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"file://{tmp_path}/store?durable=0"
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.chdir(tmp_path)
    return url


def resilience(stado: Stado, *words: str) -> tuple[int, int]:
    said = stado("--json", "submit", "--dry-run", *words)
    assert said.code == 0, said.err
    stored: dict[str, Any] = said.value["spec"]["task_template"]["resilience"]
    return stored["max_restarts"], stored["max_machine_restarts"]


@pytest.mark.parametrize("names", NAMES, ids=["ours", "theirs"])
def test_a_document_that_says_nothing_gets_the_operators_numbers(
    stado: Stado, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str], tmp_path: Path
) -> None:
    assert resilience(stado, "-J", "a", "true") == (10, 20)
    for name, value in zip(names, ("3", "0"), strict=True):
        monkeypatch.setenv(name, value)
    assert resilience(stado, "-J", "a", "true") == (3, 0)
    assert resilience(stado, "-J", "a", "--restarts", "5", "true") == (5, 0)
    (tmp_path / "run.yaml").write_text(
        "metadata: {name: a}\nspec:\n  task_template:\n    command: x\n"
        "    resilience: {max_retries_failure: 0, max_machine_restarts: 7}\n"
    )
    assert resilience(stado, "-f", "run.yaml") == (0, 7)


def test_our_name_stands_before_the_other(stado: Stado, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRAEUS_RETRY_MAX_ATTEMPTS", "9")
    monkeypatch.setenv("STADO_RETRY_MAX_ATTEMPTS", "3")
    assert resilience(stado, "-J", "a", "true")[0] == 3


def test_budgets_honour_what_was_stored_even_after_the_setting_changed(
    stado: Stado, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setenv("STADO_RETRY_MAX_ATTEMPTS", "3")
    monkeypatch.setenv("STADO_MACHINE_RESTARTS", "1")
    assert stado("submit", "-J", "a", "true").code == 0
    monkeypatch.delenv("STADO_RETRY_MAX_ATTEMPTS")
    monkeypatch.delenv("STADO_MACHINE_RESTARTS")
    assert stado("job", "rerun", "a").out == "a-2\n"
    with Client(store) as client:
        for name in ("a", "a-2"):
            terms = client.terms(name)
            failed = Ended(Cause.FAILURE, "Exited with code 1")
            assert decide(failed, terms, Budgets(failures=2)).decision is Decision.RETRY
            spent = decide(failed, terms, Budgets(failures=3))
            assert spent.decision is Decision.FINAL and "3/3 restarts" in spent.reason
            lost = Ended(Cause.MACHINE_LOST, "lost")
            assert decide(lost, terms, Budgets()).decision is Decision.RETRY
            assert decide(lost, terms, Budgets(machine=1)).decision is Decision.FINAL


def test_programs_get_them_too(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    monkeypatch.setenv("STADO_RETRY_MAX_ATTEMPTS", "0")
    with Client(store) as client:
        job = client.submit(command=["true"], name="a")
        assert terms_of(client.bucket.job(job.id).document).max_restarts == 0  # type: ignore[union-attr]


def test_a_number_no_document_could_hold_is_refused_as_a_setting(stado: Stado, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_RETRY_MAX_ATTEMPTS", "1001")
    said = stado("--json", "submit", "--dry-run", "-J", "a", "true")
    assert said.code == 2
    assert "1000" in said.error["message"] + str(said.error["detail"]) and "config show" in said.error["next_step"]
