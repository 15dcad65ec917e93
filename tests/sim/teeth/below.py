"""Probes of what lies below the transitions: each kind of store's conditions, and a worker's own guards."""

from __future__ import annotations

import http.server
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stado_like.bucket import checkpoints, submit
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.checkpoints import Held
from stado_like.job import keys
from stado_like.job.checkpoint import Blob, Kept, Manifest, Piece, Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.terms import terms_of
from stado_like.store.local import LocalStore
from stado_like.store.memory import MemoryStore, forget
from stado_like.store.protocol import Applied, ObjectStore, Rejected
from stado_like.store.s3_store import S3Store
from stado_worker import endings
from stado_worker.holdings import Holding
from stado_worker.shim.attempt_dir import AttemptDir
from tests import servers
from tests.sim import scenarios as scene
from tests.sim.faults import Kind
from tests.sim.fleet import Fleet
from tests.sim.plan import Plan
from tests.sim.play import Play, document
from tests.sim.scenarios import ONE
from tests.sim.teeth.traces import stage

# ---- stores


def _one_winner(store: ObjectStore) -> None:
    assert isinstance(store.create("a/b", b"first"), Applied)
    assert isinstance(store.create("a/b", b"second"), Rejected), "a second create was not refused"
    found = store.get("a/b")
    assert found is not None and found.body == b"first"


def _one_replacer(store: ObjectStore) -> None:
    store.put("a/c", b"old")
    found = store.get("a/c")
    assert found is not None
    assert isinstance(store.replace("a/c", b"new", found.etag), Applied)
    assert isinstance(store.replace("a/c", b"newer", found.etag), Rejected), "a stale etag replaced what had changed"


@contextmanager
def _memory() -> Iterator[ObjectStore]:
    forget("teeth")
    yield MemoryStore("teeth")
    forget("teeth")


@contextmanager
def _local() -> Iterator[ObjectStore]:
    folder = Path(tempfile.mkdtemp(prefix="stado-teeth-"))
    try:
        yield LocalStore(str(folder), durable=False)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _s3() -> Iterator[ObjectStore]:
    with pytest.MonkeyPatch.context() as patch, servers.moto() as server:
        for name, value in servers.CREDENTIALS.items():
            patch.setenv(name, value)
        server.make_bucket("teeth")
        yield S3Store("teeth", endpoint_url=server.endpoint, region="us-east-1")


def memory_create() -> None:
    with _memory() as store:
        _one_winner(store)


def memory_replace() -> None:
    with _memory() as store:
        _one_replacer(store)


def local_create() -> None:
    with _local() as store:
        _one_winner(store)


def local_replace() -> None:
    with _local() as store:
        _one_replacer(store)


def s3_create() -> None:
    with _s3() as store:
        _one_winner(store)


def s3_replace() -> None:
    with _s3() as store:
        _one_replacer(store)


def s3_plain_sends_once() -> None:
    _sends_once("plain")


def s3_lean_sends_once() -> None:
    _sends_once("lean")


