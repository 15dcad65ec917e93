"""Where the signs of work of one attempt are found: its folder, its log, its checkpoints here and in the store."""

from __future__ import annotations

from pathlib import Path

from stado_like.ambient import Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.store.protocol import list_all
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.life import Life
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.progress import ProgressFile
from stado_worker.shim.stall import Watch
from stado_worker.shim.task import PROGRESS, Read


def watch_of(
    read: Read,
    life: Life,
    bucket: Bucket,
    folder: AttemptDir,
    shipping: LogShipping,
    ambient: Ambient,
    checkpoint_dir: Path | None = None,
) -> Watch:
    return Watch(
        life,
        ambient,
        ProgressFile(folder.path / PROGRESS, window_s=_window_s(read)),
        shipping.size,
        stall=read.terms.stall,
        checkpoint_dir=checkpoint_dir,
        checkpoint_age_s=lambda: _newest_in_store_s(bucket, read),
    )


def _window_s(read: Read) -> float:
    """How much of its own past a task keeps for others to compare themselves with; 0: nobody does."""
    terms = read.terms
    if terms.straggling is None or terms.group_of(read.a.rank).tasks < 2:
        return 0.0
    return float(max(terms.straggling.after_s, 1))


def _newest_in_store_s(bucket: Bucket, read: Read) -> float | None:
    """Age of the newest object under the attempt's own checkpoints. Raises `StoreError`."""
    rows = list(list_all(bucket.store, keys.checkpoints_of(read.a)))
    return max(0.0, bucket.now() - max(row.last_modified for row in rows)) if rows else None
