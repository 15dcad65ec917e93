"""What an agent finds of the work of an earlier one: every folder that is not done, and where its attempt stands.

    alive                        RUNNING: its supervisor is watched as if we had started it
    launched, or exit.json       ENDING: the supervisor is dead
    claimed before a reboot      ENDING: whatever ran is gone
    else                         CLAIMING: the same claim is sent again, with the same bytes

Not obvious because the files may have been hurt with whatever killed the agent. A claim that cannot be read is asked
of the store, which says whether this worker holds the attempt; a task that cannot be read is put together again from
the job. Neither stops the worker, nor keeps it from its other attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stado_like.ambient import Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import codec
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim
from stado_like.job.spec.limits import DEFAULT_HEARTBEAT_TTL_S
from stado_like.job.terms import Ask
from stado_worker.holdings import Holding, Phase
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs
from stado_worker.shim.block_ran import blocks_in
from stado_worker.shim.task import Read, Task, read_of, read_task

if TYPE_CHECKING:
    from stado_worker.agent import AgentOptions

ASK_EVERY_S = 15.0
UNREADABLE = (BadRecord, KeyError, TypeError, ValueError, AttributeError)
"""What reading a record raises that somebody else wrote, hurt, or that a newer version shaped differently."""


@dataclass(slots=True)
class Found:
    """`unread`: folders whose claim cannot be read, for `ask_the_store`."""

    holdings: list[Holding] = field(default_factory=list)
    unread: list[tuple[AttemptId, AttemptDir]] = field(default_factory=list)


def look_through(attempts: Path, boot_id: str, known: Callable[[str], bool], log: Callable[[str], None]) -> Found:
    """Every attempt of an earlier agent that is not done. What is no attempt's folder is left alone."""
    found, here = Found(), _Blocks(attempts)
    for folder in attempt_dirs(attempts):
        if folder.is_done() or known(folder.attempt_id):
            continue
        try:
            a = AttemptId.parse(folder.attempt_id)
        except UNREADABLE:
            log(f"{folder.path} is no attempt's folder: left alone")
            continue
        holding = read_holding(a, folder, boot_id, log)
        if holding is not None:
            found.holdings.append(holding)
            log(f"{a}: found, {holding.phase}")
        elif (block := here.carrying(a)) is None:
            found.unread.append((a, folder))
        elif block.is_done():
            report.note_done(folder, ours=True)  # whoever ended the block died before it came to this
    return found


@dataclass(slots=True)
class Unread:
    """Folders whose claim cannot be read: the store is asked now and then whether they are ours."""

    folders: list[tuple[AttemptId, AttemptDir]] = field(default_factory=list)
    due_s: float = 0.0

    def __contains__(self, a: object) -> bool:
        return any(one == a for one, _ in self.folders)

    def ask(self, bucket: Bucket, options: AgentOptions, now_s: float, log: Callable[[str], None]) -> list[Holding]:
        """Those that are. Raises `StoreUnavailable`."""
        if not self.folders or now_s < self.due_s:
            return []
        self.due_s = now_s + ASK_EVERY_S
        return ask_the_store(bucket, self.folders, options, log)


def rank_that_goes_on(
    folder: AttemptDir, unread: Unread, ambient: Ambient, log: Callable[[str], None]
) -> Iterator[Holding]:
    """The attempt that a block has let go, unless it is over by now."""
    a = AttemptId.parse(folder.attempt_id)
    holding = read_holding(a, folder, ambient.boot_id, log)
    if holding is None:
        unread.folders.append((a, folder))
    elif not folder.is_done():
        yield holding


def read_holding(a: AttemptId, folder: AttemptDir, boot_id: str, log: Callable[[str], None]) -> Holding | None:
    """What lies there, and where it stands. None: it does not say."""
    try:
        holding = _from_folder(a, folder)
    except UNREADABLE as bad:
        log(f"{a}: {bad}; asking the store who holds it")
        return None
    if holding is not None:
        place(holding, boot_id)
    return holding


