"""Every sentence a person may read, once. Reasons are an interface: people grep for them, so they are added and
never changed. Those of a scheduler that places work are beside this file, in `reasons_placement`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from stado_like.job.spec.units import duration_text

RUN_CREATED = "Run created"
WAITING_TO_START = "Waiting for workers to start"
WAITING_TO_BE_CREATED = "Waiting for workers to be created"
ALL_COMPLETED = "All workers completed"
SOME_CANCELLED = "All workers ended; some were cancelled"
LEASE_EXPIRED = "Heartbeat lease expired"
HEARTBEAT_RECEIVED = "Heartbeat received"
NO_HEARTBEAT = "No heartbeat for the worker's full TTL after going stale"
MACHINE_LOST = "Machine lost: its lease expired"
MACHINE_RESTARTED = "Machine lost: it restarted"
SUPERVISOR_LOST = "Machine lost: the task's supervisor died"
LOST_WHILE_STOPPING = "Machine lost while stopping"
MACHINE_REMOVED = "Machine removed from the cluster"
REMOVED_WHILE_STOPPING = "Machine removed from the cluster while stopping"
UNDELIVERED = "Claimed, and never started a process"
PREPARING = "Preparing"
LOOKING_FOR_CHECKPOINT = "Looking for its checkpoint"
UPLOADING_CHECKPOINT = "Uploading its checkpoint"
STARTED = "Process started"
RUNNING = "Process running"
STOPPED_ON_REQUEST = "Stopped on request"
BLOCK_GIVEN_BACK = "Given back: some of the tasks carried with it were stopped"
STOPPED_BY_SCHEDULER = "Stopped by scheduler"
ALL_ENDED = "All workers ended; the end of the run is being written"
RUN_FAILED = "Run failed"
RUN_COMPLETED = "Run completed"
RUN_CANCELLED = "Run cancelled"
OOM_KILLED = "OOMKilled: the container exceeded its memory limit"
AGENT_TERMINATED = "Completed by ending its worker, as it said it would"
AT_BARRIER = "Waiting at the gang barrier"
CONTAINER_STARTED = "Container started"
CONTAINER_RUNNING = "Container running"
CONTAINER_GONE = "Container not found on the node"
GANG_BUDGET_SPENT = "A gang member exhausted its restart budget"
FAILS_ON_A_FAILURE = "A worker failed, and the run fails on a failure"
A_GPU_FAULT = "a GPU fault"
GANG_OVERRAN = "A gang member exceeded its time limit"
WORKER_OVERRAN = "A worker exceeded its time limit"
BARRIER_TIMED_OUT = "Gang barrier timed out waiting for all members"
PARENT_TERMINATED = "Parent job terminated"


def disconnected(seconds: int) -> str:
    return f"Stopped: cut off from the store for {duration_text(seconds)}"


def exited(code: int) -> str:
    return f"Exited with code {code}"


def killed_by(signal: str, code: int) -> str:
    return f"Exited with code {code} (killed by {signal})"


def could_not_start(why: str) -> str:
    return f"Container start failed: {why}"


def could_not_prepare(why: str) -> str:
    return f"Could not be made ready to start: {why}"


def restoring(checkpoint: str, size: str) -> str:
    return f"Restoring {checkpoint} ({size})"


def checkpoint_waits(why: str) -> str:
    return f"Its checkpoint cannot be fetched yet: {why}"


def waits_for_secret(name: str, key: str) -> str:
    return f"waiting for external secret {name} (key {key}) to be synced to this node"


def waits_for_registry_secret(name: str) -> str:
    return f"waiting for registry secret {name} to be synced to this node"


def waits_for_volume(volume: str, why: str) -> str:
    return f"Waiting for data volume {volume}: {why}"


def waits_for_drive(drive: str, why: str) -> str:
    return f"Waiting for drive {drive}: {why}"


def waits_for_copy(drive: str, machine: str) -> str:
    return f"Waiting for drive {drive} to be filled on {machine}"


def pulling(image: str) -> str:
    return f"Pulling {image}"


def could_not_pull(error: str) -> str:
    return f"ErrImagePull: {error}"


def image_absent(image: str) -> str:
    return f"Image {image} is not present and the pull policy is None"


def could_not_create(error: str) -> str:
    return f"Container create failed: {error}"


def invalid_task(error: str) -> str:
    return f"Invalid task: {error}"


def outbound_policy(why: str) -> str:
    return f"Outbound policy: {why}"


def writing_config(path: str, error: str) -> str:
    return f"Writing config {path}: {error}"


def stalled(seconds: int) -> str:
    return f"Stalled: no log, checkpoint or progress for {duration_text(seconds)}"


def stalled_restarted(seconds: int) -> str:
    return f"Stalled, restarted by its run's policy: no log, checkpoint or progress for {duration_text(seconds)}"


def writes_again(seconds: float) -> str:
    return f"Process running: it writes again, after {duration_text(round(seconds))} without a sign"


def collecting(count: int) -> str:
    return f"Collecting its files ({count} asked for)"


def time_limit(seconds: int) -> str:
    return f"Exceeded its time limit of {duration_text(seconds)}"


def restarted(failures: bool, count: int, limit: int) -> str:
    """By the reader, of a task that waits after a restart that spent a budget."""
    if failures:
        return f"Restarted by policy (restart {count}/{limit})"
    return f"Restarted after its machine was lost (restart {count} of {limit})"


def restarted_after_stall(count: int, limit: int) -> str:
    """By the reader, likewise."""
    return f"Restarted after a stall (restart {count}/{limit})"


def restarted_after_gpu_fault(count: int, limit: int) -> str:
    """By the reader, likewise."""
    return f"Restarted after a GPU fault (restart {count} of {limit})"


def preempted(run: str) -> str:
    """By the tick that stops a task for a more urgent run; the stop file and the end carry it on."""
    return f"Preempted by higher-priority work ({run})"


def queued_again(run: str) -> str:
    """By the reader, of a task that waits after a preemption."""
    return f"Preempted by {run}; queued again"


def moved_off(machine: str, why: str) -> str:
    """By the worker or the tick that moves a task off a machine."""
    return f"Moved off machine {machine}: {why}"


BEING_DRAINED = "it is being drained"


def requeued(by: str) -> str:
    """By a person who puts a task back into the queue, and gives no reason of their own."""
    return f"Requeued by {by}" if by else "Requeued"


def gang_restarts(task: str) -> str:
    """By the tick that stops a gang's other members for one that failed."""
    return f"Gang restart: {task} failed"


