"""A counter that goes on from its checkpoint on another machine, stops with uploads under way, and what is left."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from stado_coordinator.tick import Tick
from stado_like.again import from_checkpoint
from stado_like.bucket import checkpoints
from stado_like.bucket.cancel import cancel_job
from stado_like.bucket.delete import delete_job
from stado_like.job import keys
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause, Outcome, TaskState
from tests.process.rig import Rig, WorkerProcess, document, until

pytestmark = pytest.mark.serial
ROOM = ("--cpus", "4", "--memory", "4GiB")

COUNTER = """
cd "$STADO_CHECKPOINT_DIR"
n=$(cat count 2>/dev/null || echo 0)
echo "attempt $STADO_ATTEMPT from $n"
while [ ! -e {gate} ]; do
  n=$((n+1)); echo $n > new; mv new count; ln -sf count latest; sleep 0.02
done
echo "ends at $n"
"""


def counter(rig: Rig, name: str = "count", **more: object) -> JobId:
    """A job that counts in its checkpoint directory until the gate opens; saved every second."""
    made = document(name, COUNTER.format(gate=rig.folder / "gate"), task={"checkpoint": {"dir": "state"}}, **more)
    made["spec"]["task_template"]["checkpoint"]["interval_seconds"] = 1  # shorter than a person may ask for
    return rig.submit_document(made)


def saved(rig: Rig, j: JobId, n: int = 1, rank: int = 0) -> int:
    """How many checkpoints an attempt has made."""
    held = checkpoints.held(rig.bucket, Shelf(j, rank))
    return max((ref.seq for ref in held.manifests if ref.n == n), default=0)


def kill_machine(worker: WorkerProcess, a: AttemptId) -> None:
    """Agent, nursery, supervisor and task, as a machine that loses its power."""
    supervisor = psutil.Process(worker.supervisor(a))
    every = [worker.nursery(), *(one.pid for one in supervisor.children(recursive=True)), supervisor.pid]
    worker.process.send_signal(signal.SIGSTOP)
    for pid in every:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    for pid in every:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    worker.kill()


def age(rig: Rig, *keys_of: str) -> None:
    """As if an hour had passed since these were written."""
    store = Path(rig.url.removeprefix("file://").partition("?")[0])
    for key in keys_of:
        for path in (store / key).rglob("*") if key.endswith("/") else [store / key]:
            if path.is_file():
                os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 3600))


def test_counter_goes_on_from_its_checkpoint_on_another_machine(rig: Rig) -> None:
    """A training-like task on two workers with separate directories, the first machine killed."""
    first = rig.worker("w1", *ROOM, state=rig.folder / "state-1")
    j = counter(rig)
    a = AttemptId(j, 0, 1)
    until(lambda: saved(rig, j) >= 3, 15, f"three checkpoints; {rig.told(a)}")
    said = until(lambda: (beat := rig.beat(j)) and beat.saved_at and beat, 10, "its heartbeat tells of a checkpoint")
    assert said.running_at <= said.saved_at <= said.at
    assert (first.folder(a).read_pulse() or {})["saved_at"] >= said.saved_at, "what its agent tells ticks"
    kill_machine(first, a)
    newest = checkpoints.held(rig.bucket, Shelf(j, 0)).newest_first
    assert len(newest) == 2  # as many as are kept
    age(rig, keys.running(a), keys.heartbeat(a), keys.capacity("w1"), keys.checkpoints_of(a))
    tick = Tick(rig.bucket)

    def reaped() -> bool:
        tick.step()
        return bool(rig.bucket.present(keys.end(a))[0])

    until(reaped, 20, "the first machine is declared dead")
    assert rig.end(j).cause is Cause.MACHINE_LOST
    rig.worker("w2", *ROOM, state=rig.folder / "state-2")
    until(lambda: saved(rig, j, 2), 20, "the second machine saves")
    (rig.folder / "gate").touch()
    n, end = rig.last(j)
    assert (n, end.outcome) == (2, Outcome.COMPLETED), rig.told(a.next)
    assert end.notes == ()
    lines = rig.output(j, n=2).decode().splitlines()
    went_on, ended = int(lines[0].split()[-1]), int(lines[1].split()[-1])
    assert lines[0].startswith("attempt 2 from ") and 10 <= went_on < ended
    reasons = [change.reason for change in end.history.changes]
    assert any(one.startswith(f"Restoring {newest[0]} (") for one in reasons), reasons
    manifest = checkpoints.read(rig.bucket, Shelf(j, 0), checkpoints.held(rig.bucket, Shelf(j, 0)).newest_first[0])
    assert manifest is not None and manifest.ref.n == 2 and set(manifest.files) == {b"count"}
    assert manifest.links == {b"latest": b"count"}
    # Saved, so nothing of it lies on the machine any more.
    until(lambda: not (rig.folder / f"state-2/w2/attempts/{a.next}/checkpoint/state").exists(), 5, "cleared up")
    again_from_its_checkpoint(rig, j, ended)


def again_from_its_checkpoint(rig: Rig, j: JobId, ended: int) -> None:
    """As `job rerun --from-checkpoint`; and deleting a job takes its checkpoints."""
    job = rig.bucket.job(j)
    assert job is not None
    document = from_checkpoint(rig.bucket, j, job.document)
    again = rig.submit_document({**document, "metadata": {**document["metadata"], "name": "again"}})
    assert rig.last(again)[1].outcome is Outcome.COMPLETED, rig.told(AttemptId(again, 0, 1))
    assert rig.output(again).decode().splitlines()[0] == f"attempt 1 from {ended}"
    rig.settled(j, n=2)
    delete_job(rig.bucket, j)
    assert rig.bucket.store.list(f"checkpoints/{j.folder}/").rows == ()
    late = rig.submit_document({**document, "metadata": {**document["metadata"], "name": "late"}})
    end = rig.end(late)
    assert (end.cause, end.reason) == (
        Cause.FAILURE,
        f"The job {j}, from whose checkpoint it should start, was deleted",
    )


def test_stop_is_not_held_up_by_an_upload_and_what_is_left_is_saved_while_heartbeats_go_on(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    script = """
    trap 'echo last > "$STADO_CHECKPOINT_DIR/word"; exit 0' TERM
    echo first > "$STADO_CHECKPOINT_DIR/word"
    while :; do sleep 0.05; done
    """
    j = rig.submit("stops", script, task={"checkpoint": {"dir": "/" + str(rig.folder / "ckpt").strip("/")}})
    a = AttemptId(j, 0, 1)
    rig.running(j)
    word = rig.folder / "ckpt" / str(a) / "word"
    until(lambda: word.exists(), 10, "it saved")
    worker.supervisor(a)
    # A directory where the store keeps blobs cannot be made: every upload fails until it can.
    store = Path(rig.url.removeprefix("file://").partition("?")[0])
    (store / "checkpoints").write_text("in the way")
    cancel_job(rig.bucket, j)
    until(lambda: word.read_text() == "last\n", 10, "it was stopped")

    def uploading() -> bool:
        beat = rig.beat(j)
        return beat is not None and beat.reason == "Uploading its checkpoint"

    until(uploading, 10, f"it says so; {rig.told(a)}")
    beat = rig.beat(j)
    assert beat is not None and beat.state is TaskState.STOPPING
    assert not rig.bucket.present(keys.end(a))[0]
    until(lambda: (now := rig.beat(j)) is not None and now.seq > beat.seq + 1, 10, "heartbeats go on")
    (store / "checkpoints").unlink()
    end = rig.end(j)
    assert end.cause is Cause.REQUESTED and end.notes == ()
    assert saved(rig, j) == 1
    until(lambda: not word.parent.exists(), 5, "what is in the store need not lie here")
    assert word.parent.parent.exists()


def test_last_upload_is_bounded_and_what_is_left_is_named(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    store = Path(rig.url.removeprefix("file://").partition("?")[0])
    (store / "checkpoints").write_text("in the way")
    j = rig.submit(
        "late", 'echo x > "$STADO_CHECKPOINT_DIR/x"', task={"checkpoint": {"dir": "a/b", "final_seconds": 3}}
    )
    end = rig.end(j)
    assert end.outcome is Outcome.COMPLETED
    first, second = end.notes
    assert first.startswith("its last checkpoint was not uploaded within 3 s: ") and first.endswith("none before")
    left = Path(shlex.split(second.removeprefix("what was not uploaded is left in "))[0])
    assert (left / "x").read_text() == "x\n" and left.parts[-3:] == ("scratch", "a", "b")