class _Blocks:
    """The blocks of this machine, looked for once a folder without a claim is met: a rank that one of them carries has
    none, and wants none."""

    def __init__(self, attempts: Path) -> None:
        self._attempts = attempts
        self._found: list[tuple[JobId, range, AttemptDir]] | None = None

    def carrying(self, a: AttemptId) -> AttemptDir | None:
        if a.n != 1:
            return None
        if self._found is None:
            self._found = list(blocks_in(self._attempts))
        return next((folder for j, ranks, folder in self._found if j == a.job and a.rank in ranks), None)


def _from_folder(a: AttemptId, folder: AttemptDir) -> Holding | None:
    """None: no claim lies there. Its writer died before it was written, or a crash of the machine took it."""
    plain = folder.read_claim()
    if plain is None:
        return None
    where = str(folder.path / "claim.json")
    claim = codec.from_plain(Claim, plain["claim"], where)
    ask = codec.from_plain(Ask, plain["ask"], where)
    if AttemptId.parse(claim.attempt) != a:
        raise BadRecord(f"{where} claims {claim.attempt}", "Look at the file.")
    return Holding(a, claim, str(plain["body"]).encode(), folder, ask, float(plain["boot_s"]))


def ask_the_store(
    bucket: Bucket, unread: list[tuple[AttemptId, AttemptDir]], options: AgentOptions, log: Callable[[str], None]
) -> list[Holding]:
    """The holdings among folders whose claim cannot be read. Folders that could be told are taken off the list; those
    that this worker does not hold are done with. Raises `StoreUnavailable`."""
    found = []
    for a, folder in tuple(unread):
        try:
            holding = _held_by_the_store(bucket, a, folder, options)
        except UNREADABLE as bad:
            log(f"{a}: set aside: {bad}")
            continue
        unread.remove((a, folder))
        if holding is None:
            report.note_done(folder, ours=False)
        else:
            found.append(holding)
            log(f"{a}: found, {holding.phase}")
    return found


def _held_by_the_store(bucket: Bucket, a: AttemptId, folder: AttemptDir, options: AgentOptions) -> Holding | None:
    found = bucket.claim(a)
    if found is None or (found.record.worker, found.record.machine_id) != (options.worker, options.machine_id):
        return None
    claim = found.record
    job = bucket.job(a.job)
    ask = bucket.terms(job).for_rank(a.rank).ask.on(claim.devices) if job is not None else Ask(0, 0, 0)
    holding = Holding(a, claim, codec.encode(claim), folder, ask, bucket.ambient.boot_s(), sent=True)
    place(holding, bucket.ambient.boot_id)
    return holding


def place(holding: Holding, boot_id: str) -> None:
    """Where an attempt found on disk stands."""
    folder = holding.folder
    holding.ttl_s = _ttl_s(folder)
    if folder.is_alive():
        holding.phase = Phase.RUNNING
    elif folder.launched_by() is not None or _has_exit(folder) or holding.claim.boot_id != boot_id:
        holding.phase = Phase.ENDING


def _has_exit(folder: AttemptDir) -> bool:
    return (folder.path / "exit.json").exists()


def _ttl_s(folder: AttemptDir) -> int:
    """The heartbeat TTL that `task.json` says, the default where it cannot be read."""
    try:
        plain = folder.read_task()
        return DEFAULT_HEARTBEAT_TTL_S if plain is None else read_task(plain).terms.ttl_s
    except UNREADABLE:
        return DEFAULT_HEARTBEAT_TTL_S


def task_of(bucket: Bucket, holding: Holding) -> Read | None:
    """What the attempt was to run: from its folder, or put together again from the store. None: its job is gone.
    Raises `StoreUnavailable`, and `BadRecord` where the job cannot be read."""
    try:
        plain = holding.folder.read_task()
        if plain is not None:
            return read_task(plain)
    except UNREADABLE:
        plain = None  # hurt: the job itself says the same
    a = holding.a
    job = bucket.job(a.job)
    if job is None:
        return None
    return read_of(
        Task(
            attempt=str(a),
            store=bucket.store.url,
            worker=holding.claim.worker,
            claim=holding.claim,
            job=bucket.as_split(job),
            previous=bucket.end(a.previous) if a.previous is not None else None,
            claimed_boot_s=holding.claimed_boot_s,
            claimed_at=holding.claim.since,
        )
    )