def _sends_once(driver: str) -> None:
    """A server that answers 500 to everything counts what it is sent."""
    count = 0

    class Failing(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            nonlocal count
            count += 1
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in servers.CREDENTIALS.items():
                patch.setenv(name, value)
            endpoint = f"http://127.0.0.1:{server.server_port}"
            S3Store("teeth", endpoint_url=endpoint, region="us-east-1", driver=driver).create("k", b"x")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert count == 1, f"one create was sent {count} times"


# ---- a worker


@contextmanager
def _one_machine() -> Iterator[Fleet]:
    quiet = replace(Plan.of(1), hosts=1, users=1, jobs=0, ticks=1, tick_every_s=15.0, disasters=(), rates={})
    fleet = Fleet(1, quiet)
    try:
        for host in fleet.hosts:
            host.start_agent()
        for tick in fleet.ticks:
            fleet._start_tick(tick)
        yield fleet
        fleet.judge.verify()
    finally:
        fleet.close()


def _submit(fleet: Fleet, *words: str, ttl_s: int = 10) -> AttemptId:
    doc = document(ONE, heartbeat_ttl_seconds=ttl_s)
    doc["spec"]["task_template"].update(command="sim", args=list(words))
    bucket = Play.bucket(fleet, "ada")  # type: ignore[arg-type]
    done = submit.submit(bucket, doc)
    assert isinstance(done, submit.Submitted)
    fleet.judge.seen.acknowledge(done.id)
    return AttemptId(done.id, 0, 1)


def nursery_that_wakes_late_starts_nothing() -> None:
    """It was stopped when its agent asked it to launch; the agent took another and settled the claim; then it wakes."""
    with _one_machine() as fleet:
        fleet.hosts[0].nursery_sleeps_s = 12.0
        a = _submit(fleet, "30", ttl_s=60)
        fleet._go(fleet.world.now_s + 200.0)
        assert a in fleet.judge.seen.ends, "the agent did not give it up"
        assert not fleet.judge.seen.starts[a], f"{a} was started after its agent had given it up"


def supervisor_launched_late_asks_the_gate_again() -> None:
    """The agent died right after it had asked; the claim was reaped and the task finished elsewhere; then it is
    launched."""
    with _one_machine() as fleet:
        host = fleet.hosts[0]
        host.nursery_sleeps_s = 400.0
        a = _submit(fleet, "5")
        for _ in range(200):
            fleet._go(fleet.world.now_s + 0.05)
            if host.nursery_sleeps_s == 0.0:
                break
        assert host.nursery_sleeps_s == 0.0, "nothing was launched"
        host.kill_agent()
        fleet._go(fleet.world.now_s + 300.0)
        assert a in fleet.judge.seen.ends, "the claim of a dead agent was never reaped"
        fleet._go(fleet.world.now_s + 200.0)
        assert not fleet.judge.seen.starts[a], f"{a} was started long after it had ended"


def process_of_a_supervisor_that_slept_is_frozen_until_the_gate_is_asked() -> None:
    """The store is away when it wakes: for ten seconds the tree must not run."""
    with _one_machine() as fleet:
        host = fleet.hosts[0]
        a = _submit(fleet, "500")
        fleet._go(fleet.world.now_s + 20.0)
        supervisor = host.supervisors[str(a)]
        for thread in supervisor.threads:
            fleet.world.halt(thread, 60.0)
        fleet._go(fleet.world.now_s + 58.0)
        fleet.storm.spell(("*",), Kind.PARTITION, 30.0)
        fleet._go(fleet.world.now_s + 5.0)
        assert host.processes[str(a)].frozen_at_s is not None, "it ran on, though others may have ended it"


def claim_of_another_is_not_undone() -> None:
    """Ours never reached the store, another worker won the attempt and runs it; after a restart we give ours up."""
    with stage() as play, _folder() as attempts:
        scene._submitted(play)
        winner = play.hand("w2")
        scene._take(play, winner)
        a = scene._attempt(winner)
        loser = play.bucket("w1")
        kept = winner.disk[a].claim
        claim = replace(kept, nonce="never arrived", worker="w1")
        folder = AttemptDir.make(attempts, str(a))
        ask = terms_of(play.judge.seen.jobs[a.job].document).ask
        endings._undeliver(loser, Holding(a, claim, b"", folder, ask, 0.0))
        assert a not in play.judge.seen.ends, "another's attempt was ended as undelivered"


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="stado-teeth-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def fenced_supervisor_falls_silent() -> None:
    """It was cut off, reaped and replaced; connected again, it must find that out before its next heartbeat."""
    with _one_machine() as fleet:
        host = fleet.hosts[0]
        a = _submit(fleet, "900")
        fleet._go(fleet.world.now_s + 20.0)
        host.kill_agent()
        fleet.storm.spell((f"{host.name}/sup.{a}",), Kind.PARTITION, 200.0)
        host.note_unwell(fleet.world.now_s + 200.0)
        fleet._go(fleet.world.now_s + 180.0)
        assert a in fleet.judge.seen.ends, "a silent attempt was never reaped"
        fleet._go(fleet.world.now_s + 120.0)


def zombie_removes_nothing_that_the_next_attempt_builds_on() -> None:
    """Thought dead, it publishes another checkpoint and cleans up; the next attempt went on from the one before."""
    with _memory() as store:
        bucket, a = Bucket(store), AttemptId(JobId("default", "train", 1), 0, 1)
        shelf, seen, known = Shelf(a.job, 0), Held(), {}
        for seq in (1, 2):
            blob = Blob(1, f"{seq:064d}", 1)
            store.put(shelf.blob(1, blob.digest), b"x")
            seen.blobs[1, blob.digest] = 1
            made = Manifest(str(a), Ref(1, seq), 1.0, files={b"state": Kept(0o600, 1, 1, "", (Piece(blob, 0, 1),))})
            checkpoints.publish(bucket, shelf, made)
            seen.manifests.add(made.ref)
            known[made.ref] = made
            if seq == 1:
                store.put(keys.end(a), b"{}")
                going_on = Manifest(str(a.next), Ref(2, 1), 1.0, files={**made.files})
                checkpoints.publish(bucket, shelf, going_on)
        checkpoints.collect(bucket, shelf, a, seen, known, 1)
        gone = checkpoints.missing(bucket, shelf, going_on.blobs)
        assert not gone, f"the next attempt's checkpoint lost {gone}"
