"""What a task that waits to be placed says, and what each machine says that does not take it.

These sentences are known before a scheduler says all of them: whoever writes one takes it from here, so that it reads
the same from a worker, a tick and `job explain`. Runs of another workspace are never named: `ELSEWHERE` stands for
them.
"""

from __future__ import annotations

ELSEWHERE = "a job in another namespace"

# ---- a task, and its job


def refused_by(worker: str, why: str) -> str:
    """By a worker that does not start a gang's member it was given."""
    return f"{worker} did not take a gang member: {why}"


def ended_before_start(why: str) -> str:
    """By whoever ends a gang's member before its gang started."""
    return f"A gang member ended before the gang started: {why}"


def gang_cannot_be_placed(ready: int, total: int) -> str:
    return _none_or(f"Gang cannot be placed whole: {ready} of {total} machines ready", total)


def minimum_cannot_be_placed(ready: int, total: int) -> str:
    return _none_or(f"Cannot place the minimum to start together: {ready} of {total} machines ready", total)


def _none_or(sentence: str, total: int) -> str:
    return sentence if total else f"{sentence.partition(':')[0]}: no machines are registered"


def choose_a_place_for_data(machine: str) -> str:
    return f"Choose where to keep data on {machine}"


def waits_for_quota(what: str, in_use: str, asked: str, limit: str, *, gang: bool = False) -> str:
    """`what`: `gpus`, `cores`, `memory`, …, with the numbers as they are shown for it."""
    return f"{'Gang waits' if gang else 'Waits'} for namespace quota: {what} {in_use} in use + {asked} asked > {limit}"


def beyond_quota(why: str) -> str:
    return f"Waits for more than the namespace's quota allows at all ({why}): raise the quota or ask for less"


def waits_for_fabric(minutes: int, fabric: str, otherwise: str) -> str:
    return f"Waiting up to {minutes} min more for {fabric} (could start now on {otherwise})"


def next_to_run(priority: int, starts_by: str = "") -> str:
    """`starts_by`: `14:20`; empty: nobody can tell."""
    when = f"starts by {starts_by} UTC as running work ends" if starts_by else "waits for running work to end"
    return f"Next to run (priority {priority}): {when}"


def next_but_protected(priority: int, protected: str) -> str:
    """`protected`: what keeps the work that would be preempted, run by run."""
    return f"{next_to_run(priority)}; the lower-priority work it would preempt is protected ({protected})"


def in_minimum_runtime(run: str, until: str) -> str:
    return f"{run}: in its minimum runtime until {until} UTC"


def preempted_enough(run: str) -> str:
    return f"{run}: preempted as often as its run allows"


def behind_higher_priority(run: str) -> str:
    return f"Queued behind higher-priority work ({run})"


def behind(run: str, starts_by: str = "") -> str:
    return f"Queued behind {run}, which starts by {starts_by} UTC" if starts_by else f"Queued behind {run}"


def preempting(count: int, runs: str) -> str:
    return f"Preempting {count} lower-priority worker(s) of {runs} to start"


def waits_for_preempted(count: int) -> str:
    return f"Starting: waiting for {count} preempted worker(s) to stop"


# ---- a total that cannot be split into workers on these machines


def uneven(gpus: int, machines: int) -> str:
    return f"cannot evenly distribute {gpus} gpus across {machines} machines"


def not_a_power(gpus: int, machines: int) -> str:
    return f"{gpus} gpus across {machines} machines is {gpus // machines} per worker, not a power of 2"


def no_way_to_run(gpus: int, largest: int) -> str:
    return f"no way to run {gpus} GPUs on these machines: {largest} free on the largest one now"


def no_host_for_group(group: str) -> str:
    return f"no machine can host a worker of group {group} right now"


# ---- a machine

NO_CAPACITY = "machine is not ready (no capacity reported)"
NO_VOLUMES = "machine mounts no volumes for a process (give an image)"
NO_SECURITY_CONTEXT = "machine sets no security context for a process (give an image)"
NO_SHARES = "machine gives no shares of itself (node_fraction)"
NO_LABEL_IT_ACCEPTS = "worker carries none of the labels this machine accepts"


def no_active_port(kind: str, gbps: int = 0, found: str = "") -> str:
    """`kind`: `RDMA` or `InfiniBand`; `found`: what it has instead."""
    fast = f" at {gbps} Gb/s or faster" if gbps else ""
    return f"no active {kind} port{fast}" + (f" ({found})" if found else "")


def needs_healthy_gpus(need: int, free: int, at_risk: int) -> str:
    return f"needs {need} healthy GPUs, {free} free ({at_risk} more free but at risk)"


def no_such_gpu(kind: str) -> str:
    """`kind`: `nvidia H100 or H200 with at least 80 GB`"""
    return f"no {kind} GPU"


def no_gpu_so_large(memory_gb: float) -> str:
    return f"no GPU with at least {memory_gb} GB"


def no_shared_gpu(memory_gb: float) -> str:
    return f"no GPU that is shared ({memory_gb} GB asked)"


def no_gpu_with_id(ids: str) -> str:
    return f"no GPU with id {ids}"


def room_is_held(run: str) -> str:
    """`run`: as the reader may see it."""
    return f"room on this machine is held for {run}"


def refused_lately(run: str) -> str:
    return f"machine did not take {run} when it was last placed here"


def gpu_fault(index: int, what: str) -> str:
    return f"gpu fault on the machine: GPU {index}: {what}"


def kept_on_one_machine(machine: str) -> str:
    return f"the run is kept on one machine, {machine}"


def kept_within(level: str, name: str) -> str:
    """`level`: rack, site, …"""
    return f"the run is kept within {level} {name}"


def none_set(level: str, label: str) -> str:
    return f"no {level} set on this machine ({label})"


def machines_at_most(count: int) -> str:
    return f"the run may use at most {count} machines"


def has_one_already(level: str, name: str) -> str:
    return f"{level} {name} already has a worker of this run"


def no_drive(drive: str) -> str:
    return f"drive {drive} does not exist"


def drive_unusable(drive: str, why: str) -> str:
    return f"drive {drive}: {why}"


def drive_elsewhere(drive: str, machine: str, site: str) -> str:
    return f"drive {drive} is on {machine}, in another site ({site})"


def drive_too_large(drive: str, size: str, free: str) -> str:
    return f"drive {drive} needs {size} at this machine's data location, {free} free"


def no_egress(why: str) -> str:
    return f"machine cannot enforce an outbound policy ({why})"


def no_sandbox(why: str) -> str:
    return f"machine cannot run sandboxed workers ({why})"


def no_containers(image: str) -> str:
    return f"machine runs no containers (image {image})"


def no_other_user(user: str) -> str:
    return f"machine starts no process as another user ({user})"
