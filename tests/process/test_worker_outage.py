"""Workers on a real S3 server: reactions, an outage under running tasks, answers that are lost."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator

import pytest

from stado_like.bucket import cancel, doorbell
from stado_like.job import keys
from stado_like.job.states import Outcome
from tests.fault_proxy import Fault, fault_proxy
from tests.process.rig import Rig, make_rig, until
from tests.servers import CREDENTIALS, Server, seaweedfs

pytestmark = pytest.mark.serial
ROOM = ("--cpus", "4", "--memory", "8GiB")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seaweedfs(tmp_path_factory.mktemp("seaweed") / "data") as started:
        started.make_bucket("jobs")
        yield started


@pytest.fixture
def on_s3(server: Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    place = tmp_path_factory.mktemp("rig")
    with make_rig(place, server.url("jobs", place.name) + "&poll=50ms", CREDENTIALS) as made:
        yield made


def test_cancel_on_s3_begins_within_two_seconds(on_s3: Rig) -> None:
    on_s3.worker("w1", *ROOM)
    jobs = [
        on_s3.submit(f"slow-{i}", "exec 2>&-; trap 'date +%s.%N; exit 0' TERM; while :; do sleep 0.02; done")
        for i in (0, 1)
    ]
    for j in jobs:
        on_s3.running(j)
    asked = time.time()
    cancel.cancel_job(on_s3.bucket, jobs[0])
    cancel.stop_task(on_s3.bucket, jobs[1], 0)
    for j in jobs:
        assert on_s3.end(j).outcome is Outcome.CANCELLED
        assert float(on_s3.output(j)) - asked < 2


def test_store_goes_away_under_running_tasks_and_nothing_is_lost(on_s3: Rig, server: Server) -> None:
    """Processes go on, ends are reported when it is back, everything finishes in attempt 1."""
    on_s3.worker("w1", *ROOM)
    log, gate = on_s3.folder / "log", on_s3.folder / "gate"
    loop = f"while [ ! -e {gate} ]; do date +%s.%N >> {log}; sleep 0.2; done"
    long = on_s3.submit("long", f"{loop}; echo out", task={"heartbeat_ttl_seconds": 10})
    short = on_s3.submit("short", "sleep 6; echo done; exit 4", task={"restart_policy": "Never"})
    on_s3.running(long)
    on_s3.running(short)
    os.kill(server.pid, signal.SIGSTOP)
    stopped_s = time.monotonic()
    try:
        until(lambda: time.monotonic() - stopped_s > 25, 26, "twenty-five seconds without a store")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    back = time.time()
    end = on_s3.end(short, within_s=30)
    assert (end.exit_code, end.is_final, on_s3.output(short)) == (4, True, b"done\n")
    until(lambda: float(log.read_text().split()[-1]) > back, 5, "the long one never stopped")
    gate.touch()
    end = on_s3.end(long, within_s=30)
    assert (end.outcome, on_s3.output(long)) == (Outcome.COMPLETED, b"out\n")
    times = [float(one) for one in log.read_text().split()]
    assert max(b - a for a, b in itertools.pairwise(times)) < 5  # it was not frozen meanwhile
    after = on_s3.submit("after", "true")
    assert on_s3.end(after, within_s=30).outcome is Outcome.COMPLETED
    for j in (long, short, after):
        assert on_s3.bucket.end(keys.AttemptId(j, 0, 2)) is None


def test_lost_answers_to_every_deciding_write_change_nothing(
    server: Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim, the end and the next entry are committed and their answers lost: each job ends once, in attempt 1."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    place = tmp_path_factory.mktemp("rig")
    with fault_proxy(server.endpoint) as proxy:
        url = Server(proxy.endpoint, server.pid).url("jobs", place.name) + "&poll=50ms"
        with make_rig(place, url, CREDENTIALS) as rig:
            rig.worker("w1", *ROOM)
            effects = rig.folder / "effects"
            for match in ("running/", "/end.", "queued/"):
                proxy.add(Fault(method="PUT", match=match, times=2, drop_reply=True))
                proxy.add(Fault(method="PUT", match=match, times=1, answer=503))
            jobs = [rig.submit(f"lossy-{i}", f"echo {i}.$STADO_ATTEMPT >> {effects}") for i in range(3)]
            for j in jobs:
                assert rig.end(j, within_s=40).outcome is Outcome.COMPLETED
                rig.settled(j, within_s=20)
            assert sorted(effects.read_text().split()) == ["0.1", "1.1", "2.1"]


def test_task_that_writes_faster_than_its_log_is_sent_still_beats_and_is_cancelled(
    server: Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads must not keep a supervisor from its heartbeats, nor from a cancel, nor its end from being fenced off."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    place = tmp_path_factory.mktemp("rig")
    with fault_proxy(server.endpoint) as proxy:
        url = Server(proxy.endpoint, server.pid).url("jobs", place.name) + "&poll=50ms"
        with make_rig(place, url, CREDENTIALS) as rig:
            rig.worker("w1", *ROOM)
            proxy.add(Fault(method="PUT", match="logs/", times=1_000_000, delay_s=1.0))
            j = rig.submit("firehose", "while :; do head -c 100000 /dev/zero; sleep 0.05; done")
            a = keys.AttemptId(j, 0, 1)
            doorbell.ring(rig.bucket, ("follow", str(j)), until=rig.bucket.now() + 60)  # or it would begin after 10 s
            until(lambda: rig.bucket.store.list(keys.logs_of(a)).rows, 20, "shipping has begun")
            until(lambda: rig.beat(j) is not None, 20, "its first heartbeat")
            first = rig.beat(j)
            assert first is not None
            until(lambda: (rig.beat(j) or first).seq >= first.seq + 2, 8, "heartbeats go on")
            cancel.cancel_job(rig.bucket, j)

            def stopping() -> bool:
                beat = rig.beat(j)
                return beat is not None and beat.stop_cause == "requested"

            until(stopping, 8, "the cancel is heard")  # behind uploads it never would be: more comes than is sent
            proxy.clear()
            end = rig.end(j, within_s=60)
            assert end.outcome is Outcome.CANCELLED
            assert end.log is not None
            assert len(rig.output(j)) == end.log.size
