"""Whose an out-of-memory kill was: exact where the attempt's group counts, careful where only a shared counter does."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_worker.machine.limits import OomCounter
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.oom import OomWatch
from tests.builders_jobs import Clock

KILLED = Exit(137, "SIGKILL")


class Machine:
    """A counter of its own, and time that is moved by hand."""

    def __init__(self, place: Path) -> None:
        self.clock = Clock()
        self.file = place / "memory.oom_control"
        self.count(7)

    def count(self, kills: int) -> None:
        self.file.write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")

    def watch(self, group: AttemptGroup | None = None) -> OomWatch:
        return OomWatch(group, self.clock, OomCounter(self.file))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("exited", "rose", "told"),
    [
        (KILLED, True, True),
        (Exit(137), True, True),  # a shell says so of its child
        (KILLED, False, False),
        (Exit(1), True, False),
        (Exit(0), True, False),
        (Exit(143, "SIGTERM"), True, False),
        (None, True, False),  # it lived until we killed it
    ],
)
def test_shared_counter_alone_accuses_nobody(machine: Machine, exited: Exit | None, rose: bool, told: bool) -> None:
    watch = machine.watch()
    machine.count(8 if rose else 7)
    assert watch.happened(exited) is told


def test_kill_of_another_task_long_before_is_not_this_ones(machine: Machine) -> None:
    watch = machine.watch()
    machine.count(8)
    for _ in range(3):
        machine.clock.now_s += 2
        watch.look()
    assert not watch.happened(KILLED)


def test_kill_that_the_last_look_had_counted_already_is_seen(machine: Machine) -> None:
    """The counter rises a moment before the command is gone: a look in between must not take it for the past."""
    watch = machine.watch()
    machine.clock.now_s += 2
    watch.look()
    machine.count(8)
    machine.clock.now_s += 2
    watch.look()
    assert watch.happened(KILLED)


def test_counter_of_the_attempts_own_group_tells_also_of_a_child(machine: Machine, tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 3\noom_kill 2\n")  # of tasks that a warm supervisor served before
    watch = machine.watch(AttemptGroup(tmp_path))
    machine.count(9)
    assert not watch.happened(KILLED), "the shared counter is not asked"
    events.write_text("low 0\noom 4\noom_kill 3\n")
    assert watch.happened(Exit(0)) and watch.happened(None)


def test_machine_without_any_counter_says_nothing(machine: Machine) -> None:
    machine.file.unlink()
    assert not machine.watch().happened(KILLED)
