"""Arrays in blocks on real workers: each rank says that it began, and everything is looked at once all is over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from stado_like.bucket import finish
from stado_like.fsck.check import check
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End
from stado_like.job.terms import terms_of
from tests.process.rig import Rig, until

ONE = ("--cpus", "1", "--memory", "2GiB")
"""Room for one block at a time."""


def blocks(rig: Rig, script: str, *, size: int, block: int, **more: Any) -> JobId:
    return rig.submit("arr", script, cores=1, array={"size": size, "block": block}, **more)


def effects(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def unit(j: JobId, size: int, b: int = 0) -> AttemptId:
    return AttemptId(j, size + b, 1)


def unit_end(rig: Rig, j: JobId, size: int, b: int = 0, within_s: float = 20.0) -> End:
    return rig.end(j, size + b, within_s=within_s)


def all_over(rig: Rig, j: JobId, size: int, within_s: float = 30.0) -> dict[int, tuple[int, End]]:
    """Until every task is over and nothing of the job is in any index; each task's last attempt and its end."""
    found = {rank: rig.last(j, rank, within_s) for rank in range(size)}
    for prefix in ("queued/", "running/"):
        until(lambda p=prefix: not any(rig.bucket.store.list(p).rows), 10, f"{prefix} is empty")  # type: ignore[misc]
    return found


def clean(rig: Rig, j: JobId) -> None:
    """What a checker finds in the bucket once the job is final: nothing."""
    job = rig.bucket.job(j)
    assert job is not None
    finish.finish_if_over(rig.bucket, j, job, terms_of(job.document))
    until(lambda: rig.bucket.final(j), 5, f"{j} is final")
    assert check(rig.bucket, audit=True).findings == []


def folders(rig: Rig) -> set[str]:
    return {path.name for path in (rig.state / "w1" / "attempts").iterdir()}


def stuck_at(rig: Rig, rank: int, *, size: int = 6, block: int = 6, **more: Any) -> tuple[JobId, Path]:
    """An array whose given rank waits for a file; each says that it began."""
    log = rig.folder / "effects"
    wait = f"[ $RANK.$STADO_ATTEMPT != {rank}.1 ] || while [ ! -e {rig.folder}/gate ]; do sleep 0.02; done"
    return blocks(rig, f"echo $RANK.$STADO_ATTEMPT >> {log}; {wait}", size=size, block=block, **more), log


def begun(rig: Rig, log: Path, what: str) -> None:
    until(lambda: effects(log)[what], 10, f"{what} has begun; {[one.said() for one in rig.workers]}")
