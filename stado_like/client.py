"""Everything a command does, for a program: submit, look, wait, read logs, cancel, delete.

    client = Client("s3://bucket/prefix")
    job = client.submit(command=["python", "train.py"], memory="16GiB", cpus=4, env={"SEED": "1"})
    job.wait(timeout_s=3600); job.state; job.logs()

The command line is a thin skin over this. A job is named by a person's words (`train`, `ws/train`, `train.2`), which
are resolved to one incarnation once per call; a `Job` handle keeps the incarnation it was made for. The first write
of a process through a URL probes the store; readers never do, so that they do not make what they only wanted to look
at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stado_like import again, config
from stado_like.ambient import REAL, Ambient
from stado_like.asking.family import parent_here, resolve_awaited
from stado_like.asking.naming import default_name
from stado_like.bucket import cancel as cancelling
from stado_like.bucket import delete as deleting
from stado_like.bucket import load
from stado_like.bucket import submit as submitting
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.cancel import Cancelled
from stado_like.bucket.cluster import ClusterRecord
from stado_like.bucket.submit import DoneAndDeleted
from stado_like.bucket.workspaces import Workspaces
from stado_like.errors import Conflict, NotFound, Refused, TimedOut, UsageError
from stado_like.handle import Job, Words
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Job as JobRecord
from stado_like.job.records import Tombstone
from stado_like.job.rollup import Rolled
from stado_like.job.terms import Terms
from stado_like.jobspec import JobSpec
from stado_like.operating import Operating
from stado_like.patience import Note, Patience, silent
from stado_like.reading import logs
from stado_like.reading.awaiting import Awaited
from stado_like.reading.kept_rows import KeptRows
from stado_like.reading.listing import Listing, Wanted, list_deleted, list_jobs
from stado_like.reading.logs import JobFollower, Part, TaskFollower
from stado_like.reading.named import read_named
from stado_like.reading.queue import QueueStatus, queue_status
from stado_like.reading.resolve import Meant, no_such_job, resolve
from stado_like.reading.shapes import JobRow, JobView, TaskView
from stado_like.reading.surroundings import Surroundings, WorkerView
from stado_like.reading.view import claimed, no_such_task, read_job, read_task
from stado_like.shipping import Shipping
from stado_like.store.protocol import ObjectStore
from stado_like.store.url import open_store

if TYPE_CHECKING:
    from stado_like.store.meter import Meter


class Client:
    """One store, seen by a person or a program. Safe to share between threads."""

    def __init__(
        self,
        store: str | config.Settings | None = None,
        *,
        workspace: str = "",
        opened: ObjectStore | None = None,
        meter: Meter | None = None,
        ambient: Ambient = REAL,
    ) -> None:
        """`store`: a URL, settings, or nothing (settings from the environment and the file). `opened`: a store that
        is open already.
        """
        settings = store if isinstance(store, config.Settings) else config.load({"store": store} if store else {})
        self.settings = settings
        self.workspace = workspace or settings.workspace
        self.store = opened or open_store(settings.store, ambient=ambient, meter=meter)
        self.bucket = Bucket(self.store, ambient=ambient)
        self.ambient = ambient
        self.workspaces = Workspaces(self.bucket, self.ready_to_write, _who)
        self.cluster = ClusterRecord(self.bucket, self.ready_to_write, _who)
        self.shipping = Shipping(self.store, settings, ambient)
        self.operate = Operating(self, _who)
        self.kept = KeptRows()
        self._trusted = False  # of this opened store: the verdict also sets it up

    def close(self) -> None:
        self.shipping.close()
        self.store.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ready_to_write(self) -> None:
        """The store keeps its promises: probed by the first writer of a process. Raises `StoreUntrusted`,
        `StoreUnavailable`.
        """
        if self._trusted:
            return
        from stado_like.store.probe import ensure_trusted

        ensure_trusted(self.store, ambient=self.ambient)
        self._trusted = True

    # ---- submit

    def submit(self, spec: JobSpec | None = None, *, request_id: str = "", **said: Any) -> Job:
        """Submit a job. Fields of `JobSpec` may be given as keywords. Raises `InvalidSpecification`, `Conflict`,
        store errors.
        """
        if spec is None:
            spec = JobSpec(**said)
        elif said:
            raise UsageError(f"both a JobSpec and {', '.join(said)} were given", "Give one of them.")
        return self.submit_document(self.document(spec, request_id), request_id=request_id)

    def document(self, spec: JobSpec, request_id: str = "") -> dict[str, Any]:
        """The stored form: name, workspace, directory and family filled in, validated, defaults applied. Nothing is
        written. Raises `NotFound` for a job to wait for that is not there.
        """
        from stado_like.job.spec.validate import Defaults, validate

        said = spec.settled(self.bucket.now).as_document()
        metadata = said["metadata"]
        if isinstance(metadata, dict):
            if spec.stem and "name" not in metadata:
                metadata["name"] = default_name(spec.stem, self._token(request_id))
            parent = "" if spec.detached else parent_here(os.environ, self.store.url)
            if parent:
                metadata.setdefault("parent", parent)
        said = self._filled_in(said, request_id)
        resolve_awaited(self.bucket, said, self.workspace)
        own = self.settings.retry_max_attempts, self.settings.machine_restarts
        defaults = Defaults.of(*self.cluster.restarts(said, *own))
        if self.shipping.ships(said["spec"]):
            validate({**said, "spec": {**said["spec"], "workdir": None}}, defaults)  # before a large folder is packed
            self.shipping.pack(said["spec"])
        return validate(said, defaults)

    def _filled_in(self, said: dict[str, Any], request_id: str) -> dict[str, Any]:
        metadata, spec = said["metadata"], said["spec"]
        if not isinstance(metadata, dict) or not isinstance(spec, dict):
            return said
        metadata.setdefault("workspace", self.workspace)
        template = spec.get("task_template")
        command = template.get("command") if isinstance(template, dict) else None
        if "name" not in metadata and isinstance(command, str):
            metadata["name"] = default_name(command, self._token(request_id))
        workdir = spec.get("workdir")
        if spec.get("bundle"):
            return said  # workdir is a folder in it
        if self.store.url.startswith("file:"):
            if isinstance(workdir, str) and workdir:
                there = os.path.expanduser(workdir)
                spec["workdir"] = os.path.normpath(there if os.path.isabs(there) else os.path.join(_here(), there))
            elif "cwd" not in spec and not workdir:
                spec["cwd"] = _here()
        return said

    def _token(self, request_id: str) -> str:
        """Random; of a request that may be sent again, the same each time, or its second sending would be another
        job.
        """
        return hashlib.sha256(request_id.encode()).hexdigest() if request_id else self.ambient.token()

    def submit_document(self, document: Mapping[str, Any], *, request_id: str = "", renumber: bool = False) -> Job:
        """Submit a document in its stored form (as `document` gives it). `renumber`: where its name is taken, under the
        next free one (`train-2` after `train`)."""
        try:
            return self._submit_as_named(document, request_id)
        except Conflict as taken:
            if not renumber or request_id or taken.code != "JOB_EXISTS":
                raise
        return self._under_a_free_name(document)

    def _submit_as_named(self, document: Mapping[str, Any], request_id: str) -> Job:
        self.workspaces.permit(document)
        self.shipping.look(document)
        self.ready_to_write()
        self.shipping.send(document)
        done = submitting.submit(self.bucket, document, request_id=request_id, by=_who(), origin=self.ambient.host)
        if isinstance(done, DoneAndDeleted):
            raise Conflict(
                f"this request was carried out already: its job {done.id} ended and was deleted",
                "Submit it under another request id to run it again.",
                code="JOB_DELETED",
            )
        return Job(self, done.id)

    def rerun(self, job: Words, name: str = "", *, from_checkpoint: bool = False) -> Job:
        """A new job from the stored specification of another, under `name` or the next free one (`train` -> `train-2`);
        with `from_checkpoint` its tasks go on from the newest checkpoints of the other's (`Refused` for none). It is
        nobody's child, and waits for no job and no moment.
        """
        j = self.resolve(job)
        document: Mapping[str, Any] = again.stripped(self._read(j).document)
        if from_checkpoint:
            document = again.from_checkpoint(self.bucket, j, document)
        if name:
            return self.submit_document(again.renamed(document, name))
        return self._under_a_free_name(document)

    def _under_a_free_name(self, document: Mapping[str, Any]) -> Job:
        return again.under_a_free_name(self.bucket, document, self.submit_document)

    # ---- look

    def resolve(self, job: Words) -> JobId:
        if isinstance(job, JobId):
            return job
        return job.id if isinstance(job, Job) else resolve(self.bucket, job, self.workspace)

    def job(self, words: str) -> Job:
        """A handle on the newest incarnation that the words name. Raises `NotFound` with the nearest names."""
        return Job(self, self.resolve(words))

    def _read(self, j: JobId) -> JobRecord:
        found = self.bucket.job(j)
        if found is None:
            raise no_such_job(self.bucket, Meant(j.workspace, j.name, j.k))
        return found

    def terms(self, job: Words) -> Terms:
        return self.bucket.terms(self._read(self.resolve(job)))

    def view(self, job: Words) -> JobView:
        if isinstance(job, str):
            return read_named(self.bucket, job, self.workspace)
        return read_job(self.bucket, self.resolve(job))

    def task(self, job: Words, rank: int) -> TaskView:
        return read_task(self.bucket, self.resolve(job), rank)

    def jobs(self, **wanted: Any) -> list[JobRow]:
        """Rows of `job list`, newest first; keywords are the fields of `Wanted`."""
        return list(self.listing(Wanted(**wanted)).rows)

    def listing(self, wanted: Wanted) -> Listing:
        return list_jobs(self.bucket, wanted, self.kept)

    def deleted(self, workspace: str = "") -> tuple[list[tuple[JobId, Tombstone]], dict[str, str]]:
        return list_deleted(self.bucket, workspace)

    def workers(self) -> tuple[list[WorkerView], dict[str, str]]:
        """Workers that have a broadcast, and the records that could not be read."""
        around = Surroundings(self.bucket)
        return list(around.workers), around.set_aside

    def worker(self, name: str) -> WorkerView:
        found, _ = self.workers()
        for one in found:
            if one.capacity.worker == name:
                return one
        known = ", ".join(one.capacity.worker for one in found) or "none"
        raise NotFound(f"there is no worker {name} in {self.store.url}", f"Workers that say they are there: {known}.")

    def held_by(self, worker: str) -> list[AttemptId]:
        """The attempts whose claims name this worker."""
        asked = ((a, self.bucket.claim(a)) for a in claimed(self.bucket, keys.RUNNING))
        return [a for a, claim in asked if claim is not None and claim.record.worker == worker]

    def queue(self) -> QueueStatus:
        return queue_status(self.bucket)

    # ---- wait

    def patience(
        self, timeout_s: float | None = None, on_note: Note = silent, rest: Callable[[float], None] | None = None
    ) -> Patience:
        return Patience(self.store.url, self.ambient, timeout_s=timeout_s, on_note=on_note, rest=rest)

    def wait(
        self,
        jobs: Sequence[Words],
        timeout_s: float | None = None,
        *,
        on_note: Note = silent,
        rest: Callable[[float], None] | None = None,
    ) -> list[Rolled]:
        """Until all are over: state and reason of each, in order. Raises `TimedOut`, and `NotFound` when one is deleted
        meanwhile."""
        waited = [Awaited(self.bucket, self.resolve(job)) for job in jobs]
        patience = self.patience(timeout_s, on_note, rest)
        for _ in patience.rounds():
            for one in waited:
                patience.ask(one.step)
            over = [one.over for one in waited if one.over is not None]
            if len(over) == len(waited):
                return over
        going = ", ".join(str(one.id) for one in waited if one.over is None)
        raise TimedOut(f"{going} did not end within {timeout_s:g} s", "It goes on; see `stado job show`.")

    # ---- logs

    def attempt(self, job: Words, rank: int = 0, n: int | None = None) -> AttemptId:
        """An attempt of a task: `n`, or the newest that has left a trace. Raises `NotFound`."""
        j = self.resolve(job)
        found = self._read(j)
        terms = self.bucket.terms(found)
        if not 0 <= rank < terms.tasks:
            raise no_such_task(found, terms, rank)
        if n is not None:
            return keys.AttemptId(j, rank, n)
        return load.newest_traced(j, rank, load.list_status(self.bucket, j, keys.task_status(j, rank)))

    def attempts(self, job: Words) -> list[AttemptId]:
        """The newest attempt of every task that has left a trace, by rank; one listing for all."""
        j = self.resolve(job)
        tasks = self.bucket.terms(self._read(j)).tasks
        listed = load.list_status(self.bucket, j)
        return [load.newest_traced(j, rank, listed) for rank in range(tasks)]

    def logs(self, job: Words, task: int = 0, attempt: int | None = None, tail: int | None = None) -> str:
        """The output of a task's newest attempt (or of `attempt`) as text; what is not UTF-8 becomes U+FFFD. `tail`:
        its last lines only.
        """
        a = self.attempt(job, task, attempt)
        if tail is None:
            return logs.read_text(self.bucket, a)
        decoder = logs.Decoder()
        return "".join(decoder.text(one) for one in logs.read_tail(self.bucket, a, tail)) + decoder.rest()

    def raw_logs(self, job: Words, task: int = 0, attempt: int | None = None) -> Iterator[bytes]:
        """The same, exact to the byte."""
        return logs.read_raw(self.bucket, self.attempt(job, task, attempt))

    def follow(
        self,
        job: Words,
        tasks: Sequence[TaskFollower],
        *,
        on_note: Note = silent,
        rest: Callable[[float], None] | None = None,
    ) -> Iterator[tuple[int, int, Part]]:
        """`(rank, attempt, part)` of what the tasks write, as it comes, until they or the job are over. Waits in
        between.
        """
        j = self.resolve(job)
        awaited = Awaited(self.bucket, j)
        follower = JobFollower(self.bucket, j, tasks)
        patience = self.patience(on_note=on_note, rest=rest)
        for _ in patience.rounds(steady=True):
            over = patience.ask(awaited.step)
            came = patience.ask(follower.step)  # after the look: what was written before the end is there
            yield from came or ()
            if follower.done or (over is not None and came is not None):
                return

    # ---- change

    def cancel(self, job: Words, reason: str = "") -> Cancelled:
        """Raises `Conflict` when it has ended already."""
        j = self.resolve(job)
        self.ready_to_write()
        done = cancelling.cancel_job(self.bucket, j, reason=reason, by=_who())
        if done.running:
            self.operate.ring_again("cancel", str(j))
        return done

    def task_stop(self, job: Words, rank: int, reason: str = "") -> bool:
        """Stop one task for good; whether it was over at once. Raises `Conflict` when it had ended."""
        j = self.resolve(job)
        self.ready_to_write()
        over = cancelling.stop_task(self.bucket, j, rank, reason=reason, by=_who())
        if not over:
            self.operate.ring_again("cancel", f"{j}.{rank:05d}")
        return over

    def delete(self, job: Words) -> None:
        """A job that has ended, with everything it left but a tombstone. Raises `Conflict` while it goes on."""
        j = self.resolve(job)
        self.ready_to_write()
        deleting.delete_job(self.bucket, j, by=_who())


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Refused(
            "the directory this was started from no longer exists, and the job would run there",
            "Change to another directory, or give one: `--workdir DIR`.",
        ) from None


def _who() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return str(os.getuid()) if hasattr(os, "getuid") else ""
