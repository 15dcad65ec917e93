"""Credentials and configs on a real worker: given, waited for, masked, and removed, whoever dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stado_like.bucket import cancel, doorbell
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import LOG_IN_END_BYTES
from stado_like.job.states import Outcome, TaskState
from stado_like.reading import logs
from stado_worker.secrets import private
from tests.process.rig import Rig, WorkerProcess, make_rig, until

pytestmark = pytest.mark.serial
VALUE = "hf_the_value_0123456789"
TOKEN = {"secret_refs": [{"external_secret_name": "hf-token", "env_vars": {"token": "HF_TOKEN"}}]}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A rig whose workers know a credential."""
    with make_rig(tmp_path, env={"WORKERS_TOKEN": VALUE}) as made:
        settings(made, '[secrets]\nhf-token = "env:WORKERS_TOKEN"\n')
        yield made


def settings(rig: Rig, text: str) -> None:
    file = rig.folder / ".config" / "stado" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(file)


def start(rig: Rig) -> WorkerProcess:
    return rig.worker("w1", "--cpus", "2", "--memory", "2GiB")


def submit(rig: Rig, name: str, script: str, task: Mapping[str, Any], **more: Any) -> tuple[JobId, AttemptId]:
    j = rig.submit(name, script, task=dict(task), **more)
    return j, AttemptId(j, 0, 1)


def everything(rig: Rig) -> bytes:
    """All that is in the store."""
    store = rig.folder / "store"
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_secret_reaches_the_command_and_nothing_that_leaves_the_machine(rig: Rig) -> None:
    worker = start(rig)
    keys_at, config_at = rig.folder / "keys", rig.folder / "etc" / "app.conf"
    task = {
        "secret_refs": [*TOKEN["secret_refs"], {"external_secret_name": "hf-token", "mount_path": str(keys_at)}],
        "configs": [{"mounts": [str(config_at), "here.conf"], "value": "a = 1\n"}],
        "restart_policy": "Never",
    }
    script = f'echo "<$HF_TOKEN>"; cat {keys_at}/value {config_at} here.conf; printf %s "$HF_TOKEN" | wc -c; exit 1'
    j, a = submit(rig, "given", script, task)
    end = rig.end(j)
    stars = "*" * len(VALUE)
    assert rig.output(j).decode().split() == [f"<{stars}>", f"{stars}a", "=", "1", "a", "=", "1", str(len(VALUE))]
    assert end.last_failure is not None
    assert stars in end.last_failure.log
    until(worker.folder(a).is_done, 10, "the end is settled")
    until(lambda: not keys_at.is_symlink() and not config_at.parent.exists(), 5, "what was placed goes")
    until(lambda: not any(place.exists() for place in private.places(worker.folder(a).path)), 5, "values go")
    assert VALUE.encode() not in everything(rig)
    assert VALUE not in worker.said()
    for file in ("task.json", "exit.json", "claim.json", "supervisor.log"):
        path = worker.folder(a).path / file
        assert not path.exists() or VALUE.encode() not in path.read_bytes()


def test_task_waits_for_a_late_secret_says_so_and_runs_when_it_is_there(rig: Rig) -> None:
    settings(rig, "")
    start(rig)
    j, a = submit(rig, "late", 'echo "${#HF_TOKEN}"', TOKEN)
    said = "waiting for external secret hf-token (key token) to be synced to this node"

    def waits() -> bool:
        beat = rig.beat(j)
        return beat is not None and (beat.state, beat.reason) == (TaskState.PREPARING, said)

    until(waits, 10, f"a heartbeat says what it waits for; {rig.told(a)}")
    settings(rig, '[secrets]\nhf-token = "env:WORKERS_TOKEN"\n')
    end = rig.end(j)
    assert (end.outcome, rig.output(j)) == (Outcome.COMPLETED, b"%d\n" % len(VALUE))


def test_task_that_waits_for_a_secret_is_stopped_at_once(rig: Rig) -> None:
    """Not at its next heartbeat: its agent reaches it, though it has no process yet."""
    settings(rig, "")
    start(rig)
    j, a = submit(rig, "stopped", "exit 0", {**TOKEN, "heartbeat_ttl_seconds": 600})
    until(lambda: (beat := rig.beat(j)) is not None and "waiting for" in beat.reason, 10, f"it waits; {rig.told(a)}")
    cancel.cancel_job(rig.bucket, j)
    assert rig.end(j, within_s=5).outcome is Outcome.CANCELLED


def test_existing_file_fails_the_task_with_the_reason_and_stays(rig: Rig) -> None:
    start(rig)
    there = rig.folder / "app.conf"
    there.write_text("a person's")
    task = {"configs": [{"mounts": [str(there)], "value": "x"}], "restart_policy": "Never"}
    j, _ = submit(rig, "exists", "exit 0", task)
    end = rig.end(j)
    assert end.outcome is Outcome.FAILED
    assert end.reason.endswith(f"Writing config {there}: it exists, and nothing is overwritten")
    assert there.read_text() == "a person's"


def test_supervisor_killed_its_agent_masks_what_it_sends_and_removes_what_was_placed(rig: Rig) -> None:
    """What a dead supervisor had not sent is sent by its agent, from the middle of a value on, masked all the same."""
    worker = start(rig)
    keys_at = rig.folder / "keys"
    task = {
        "secret_refs": [*TOKEN["secret_refs"], {"external_secret_name": "hf-token", "mount_path": str(keys_at)}],
        "restart_policy": "Never",
        "resilience": {"max_machine_restarts": 0},
    }
    script = (
        f"i=0; while [ $i -lt {LOG_IN_END_BYTES // 8} ]; do printf %s $HF_TOKEN; i=$((i+1)); done; touch said; sleep 60"
    )
    j, a = submit(rig, "killed", script, task)
    folder = worker.folder(a).path
    until((folder / "scratch" / "said").exists, 10, f"the output is written; {rig.told(a)}")
    doorbell.ring(rig.bucket, ("follow", str(j)), until=rig.bucket.now() + 30)
    until(lambda: rig.bucket.store.list(keys.logs_of(a)).rows, 5, "a first piece")
    assert keys_at.is_symlink()
    os.kill(worker.supervisor(a), signal.SIGKILL)
    end = rig.end(j)
    assert end.outcome is Outcome.DOWN
    said = rig.output(j)
    assert said == b"*" * (len(VALUE) * (LOG_IN_END_BYTES // 8))
    assert b"".join(logs.read_raw(rig.bucket, a)) == said
    until(lambda: not keys_at.is_symlink(), 5, "what was placed goes")
    assert VALUE.encode() not in everything(rig)


def test_agent_that_does_not_know_what_to_mask_holds_the_output_back(rig: Rig) -> None:
    worker = start(rig)
    task = {**TOKEN, "restart_policy": "Never", "resilience": {"max_machine_restarts": 0}}
    j, a = submit(rig, "unknown", "echo $HF_TOKEN; touch said; sleep 60", task)
    folder = worker.folder(a).path
    until((folder / "scratch" / "said").exists, 10, f"the output is written; {rig.told(a)}")
    private.remove(folder)
    os.kill(worker.supervisor(a), signal.SIGKILL)
    end = rig.end(j)
    assert end.log is not None
    assert (end.log.offset, end.log.size, logs.tail_bytes(end.log)) == (0, len(VALUE) + 1, b"")
    assert rig.output(j) == b""
    assert VALUE.encode() not in everything(rig)
