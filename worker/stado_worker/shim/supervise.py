"""One supervisor: a process of its own that runs one attempt from start to settled end, whatever becomes of its agent.

    take `alive`  →  create `launch`  →  subreaper, control group  →  open log  →  start the command  →  proc.json
    →  I/O thread
    … at the end: the tree is reaped  →  exit.json  →  end record  →  settle  →  done

Two threads (see `life`): this one controls and never asks the store; the other does all I/O. The other is started when
it first has something to do: a task that is over within a second never needs it, for once its tree is gone control has
nothing left to do, and reports the end itself. SIGUSR1 is a nudge: there is news of this attempt, look now. SIGTERM and
the like are ignored: a supervisor ends with its task, and a task is stopped through the store.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

import orjson

from stado_like.ambient import REAL, Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict
from stado_like.job import codec
from stado_like.job.records import BellEvent, End, Heartbeat, Stop, Verdict
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import ObjectStore
from stado_like.store.url import open_store
from stado_worker import undying
from stado_worker.secrets.masking import NO_MASKS
from stado_worker.shim import forking, process, report
from stado_worker.shim.attempt_dir import BY_SUPERVISOR, AliveLock, AttemptDir
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.block import Block, BlockIo, is_block
from stado_worker.shim.block_goes_on import RankOn
from stado_worker.shim.block_ranks import Ranks
from stado_worker.shim.cgroup import AttemptGroup, group_name
from stado_worker.shim.collecting import CollectingThread
from stado_worker.shim.control import Control
from stado_worker.shim.environment import build, inherited
from stado_worker.shim.heartbeat import Io
from stado_worker.shim.life import Gate, Life, Over
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.oom import shared_counter
from stado_worker.shim.preparing import PreparingThread
from stado_worker.shim.report import Facts
from stado_worker.shim.runner import ProcessRunner, Runner
from stado_worker.shim.signs import watch_of
from stado_worker.shim.task import Read, Task, read_task, told
from stado_worker.shim.wakeups import Wakeups
from stado_worker.shim.workplace import Workplace

_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PROC_AFTER_S = 0.02
"""Nobody looks for a task that is over by then, and its group tells more than `proc.json`."""
WARM_TASKS = 200
WARM_TASK_S = 10.0
WARM_MESSAGE_BYTES = 65_536
_prepared: dict[str, ObjectStore] = {}


@cache
def _from_worker() -> dict[str, str]:
    """What every task has from the worker's environment, which does not change: found once for all that are forked."""
    return inherited(os.environ)


def prepare(url: str) -> None:
    """Open a store in the nursery, before any fork: no request is sent, but a client that takes long to build is
    built once. So is what else each supervisor would look for."""
    store = open_store(url)
    build = getattr(store, "prepare", None)
    if build is not None:
        build()
    _prepared[url] = store
    codec.warm(Task, End, Facts, Heartbeat, Verdict, Stop, BellEvent)
    shared_counter()
    _from_worker()


def run(attempt_dir: str, channel: socket.socket | None = None, ambient: Ambient = REAL) -> None:
    """The whole life of a supervisor process. With a `channel` to the agent it is warm: after a short task it says
    so and takes the next one, which saves a fork and everything a fresh process touches first. Any anomaly, 200
    tasks, or a task of over ten seconds retire it; so does the end of its agent.
    """
    process.become_subreaper()
    # One group for all its tasks, which never meet: entering one takes ten milliseconds on a machine that rests.
    group = AttemptGroup.join(group_name(Path(attempt_dir)))
    forking.make_ready(*_IGNORED)
    wakeups = Wakeups()
    try:
        _serve(attempt_dir, channel, group, wakeups, ambient)
    finally:
        wakeups.close()
        if group is not None:
            group.remove()


def _serve(
    attempt_dir: str, channel: socket.socket | None, group: AttemptGroup | None, wakeups: Wakeups, ambient: Ambient
) -> None:
    served = 0
    while True:
        began_s = ambient.boot_s()
        in_order = _run_one(Path(attempt_dir), group, wakeups, ambient, channel)
        served += 1
        if channel is None or not in_order or served >= WARM_TASKS or ambient.boot_s() - began_s > WARM_TASK_S:
            return
        try:
            channel.sendall(orjson.dumps({"idle": attempt_dir}) + b"\n")
            received = channel.recv(WARM_MESSAGE_BYTES)
        except OSError:
            return
        if not received:
            return
        attempt_dir = str(orjson.loads(received)["attempt_dir"])


