"""What stays in memory: the proportional set size (PSS) of agent, nursery, and one supervisor while its task sleeps.

PSS shares out pages that several processes map, so the sum over processes is what they really take; a fork of a
pre-loaded process looks as large as its parent by any other measure.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from bench.cluster import Cluster, NotMeasured, die_with_parent, until
from stado_like.job import keys
from stado_worker.shim.attempt_dir import AttemptDir


def pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise NotMeasured(f"/proc/{pid}/smaps_rollup has no Pss line")


def nursery_of(pid: int) -> int:
    found = [one.pid for one in psutil.Process(pid).children() if "stado_worker.nursery" in one.cmdline()]
    if len(found) != 1:
        raise NotMeasured(f"process {pid} has {len(found)} nurseries")
    return found[0]


def measure(on: Cluster, name: str) -> dict[str, float]:
    """MiB of `agent`, `nursery`, `supervisor`, and of a bare `python` for comparison."""
    job = on.client.submit(command=("/bin/sleep", "60"), name=name)
    a = keys.AttemptId(job.id, 0, 1)
    folder = AttemptDir(on.attempts / str(a))
    until(lambda: folder.path.is_dir() and folder.read_proc() is not None, 20.0, f"{a} did not start")
    until(lambda: on.client.store.head(keys.heartbeat(a)) is not None, 20.0, f"{a} had no heartbeat", poll_s=0.05)
    pid = (folder.read_proc() or {})["pid"]
    if not isinstance(pid, int):
        raise NotMeasured(f"{folder.path}/proc.json has no pid")
    found = {"agent": pss_mib(on.pid), "nursery": pss_mib(nursery_of(on.pid)), "supervisor": pss_mib(pid)}
    job.cancel("measured")
    until(lambda: on.client.store.head(keys.running(a)) is None, 40.0, f"{a} was not settled", poll_s=0.02)
    return {**found, "python": _bare_mib()}


def _bare_mib() -> float:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
    )
    try:
        assert process.stdout is not None
        process.stdout.read(1)
        return pss_mib(process.pid)
    finally:
        process.kill()
        process.communicate()