def gang_restart(task: str, why: str) -> str:
    """By the reader, of a gang's members that wait after another of them ended."""
    return f"Gang restart after {task}: {why}"


def budget_spent(count: int, limit: int, of_machines: bool, last: str) -> str:
    """By whoever ends the attempt that finds its budget spent."""
    what = "faults of its machine or GPUs" if of_machines else "its own failures"
    return f"Retry budget exhausted after {count}/{limit} restarts for {what}; the last: {last}"


def evictions_spent(count: int, limit: int, last: str) -> str:
    """Likewise, of `max_retries_preemption`."""
    what = "preemptions and losses of its machine"
    return f"Retry budget exhausted after {count}/{limit} restarts for {what}; the last: {last}"


def supervisors_died(workers: Sequence[str], last: str) -> str:
    """By whoever ends the attempt under which one supervisor too many died."""
    count = {2: "two", 3: "three"}.get(len(workers), str(len(workers)))
    where = ", ".join(dict.fromkeys(workers))
    return f"Failed: {count} supervisors died while running it, on {where}, whose machines lived on; the last: {last}"


def signalled_before_limit(signal: str, seconds: int, limit: int) -> str:
    """By the supervisor, when it has warned a task of its time limit."""
    return f"Sent {signal} {duration_text(seconds)} before its time limit of {duration_text(limit)}"


def killed_after_grace(seconds: int) -> str:
    """By the supervisor, in the history of a task that did not end by its stop's signal."""
    return f"Killed: it had not ended after its grace of {duration_text(seconds)}"


def no_process_starts(times: int) -> str:
    """By a worker that rests because it could start no process."""
    return f"no process could be started here, {times} times in a row"


def fenced_itself(times: int, last: str) -> str:
    """By a worker that takes nothing more until a person has looked."""
    return f"no process could be started here, {times} times in a row; the last: {last}; it waits for a person"


def would_not_die(attempts: Iterable[str], pids: Iterable[int]) -> str:
    """By a worker that takes nothing while processes of ended attempts are left."""
    those = ", ".join(map(str, pids))
    return f"processes {those} of {', '.join(attempts)} would not die, even killed; their room is not free"


