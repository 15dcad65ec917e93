"""A task's output on a real worker: exact to the byte, there in time, and not lost with the machine."""

from __future__ import annotations

import hashlib
import os
import signal
import time

import pytest

from stado_like.bucket import cancel, doorbell
from stado_like.job import keys
from stado_like.job.records import LOG_IN_END_BYTES, MOST_BYTES
from stado_like.job.states import Outcome
from stado_like.reading import logs
from tests.process.rig import PYTHON, Rig, until

pytestmark = pytest.mark.serial


def test_ten_mebibyte_line_is_stored_whole(shared: Rig) -> None:
    """Log task dies on a long line, job hangs: 64 KiB limit of a line reader."""
    j = shared.submit("long-line", "head -c 10485760 /dev/zero | tr '\\0' x; echo; exit 0")
    end = shared.end(j)
    assert end.outcome is Outcome.COMPLETED
    said = shared.output(j)
    assert (len(said), set(said[:-1]), said[-1:]) == (10_485_761, {ord("x")}, b"\n")
    assert end.log is not None
    assert end.log.size == len(said)
    assert len(logs.tail_bytes(end.log)) <= LOG_IN_END_BYTES
    sizes = [row.size_bytes for row in shared.bucket.store.list(keys.logs_of(keys.AttemptId(j, 0, 1))).rows]
    assert sum(sizes) + len(logs.tail_bytes(end.log)) == len(said)


def test_binary_output_is_exact_and_the_text_view_never_fails(shared: Rig) -> None:
    """Binary output breaks the viewer: raw equals the bytes, text uses replacement marks."""
    code = (
        "import os, sys; b = os.urandom(1 << 20); sys.stdout.buffer.write(b); sys.stdout.flush(); "
        "import hashlib; open(sys.argv[1], 'w').write(hashlib.sha256(b).hexdigest())"
    )
    mark = shared.folder / "hash"
    j = shared.submit("binary", [PYTHON, "-c", code, str(mark)])
    shared.end(j)
    assert hashlib.sha256(shared.output(j)).hexdigest() == mark.read_text()
    assert "\ufffd" in logs.read_text(shared.bucket, keys.AttemptId(j, 0, 1))


def test_small_output_travels_in_the_end_record_and_costs_no_piece(shared: Rig) -> None:
    j = shared.submit("small", "head -c 16384 /dev/zero | tr '\\0' y")
    end = shared.end(j)
    assert end.log is not None
    assert (end.log.offset, end.log.size) == (0, 16_384)
    assert shared.output(j) == b"y" * 16_384
    assert not shared.bucket.store.list(keys.logs_of(keys.AttemptId(j, 0, 1))).rows


@pytest.mark.parametrize("instead", ["mkdir log", "ln -s log log", "mkfifo log"])
@pytest.mark.parametrize("code", [0, 1])
def test_task_that_puts_something_else_in_the_place_of_its_output_ends(shared: Rig, instead: str, code: int) -> None:
    """What cannot be read is not asked for until it can be: the task would hold its room for ever."""
    name = f"no-log-{instead.split()[0]}-{code}"
    j = shared.submit(name, f'cd "$(dirname "$STADO_STOP_FILE")" && rm log && {instead}; exit {code}')
    end = shared.end(j)
    assert end.exit_code == code
    assert shared.output(j) == b""


@pytest.mark.parametrize("byte", ["\\001", '"', "\\\\", "\\377"])
def test_record_stays_within_its_bound_with_awkward_bytes(shared: Rig, byte: str) -> None:
    """A record is at most 64 KiB, however its log grows when written as JSON. Nothing is lost."""
    name = "awkward-" + hashlib.sha256(byte.encode()).hexdigest()[:6]
    script = f"head -c 40000 /dev/zero | tr '\\0' '{byte}'; exit 1"
    j = shared.submit(name, script, task={"restart_policy": "Never"})
    end = shared.end(j)
    stored = shared.bucket.store.get(keys.end(keys.AttemptId(j, 0, 1)))
    assert stored is not None
    assert len(stored.body) <= MOST_BYTES
    said = shared.output(j)
    assert (len(said), len(set(said))) == (40_000, 1)
    assert end.last_failure is not None
    assert end.last_failure.log


def test_locale_c_keeps_the_bytes(shared: Rig) -> None:
    """Encoding error in the log writer: LC_ALL=C prints what is not ASCII."""
    j = shared.submit("locale", "printf 'za\\305\\274\\303\\263\\305\\202\\304\\207\\n'", task={"env": {"LC_ALL": "C"}})
    end = shared.end(j)
    assert shared.output(j).decode() == "zażółć\n"
    assert end.log is not None
    assert end.log.text == "zażółć\n"


def test_followed_log_comes_within_a_second(shared: Rig) -> None:
    j = shared.submit("followed", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); sleep 0.1; done")
    a = keys.AttemptId(j, 0, 1)
    shared.running(j)
    doorbell.ring(shared.bucket, ("follow", str(j)), until=shared.bucket.now() + 30)
    until(lambda: shared.bucket.store.list(keys.logs_of(a)).rows, 1.5, "a first piece after the ring")
    pieces = len(shared.bucket.store.list(keys.logs_of(a)).rows)
    until(lambda: len(shared.bucket.store.list(keys.logs_of(a)).rows) >= pieces + 3, 3, "a piece every half second")
    cancel.cancel_job(shared.bucket, j)
    shared.end(j)
    said = shared.output(j).decode().splitlines()
    numbers = [line for line in said if line.startswith("line ")]
    assert numbers == [f"line {i}" for i in range(len(numbers))]


def test_follow_rung_before_the_command_started_is_heard(rig: Rig) -> None:
    """A person follows at once: the supervisor may not be there yet, and must find out."""
    rig.worker("w1", "--cpus", "2", "--memory", "2GiB")
    j = rig.submit("early", "echo here; sleep 8")
    doorbell.ring(rig.bucket, ("follow", str(j)), until=rig.bucket.now() + 30)
    until(lambda: rig.output(j) == b"here\n", 3, "the output of a followed job")
    cancel.cancel_job(rig.bucket, j)
    rig.end(j)


def test_worker_and_supervisor_killed_output_up_to_ten_seconds_ago_is_readable(rig: Rig) -> None:
    """Killed task leaves no log in the store: upload only at the end."""
    worker = rig.worker("w1", "--cpus", "2", "--memory", "2GiB")
    j = rig.submit("lost", "i=0; while :; do date +%s.%N; sleep 0.1; done")
    a = keys.AttemptId(j, 0, 1)
    pid = worker.supervisor(a)
    began_s = time.monotonic()
    until(lambda: time.monotonic() - began_s > 11, 12, "eleven seconds")
    killed = time.time()
    worker.kill()
    os.kill(pid, signal.SIGKILL)
    said = rig.output(j).decode().splitlines()
    assert said, "nothing was uploaded"
    assert killed - float(said[-1]) <= 10.5
    rig.worker("w1", "--cpus", "2", "--memory", "2GiB")
    end = rig.end(j)
    assert end.log is not None
    assert end.log.size == len(rig.output(j))  # the agent sent what the supervisor had not
    cancel.cancel_job(rig.bucket, j)
    rig.last(j)
