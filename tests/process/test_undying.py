"""What a machine does about processes that would not die: their room is not free, it takes nothing, and says why.

None can be made to order, so living ones stand for them: what was noted of an attempt is as it is after a kill that had
no effect.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.placing import Placing
from stado_worker.machine.room import LiveRoom, Total
from stado_worker.offer import Offer
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.undying import Undying, note
from tests.builders_jobs import Clock
from tests.builders_queue import Waiting
from tests.sim.host import _Idle

GIB = 1 << 30
A = AttemptId(JobId("default", "victim", 1), 0, 1)
ASK = Ask(3000, GIB, 0)
BOOT = "boot-1"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def offer(tmp_path: Path) -> Offer:
    room = LiveRoom(Total(4000, 8 * GIB), 0.0, cpus_given=True, memory_given=True, sampler=_Idle(4))
    return Offer("w1", "h1", room, Clock(), tmp_path)


def ended(tmp_path: Path) -> AttemptDir:
    folder = AttemptDir.make(tmp_path / "attempts", str(A))
    folder.write_claim({"ask": codec.to_plain(ASK)}, fsync=False)
    folder.write_done({"ours": True})
    return folder


def test_slot_stays_reserved_and_the_machine_is_fenced_until_the_processes_are_gone(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """Row: two jobs on one accelerator: the kill is asynchronous, the slot is reported free."""
    here, folder = offer(tmp_path), ended(tmp_path)
    note(folder, [process.pid], BOOT)  # as its supervisor does, before it reports the end
    here.undying.ended(folder, ASK, (), BOOT)
    here.sample(0.0, [])
    machine = here.machine([])
    assert (machine.free_cpu_millis, machine.running) == (1000, 1)
    why = f"processes {process.pid} of {A} would not die, even killed; their room is not free"
    assert here.closed == why and why in machine.closed
    said = here.capacity(0.0, [], (), accepting=True)
    assert (said.accepting, said.why_not, said.free.cpu_millis) == (False, why, 1000)
    end(process)
    here.sample(1.0, [])
    assert here.closed == "" and here.machine([]).free_cpu_millis == 4000


def test_head_is_not_started_beside_what_is_left_of_its_victim(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """Row: two jobs on one accelerator. The victim's attempt has ended and its claim is gone, so nothing but the word
    of its machine keeps the head off."""
    here, folder, stage = offer(tmp_path), ended(tmp_path), Waiting()
    urgent = stage.put("urgent", cores=4, priority=10)
    note(folder, [process.pid], BOOT)
    here.undying.ended(folder, ASK, (), BOOT)

    def plan(now_s: float) -> Placing:
        here.sample(now_s, [])
        stage.bucket.put(keys.capacity("w1"), here.capacity(stage.bucket.now(), [], (), accepting=True))
        return stage.look()[1].placing

    fenced = plan(0.0)
    assert not fenced.taken and not fenced.holds
    assert any("would not die" in why for why in fenced.waiting[urgent].nodes["w1"])
    end(process)
    assert [one.job for one in plan(1.0).taken] == [urgent]


def test_next_agent_knows_what_its_predecessor_could_not_kill(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    folder = ended(tmp_path)
    note(folder, [process.pid], BOOT)
    later = Undying()
    later.recover(tmp_path / "attempts", BOOT)
    assert later.reserved == [(folder, ASK)]
    rebooted = Undying()
    rebooted.recover(tmp_path / "attempts", "boot-2")
    assert rebooted.reserved == []


def test_another_process_with_the_same_number_is_not_taken_for_it(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    folder, left = ended(tmp_path), Undying()
    folder.write_stuck({"boot_id": BOOT, "processes": [[process.pid, 1]]})
    left.ended(folder, ASK, (), BOOT)
    assert left.reserved == [] and left.why == ""


def test_attempt_of_which_nothing_is_left_reserves_nothing(tmp_path: Path) -> None:
    folder, left = ended(tmp_path), Undying()
    note(folder, [], BOOT)
    left.ended(folder, ASK, (), BOOT)
    assert left.reserved == [] and folder.read_stuck() is None


def test_what_the_agent_itself_could_not_kill_is_noted_for_the_next(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    folder, left = ended(tmp_path), Undying()
    left.ended(folder, ASK, (process.pid,), BOOT)
    assert left.reserved == [(folder, ASK)]
    assert folder.read_stuck() is not None
