"""The commands that tell what the next tick would do: they agree with each other, with the tick, and write nothing."""

from __future__ import annotations

from pathlib import Path

from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.records import Capacity, Room
from stado_like.store.url import open_store
from tests.cli.conftest import Stado

GIB = 1 << 30


def machine(store: str, worker: str, cores: int) -> None:
    bucket = Bucket(open_store(store))
    now = bucket.now()
    room = Room(cpu_millis=cores * 1000, memory_bytes=16 * GIB)
    said = Capacity(nonce="c", worker=worker, at=now, next_by=now + 600, total=room, free=room)
    bucket.put(keys.capacity(worker), said)


def keys_in(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if path.is_file() and ".tmp" not in path.parts)


def test_submit_explain_says_where_it_would_go_and_writes_nothing(tmp_path: Path, stado: Stado) -> None:
    store = f"file://{tmp_path / 's'}"
    machine(store, "w1", 4)
    before = keys_in(tmp_path / "s")
    words = ("--store", store, "job", "submit", "--dry-run", "--explain", "-c", "2", "-m", "1GiB", "-J", "one")
    said = stado("--json", *words, "--", "true").value["explain"]
    assert said["next"]["where"] == {"one-0": "w1"}
    (told,) = said["machines"]
    assert (told["name"], told["fits"], told["free"]) == ("w1", True, "4 of 4 cores, 16.0 of 16.0 GiB free")
    text = stado(*words, "--", "true").out
    assert "next tick  leaves to its workers one-0 on w1" in text and "it fits" in text
    assert keys_in(tmp_path / "s") == before


def test_explain_without_dry_run_is_refused(tmp_path: Path, stado: Stado) -> None:
    said = stado("--store", f"file://{tmp_path / 's'}", "job", "submit", "--explain", "--", "true")
    assert said.code == 2 and "--explain goes with --dry-run" in said.err


def test_explain_and_plan_agree_on_why_it_waits(tmp_path: Path, stado: Stado) -> None:
    store = f"file://{tmp_path / 's'}"
    machine(store, "w1", 2)
    assert stado("--store", store, "submit", "-J", "large", "-c", "8", "-m", "1GiB", "--", "true").code == 0
    said = stado("--store", store, "--json", "job", "explain", "large").value
    assert said["next"]["does"] == "wait"
    assert said["machines"][0]["reasons"] == ["insufficient cpu: need 8 cores, 2 free"]
    planned = stado("--store", store, "--json", "scheduler", "plan").value
    (row,) = [one for one in planned if one["action"] == "Wait"]
    assert row["what"].endswith("large.1") and row["reason"] == said["next"]["reason"]
    text = stado("--store", store, "job", "explain", "large").out
    assert f"leaves it waiting: {said['next']['reason']}" in text and "no tick on this store since" in text
