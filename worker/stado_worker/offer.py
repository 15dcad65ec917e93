"""What this machine offers now, for its own admission and for everybody who reads its broadcast.

Whether it takes work at all (disk, a person's word) is asked of the machine itself, not of any record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stado_like.ambient import Ambient
from stado_like.job import reasons
from stado_like.job.records import Capacity, Held, Room
from stado_like.job.terms import Ask
from stado_like.job.wanted import Wanted
from stado_like.planning.fit import Machine, held_by, share_of, whole_cards
from stado_worker.machine import memory
from stado_worker.machine.described import NO_HARDWARE, Hardware
from stado_worker.machine.disk import disk_pressure
from stado_worker.machine.room import LiveRoom
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.undying import Undying

BROADCAST_EVERY_S = 20.0
PROMISE_S = 25.0
MEASURE_USE_EVERY_S = 1.0
DISK_EVERY_S = 5.0
REST_FIRST_S = 1.0
REST_MOST_S = 60.0
FENCED_AFTER = 10

Reserved = Sequence[tuple[AttemptDir, Ask]]


def program_version() -> str:
    try:
        return version("stado-like")
    except PackageNotFoundError:
        return ""


@dataclass(slots=True)
class Offer:
    worker: str
    host: str
    room: LiveRoom
    ambient: Ambient
    scratch: Path
    address: str = ""
    machine_id: str = ""
    instance_id: str = ""
    started_at: float = 0.0
    nonce: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    hardware: Hardware = NO_HARDWARE
    wanted: Wanted = field(default_factory=Wanted)
    """What a person wants of this machine, as it was read last."""
    holds_nonce: str = ""
    """Of the holds that it obeys; `echo`: of those that named this machine, which somebody waits to hear of."""
    echo: str = ""
    due_s: float = 0.0
    undying: Undying = field(default_factory=Undying)
    _closed: str = ""
    _disk_due_s: float = 0.0
    _resting: str = ""
    _rest_until_s: float = 0.0
    _fenced: str = ""
    _undelivered: int = 0
    _used: dict[str, int] = field(default_factory=dict)
    _used_due_s: float = 0.0
    _told: tuple[object, ...] = (True, "", 0, "")

    # ---- what is free

    def sample(self, now_s: float, reserved: Reserved) -> None:
        """Called at every step: notes what is reserved, and measures now and then."""
        self.undying.look()
        reserved = [*reserved, *self.undying.reserved]
        self.room.sample(now_s, sum(self._takes(ask)[0] for _, ask in reserved))
        if self._resting and now_s >= self._rest_until_s:
            self._resting = ""
        if now_s >= self._disk_due_s:
            self._disk_due_s = now_s + DISK_EVERY_S
            self._closed = disk_pressure(self.scratch) or ""
        if reserved and now_s >= self._used_due_s:
            self._used_due_s = now_s + MEASURE_USE_EVERY_S
            self._used = {folder.attempt_id: _used_bytes(folder) for folder, _ in reserved}

    def close(self, why: str) -> None:
        """Take nothing new until the disk was looked at again."""
        self._closed = why

    def wants(self, wanted: Wanted) -> None:
        """A person has set something. One who lets a machine work again has looked at it: it need not rest."""
        self.wanted = wanted
        if not wanted.cordoned:
            self._undelivered, self._resting, self._fenced = 0, "", ""

    def note_delivery(self, now_s: float, *, delivered: bool, why: str = "") -> None:
        """A machine that cannot start processes must not claim one attempt after another in vain: it takes a rest, and
        after ten in a row it takes nothing more until a person has looked. `why`: how the last one went."""
        if delivered:
            self._undelivered = 0
            return
        self._undelivered += 1
        self._rest_until_s = now_s + min(REST_FIRST_S * 2 ** min(self._undelivered - 1, 10), REST_MOST_S)
        self._resting = reasons.no_process_starts(self._undelivered)
        if self._undelivered >= FENCED_AFTER:
            self._fenced = reasons.fenced_itself(self._undelivered, why or reasons.UNDELIVERED)

    @property
    def closed(self) -> str:
        cordoned = f"cordoned: {self.wanted.why}" if self.wanted.cordoned else ""
        return cordoned or self._closed or self._fenced or self.undying.why or self._resting

    @property
    def _keeps_off(self) -> str:
        """The same as the sentence for a task."""
        if self.wanted.cordoned:
            return reasons.cordoned(self.wanted.why)
        if self._closed:
            return reasons.under_pressure(self._closed)
        return reasons.refuses_work(self.closed) if self.closed else ""

    def machine(self, reserved: Reserved) -> Machine:
        reserved = [*reserved, *self.undying.reserved]
        taken = [(folder.attempt_id, *self._takes(ask)) for folder, ask in reserved]
        uses = [(held_bytes, self._used.get(attempt_id, 0)) for attempt_id, _, held_bytes in taken]
        free = self.room.free(sum(cpu for _, cpu, _ in taken), sum(held for held, _ in uses), memory.growth_bytes(uses))
        gpus = held_by(self.hardware.gpus, (ask for _, ask in reserved))
        return Machine(
            worker=self.worker,
            host=self.host,
            free_cpu_millis=free.cpu_millis,
            free_memory_bytes=free.memory_bytes,
            free_gpus=whole_cards(gpus),
            running=len(reserved),
            taken_whole=any(ask.exclusive for _, ask in reserved),
            closed=self._keeps_off,
            labels=self.labels,
            apart=frozenset(ask.apart for _, ask in reserved if ask.apart),
            total_cpu_millis=self.room.total.cpu_millis,
            total_memory_bytes=self.room.total.memory_bytes,
            total_gpus=len(gpus),
            gpus=gpus,
            ports=self.hardware.ports,
        )

    def _takes(self, ask: Ask) -> tuple[int, int]:
        return share_of(ask, self.room.total.cpu_millis, self.room.total.memory_bytes)

    # ---- what is told

    def is_due(self, now_s: float, *, accepting: bool, held: int = 0) -> bool:
        return now_s >= self.due_s or self._state(accepting, held) != self._told

    def _accepting(self, claiming: bool) -> bool:
        return claiming and not self.closed

    def _state(self, claiming: bool, held: int) -> tuple[object, ...]:
        """What is told at once when it changes. Whoever drains a machine waits for it to hold nothing."""
        return self._accepting(claiming), self.wanted.nonce, held if self.wanted.drain else 0, self.echo

    def said(self, now_s: float, *, accepting: bool, held: int = 0) -> None:
        self.due_s = now_s + BROADCAST_EVERY_S
        self._told = self._state(accepting, held)

    def capacity(self, at: float, reserved: Reserved, held: tuple[Held, ...], *, accepting: bool) -> Capacity:
        """The broadcast, with the promise to speak again in 25 s."""
        machine, total = self.machine(reserved), self.room.total
        return Capacity(
            nonce=self.nonce,
            worker=self.worker,
            host=self.host,
            address=self.address,
            machine_id=self.machine_id,
            boot_id=self.ambient.boot_id,
            instance_id=self.instance_id,
            started_at=self.started_at,
            at=at,
            next_by=at + PROMISE_S,
            total=Room(cpu_millis=total.cpu_millis, memory_bytes=total.memory_bytes, gpus=len(machine.gpus)),
            free=Room(
                cpu_millis=machine.free_cpu_millis, memory_bytes=machine.free_memory_bytes, gpus=machine.free_gpus
            ),
            gpus=machine.gpus,
            ports=machine.ports,
            whole=machine.taken_whole,
            labels=self.labels,
            accepting=self._accepting(accepting),
            why_not=self.closed or ("" if accepting else "it is stopping"),
            pressure=self._closed,
            held=held,
            wanted=self.wanted.nonce,
            holds_nonce=self.holds_nonce,
            version=program_version(),
        )


def _used_bytes(folder: AttemptDir) -> int:
    """What a task's processes hold, where its control group tells which they are; else nothing, which reserves more
    than needed."""
    name = folder.group_name()
    group = AttemptGroup.beside_us(name) if name is not None else None
    return memory.resident_bytes(group.pids()) if group is not None else 0
