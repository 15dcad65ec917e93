"""`config cluster`: shown, set, and what it does to the next submit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Stado


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")


def test_what_nobody_set_is_shown_as_nothing(stado: Stado) -> None:
    said = stado("--json", "config", "cluster")
    assert said.value == {
        "max_restarts": None, "max_machine_restarts": None, "stop_grace_seconds": None, "max_stop_grace_seconds": None,
        "changed_by": None, "changed_at": None,
    }  # fmt: skip
    assert "max_restarts: -" in stado("config", "cluster").out


def test_operators_numbers_reach_the_next_document(stado: Stado) -> None:
    set_ = stado("--json", "config", "cluster", "--max-restarts", "3", "--stop-grace", "2m", "--max-stop-grace", "1h")
    assert (set_.code, set_.value["max_restarts"], set_.value["stop_grace_seconds"]) == (0, 3, 120)
    dry = stado("--json", "submit", "--dry-run", "-J", "a", "true")
    assert dry.value["spec"]["task_template"]["resilience"]["max_restarts"] == 3
    assert stado("--json", "config", "cluster", "--max-restarts", "none").value["max_restarts"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--max-restarts", "many"), "no number of restarts"),
        (("--max-restarts", "1001"), "between 0 and 1000"),
        (("--stop-grace", "2h"), "between 1 and 3600"),
        (("--stop-grace", "2m", "--max-stop-grace", "1m"), "above its ceiling"),
    ],
)
def test_wrong_values_are_refused_with_what_would_be_right(stado: Stado, words: tuple[str, ...], told: str) -> None:
    said = stado("config", "cluster", *words)
    assert said.code == 2 and told in said.err