def running(running_count: int, total: int, serving: bool) -> str:
    return f"{running_count} of {total} workers {'serving' if serving else 'running'}"


def starting_together(ready: int, total: int) -> str:
    return f"Starting together: {ready} of {total} ready"


def group_completed(group: str) -> str:
    return f"Worker group {group} completed"


def quota_reached(why: str) -> str:
    """In the history of a job, the first time it waits on its workspace's quota."""
    return f"Quota reached: {why}"


def worker_failed(task: str, machine: str, reason: str) -> str:
    return f"Worker {task} failed on {machine}: {reason}" if machine else f"Worker {task} failed: {reason}"


def worker_lost(task: str, machine: str, reason: str) -> str:
    return f"Worker {task} was lost on {machine}: {reason}"


def worker_overran(task: str, reason: str) -> str:
    return f"Worker {task}: {reason}"


def worker_stopped(task: str, reason: str) -> str:
    return f"Worker {task} was stopped: {reason}"


def waits_for_group(group: str, healthy: bool) -> str:
    return f"Waits for worker group {group} to be {'healthy' if healthy else 'running'}"


def cannot_start_without(why: str, group: str) -> str:
    return f"{why}; worker group {group} cannot start without it"


def waits_for_job(job: str, wanted: str) -> str:
    return f"Waits for job {job} {_TO[wanted]}"


def awaited_came_to(job: str, wanted: str, state: str, reason: str) -> str:
    """Why a job is cancelled that waited for another (`after`)."""
    return f"Waited for job {job} {_TO[wanted]}, and it is {state}: {reason}"


def awaited_is_gone(job: str, wanted: str) -> str:
    """Likewise."""
    return f"Waited for job {job} {_TO[wanted]}, and it was deleted"


_TO = {"Completed": "to complete", "Failed": "to fail", "Ended": "to end"}


def waited_too_long(seconds: int) -> str:
    return f"Waited longer than its scheduling timeout of {duration_text(seconds)}"


def deadline_passed(at: float) -> str:
    return f"Not started by its deadline of {datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def gang_needs_it(why: str) -> str:
    return f"{why}; the gang does not run without it"


def cannot_finish_without(why: str, group: str) -> str:
    return f"{why}; worker group {group} cannot finish without it"


def several_failed(failed: int, total: int, first: str) -> str:
    return f"{failed} of {total} workers failed; the first: {first}"


def cannot_plan(why: str) -> str:
    """A total that cannot be split into tasks as the document says."""
    return f"Cannot plan workers: {why}"


def array_full(width: int) -> str:
    return f"Array runs at most {width} workers at once"


def no_machine_fits(ready: int, total: int) -> str:
    if total == 0:
        return "No machine fits: no machines are registered"
    return f"No machine fits: {ready} of {total} machines ready"


def no_tick(since: str) -> str:
    return f"no tick on this store since {since}: run `stado up` or put `scheduler tick` in cron"


def stopping_workers(why: str) -> str:
    """A job whose verdict stands while its tasks still end."""
    return f"{why}; its workers are being stopped"


def waiting_again(cause: str) -> str:
    return f"{cause}; waiting to run again"


def insufficient_cpu(need: str, free: str) -> str:
    return f"insufficient cpu: need {need} cores, {free} free"


def insufficient_memory(need: int, free: int) -> str:
    return f"insufficient memory: need {need} bytes, {free} free"


def insufficient_gpus(need: int, free: int) -> str:
    return f"insufficient gpus: need {need}, {free} free and usable"


def not_ready(state: str) -> str:
    return f"machine is not ready ({state})"


def refuses_work(why: str) -> str:
    return f"machine does not accept runs: {why}"


def cordoned(why: str) -> str:
    """By whoever tells what keeps a task off a machine that a person has cordoned."""
    return f"machine is cordoned: {why}"


def queue_paused(why: str) -> str:
    """By the reader, of whatever waits while a person has paused the queue."""
    return f"The queue is paused: {why}"


def under_pressure(condition: str) -> str:
    return f"under pressure: {condition}"


def lacks_label(key: str, value: str) -> str:
    return f"machine lacks label {key}={value}"


ANOTHER_WORKER_HERE = "another worker of this run is already on the machine"
PINNED_ELSEWHERE = "machine is not among the selected names"
NOT_IDLE = "the run asks for the whole machine, and other work runs on it"
TAKEN_WHOLE = "an exclusive run has the whole machine"
