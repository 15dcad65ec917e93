"""The checkpoints of a job: every one that is complete is whole.

A manifest without its blobs is a promise that a later attempt will find broken. The reverse is none: a running attempt
sends blobs before it names them, and one that was killed leaves them until the next cleans up.
"""

from __future__ import annotations

from stado_like.bucket import checkpoints
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NewerRecord
from stado_like.fsck.finding import Findings, found
from stado_like.fsck.picture import JobPicture
from stado_like.job import checkpoint
from stado_like.job.checkpoint import Ref
from stado_like.job.checkpoint_keys import Shelf


def check_checkpoints(bucket: Bucket, p: JobPicture) -> Findings:
    """Every checkpoint of one job. Raises `StoreUnavailable`."""
    if p.terms is None or p.is_dying or not any(one.startswith("checkpoints/") for one in p.traces.data):
        return
    for rank in range(p.terms.tasks):
        wanted = checkpoint.wanted(p.terms.for_rank(rank).checkpoint)
        if wanted is not None:
            yield from _of_task(bucket, Shelf(p.id, rank, wanted.prefix))


def _of_task(bucket: Bucket, shelf: Shelf) -> Findings:
    held = checkpoints.held(bucket, shelf)
    for ref in sorted(held.manifests):
        yield from _one(bucket, shelf, held, ref)


def _one(bucket: Bucket, shelf: Shelf, held: checkpoints.Held, ref: Ref) -> Findings:
    key = shelf.manifest(ref)
    try:
        manifest = checkpoints.read(bucket, shelf, ref)
    except BadRecord as bad:
        yield found("record-newer" if isinstance(bad, NewerRecord) else "record-unreadable", key, bad.message)
        return
    if manifest is None:
        return  # removed since it was listed
    if manifest.attempt != f"{shelf.job}.{shelf.rank:05d}.{ref.n:06d}" or manifest.ref != ref:
        yield found("record-elsewhere", key, f"{ref} says that it is {manifest.ref}, of {manifest.attempt}")
    lacks = checkpoints.missing(bucket, shelf, held.lacks(manifest))
    if lacks and bucket.present(key)[0]:
        first = shelf.blob(lacks[0].n, lacks[0].digest)
        what = f"{len(lacks)} of the {len(manifest.blobs)} objects that {ref} is made of"
        yield found("checkpoint-incomplete", key, f"{what} are not there as they should be, among them {first}")