def _run_one(
    path: Path, group: AttemptGroup | None, wakeups: Wakeups, ambient: Ambient, channel: socket.socket | None
) -> bool:
    """One attempt. Returns when it is settled, or is another's. True: nothing of it is left in this process."""
    folder = AttemptDir(path)
    try:
        alive = folder.take_alive(ambient=ambient)
    except Conflict:
        return True  # another supervisor has it, and goes on
    if not folder.create_launch(BY_SUPERVISOR + (group.path.name if group is not None else "")):
        alive.release()
        return True
    plain = folder.read_task()
    if plain is None:
        raise FileNotFoundError(f"{folder.path}/task.json")
    in_order = _Supervisor(read_task(plain), folder, group, wakeups, ambient, alive, channel).run()
    alive.release()
    return in_order


class _Supervisor:
    """Wires the two threads to real descriptors, signals and processes; all that decides is in `Control` and `Io`."""

    def __init__(
        self,
        read: Read,
        folder: AttemptDir,
        group: AttemptGroup | None,
        wakeups: Wakeups,
        ambient: Ambient,
        alive: AliveLock,
        channel: socket.socket | None,
    ) -> None:
        self._read = read
        self._folder = folder
        self._alive = alive
        self._channel = channel
        self._ambient = ambient
        self._wakeups = wakeups
        wakeups.nudged = False
        self._io_wanted = threading.Event()
        self._io_thread: threading.Thread | None = None
        self._life = Life(
            ambient,
            read.task.claimed_at,
            read.task.claimed_boot_s,
            wake_io=self._io_wanted.set,
            wake_control=wakeups.wake,
        )
        self._group = group
        meter = Meter()
        store = MeteredStore(_prepared.get(read.task.store) or open_store(read.task.store), meter)
        bucket = Bucket(store, ambient=ambient)
        if read.whole.shaped:
            bucket.remember_terms(read.task.job, read.whole)
        self._block = self._make_block(bucket) if is_block(read) else None
        shipping = LogShipping(bucket, read.a, folder.log, masks=None if read.terms.secret_refs else NO_MASKS)
        self._workplace = Workplace(read, folder, bucket, shipping, self._life)
        self._preparing = PreparingThread(self._life, self._workplace.prepare) if self._workplace.takes_time else None
        self._runner: Runner = self._make_runner() if self._block is None else self._block.runner
        barrier = GangBarrier(read, self._life, bucket, ambient) if read.waits_at_barrier else None
        stop_file = folder.stop if self._block is None else self._block.stop_file
        self._control = Control(
            read, self._life, self._runner, stop_file, ambient, self._keep_exit, self._preparing, barrier
        )
        self._collecting = CollectingThread(self._workplace.collect, self._wake_io) if read.terms.collect else None
        if self._block is not None:
            self._io: Io | BlockIo = self._block.io()
            return
        watch = watch_of(read, self._life, bucket, folder, shipping, ambient, self._workplace.checkpoints.path)
        close = self._workplace.close
        saved = self._workplace.checkpoints.is_finished
        self._io = Io(
            read, self._life, bucket, folder, shipping, ambient, close, watch, self._collecting, saved, barrier
        )

    def _make_block(self, bucket: Bucket) -> Block:
        """Several ranks of an array, one after the other."""
        group = self._group.path.name if self._group is not None else ""
        make = Ranks(self._read, self._folder, _from_worker(), self._group, self._ambient)
        return Block(self._read, self._folder, self._life, bucket, self._ambient, make, group, self._handed_over)

    def _make_runner(self) -> ProcessRunner:
        read, folder = self._read, self._folder
        cwd = self._workplace.folder_to_run_in()
        said = told(read, str(folder.stop), str(folder.path), self._ambient.host)
        env = build(_from_worker(), read.terms.env, said | self._workplace.checkpoints.variables)
        opened = self._workplace.opened
        return ProcessRunner(folder, read.terms.command, cwd, env, self._group, self._ambient, opened)

    def run(self) -> bool:
        """True: in order, and nothing is left that could reach into another attempt."""
        self._control_until_over()
        if not self._io.ends_at_once:
            self._start_io()
        self._io_wanted.set()
        if self._io_thread is None:
            self._io_loop()  # control has nothing left to do
        else:
            self._io_thread.join()
        self._workplace.clear()
        if self._block is not None and self._block.rank is not None:
            return False
        over = self._life.over
        if self._preparing is not None and self._preparing.is_alive:
            return False  # a preparation that was given up has not noticed yet
        if self._collecting is not None and self._collecting.is_alive:
            return False  # likewise
        if self._workplace.checkpoints.is_busy:
            return False  # an upload that nobody waits for any more
        if self._life.fenced or self._control.complaint or over is None or over.notes:
            return False  # something outlived the command, or would not die: whatever it was, it ends with this process
        if not self._folder.is_done():
            return False  # a full disk: the agent would take us for dead, and kill the group in which we serve another
        # Of a single command the end of its tree was this very look, and nothing was started since.
        return self._block is None or self._group is None or self._group.pids() == [self._ambient.pid]

    def _control_until_over(self) -> None:
        watched: int | None = None
        told = reachable = False
        life, turn = self._life, 0
        told_at_s = self._ambient.boot_s() + (PROC_AFTER_S if self._group is not None and self._block is None else 0.0)
        try:
            while True:
                sleep_s = self._control.step()
                if self._control.is_over:
                    rank = self._let_go()
                    if rank is None:
                        return
                    life = rank.life
                    continue
                if self._block is not None and self._block.rank is None:
                    sleep_s = min(sleep_s, self._block.runner.due_in_s())
                    if watched is not None and turn != self._block.runner.turn:
                        self._wakeups.forget(watched)  # of the rank before, whose descriptor is closed
                        watched = None
                    turn = self._block.runner.turn
                waiting = self._control.preparing or self._control.at_barrier
                if waiting and not reachable:
                    reachable, told_at_s = True, 0.0
                    self._write_proc()  # so that a nudge finds us while there is no process yet
                if self._control.started and not told:
                    sleep_s = min(sleep_s, max(0.0, told_at_s - self._ambient.boot_s()))
                    if self._ambient.boot_s() >= told_at_s:
                        told = True
                        self._write_proc()
                if self._io_thread is None:
                    sleep_s = min(sleep_s, self._io_in_s(at_once=waiting or life.gate is Gate.ASKED))
                fd = self._runner.wait_fd()
                if fd is not None and watched is None:
                    self._wakeups.watch(fd)
                    watched = fd
                if watched is not None and life.stop is not None and self._runner.leader_exit() is not None:
                    self._wakeups.forget(watched)  # readable for ever now: only its children are waited for
                    watched = None
                if self._wakeups.wait(sleep_s) and self._wakeups.nudged:
                    self._io_wanted.set()
        finally:
            if watched is not None:
                self._wakeups.forget(watched)

    def _let_go(self) -> RankOn | None:
        """Control goes on with the rank that its block has let go, where there is one."""
        rank = self._block.rank if self._block is not None else None
        if rank is None or self._control is rank.control:
            return None
        self._control, self._runner = rank.control, rank.runner
        self._write_proc(rank.folder)
        self._io_wanted.set()
        return rank

    def _handed_over(self, rank: RankOn) -> None:
        """By the other thread: the block is settled, and its rank an attempt of its own. Where the block could not be
        noted as done (a full disk) its lock stays held, or the agent would kill what runs on as its remains."""
        if not self._folder.is_done():
            return
        self._alive.release()  # before the agent is woken, who asks for it
        if self._channel is not None:
            with suppress(OSError):  # the agent has gone, or knows it already: its folder tells
                self._channel.sendall(orjson.dumps({"goes_on": str(rank.folder.path)}) + b"\n")

    def _spoken_to(self) -> tuple[AttemptDir, Life]:
        """Whom a nudge is for."""
        rank = self._block.rank if self._block is not None else None
        if rank is not None and rank.handed_over:
            return rank.folder, rank.life
        return self._folder, self._life

    def _io_in_s(self, *, at_once: bool) -> float:
        """Start the other thread where it has something to do; else in how many seconds it will."""
        left_s = self._io.due_s - self._ambient.boot_s()
        if at_once or left_s <= 0 or self._io_wanted.is_set():
            self._start_io()
            return math.inf
        return left_s

    def _write_proc(self, folder: AttemptDir | None = None) -> None:
        leader = self._runner.leader
        with suppress(OSError):  # a full disk: the group and the environment still tell what is ours
            (folder or self._folder).write_proc({"pid": self._ambient.pid, "leader": leader})

    def _keep_exit(self, over: Over) -> None:
        undying.note(self._folder, over.stuck, self._ambient.boot_id)
        if self._block is not None:
            self._block.close(over)  # what its ranks came to is kept as they end
            return
        running_s = over.ended_at - self._life.running_at if self._life.running_at else 0.0
        if self._io_thread is None and self._io.ends_at_once and report.asks_nothing(self._read, over, running_s):
            return  # this thread composes the end right away, and keeps what was seen together with its bytes
        report.keep(self._folder, report.facts_of(self._read, self._life, over), fsync=self._read.task.fsync)

    # ---- the other thread

    def _wake_io(self) -> None:
        self._io_wanted.set()

    def _start_io(self) -> None:
        if self._io_thread is not None:
            return
        thread = threading.Thread(target=self._io_loop, name="io", daemon=True)
        self._io_thread = thread
        try:
            thread.start()
        except RuntimeError:
            self._io_thread = None  # this machine has no room for a thread now: asked again at the next step of control

    def _io_loop(self) -> None:
        if threading.current_thread() is self._io_thread:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        while True:
            self._io_wanted.clear()  # before looking: what comes during the step wakes the wait after it
            if self._wakeups.nudged:
                self._wakeups.nudged = False
                folder, life = self._spoken_to()
                self._io.follow(folder.followed_until())
                life.nudge()
            wait_s = self._io.step()
            if wait_s is None:
                return
            self._io_wanted.wait(wait_s)
