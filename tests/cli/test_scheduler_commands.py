"""`stado scheduler tick|run|plan`: what a person and cron see of the coordinator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def stado(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "stado_cli", "--store", f"file://{store}?durable=0", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_tick_of_an_empty_store_has_nothing_to_do_and_releases_its_lock(tmp_path: Path) -> None:
    first, second = stado(tmp_path / "s", "scheduler", "tick"), stado(tmp_path / "s", "scheduler", "tick", "--json")
    assert (first.returncode, first.stdout) == (0, "Nothing to do.\n"), first.stderr
    assert second.returncode == 0
    assert json.loads(second.stdout)["exit_code"] == 0
    assert not (tmp_path / "s/state/coordinator/tick-lock.json").exists()


def test_tick_sets_a_bad_record_aside_and_says_so_with_exit_6(tmp_path: Path) -> None:
    """One malformed record: set aside with a reason; the tick's exit code is not zero."""
    stado(tmp_path / "s", "scheduler", "tick")
    bad = tmp_path / "s/running/default.gone.1.00000.000001.json"
    bad.parent.mkdir(parents=True)
    bad.write_text("{half")
    ticked = stado(tmp_path / "s", "scheduler", "tick")
    assert ticked.returncode == 6
    assert "running/default.gone.1.00000.000001.json" in ticked.stderr
    assert "Traceback" not in ticked.stderr
    assert bad.read_text() == "{half"


def test_held_store_is_exit_4_naming_the_holder_and_quiet_under_cron(tmp_path: Path) -> None:
    stado(tmp_path / "s", "scheduler", "tick")
    lock = tmp_path / "s/state/coordinator/tick-lock.json"
    record = {"v": 1, "nonce": "n", "pid": 7, "host": "elsewhere", "boot_id": "b", "started_at": 0.0, "since": 0.0}
    lock.write_text(json.dumps(record))
    held = stado(tmp_path / "s", "scheduler", "tick")
    assert held.returncode == 4
    assert "refused: another tick holds this store: pid 7 on elsewhere" in held.stderr
    assert stado(tmp_path / "s", "scheduler", "tick", "--cron").returncode == 0
    assert lock.exists()


def test_plan_shows_what_the_next_tick_would_do_and_writes_nothing(tmp_path: Path) -> None:
    stado(tmp_path / "s", "submit", "-J", "one", "--", "true")
    assert stado(tmp_path / "s", "job", "cancel", "one").returncode == 0
    before = sorted(path for path in (tmp_path / "s").rglob("*") if path.is_file() and ".tmp" not in path.parts)
    planned = stado(tmp_path / "s", "scheduler", "plan", "--json")
    assert planned.returncode == 0, planned.stderr
    assert isinstance(json.loads(planned.stdout), list)
    after = sorted(path for path in (tmp_path / "s").rglob("*") if path.is_file() and ".tmp" not in path.parts)
    assert before == after


@pytest.mark.serial
def test_resident_coordinator_ends_at_sigterm_after_its_tick(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "stado_cli", "--store", f"file://{tmp_path}/s", "scheduler", "run"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "coordinator of" in running.stderr.readline()
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=30)
    assert running.returncode == 0
    assert "coordinator stopped" in told
