"""The checkpoints of one task in the store: which there are, the newest, and which may go.

A checkpoint is complete when its manifest is there, for that is written last. Each attempt writes only below its own
folder, so one that was thought dead spoils nothing; the newest checkpoint is the last of the highest attempt that has
one.

Which may go is the dangerous question: a later attempt's manifests refer to blobs that an earlier one sent, and the
earlier one may still be running somewhere. Two rules answer it.

* Who cleans up has published a checkpoint P before, and then looks for the end of its own attempt; found, it removes
  nothing. A later attempt exists only after that end, hence after P: so it started from P or from something newer, and
  P is among what was kept. (It does not help to look first and publish then.)
* A later attempt takes over blobs of earlier ones only from the checkpoint it started from, never because a listing
  shows that they lie there.

Manifests go before the blobs they name, so whatever is cut short leaves blobs without a manifest and never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NewerRecord
from stado_like.job import checkpoint, keys
from stado_like.job.checkpoint import Blob, Manifest, Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.ids import AttemptId, JobId
from stado_like.store import conditional
from stado_like.store.protocol import list_all


@dataclass(slots=True)
class Held:
    """What a listing shows of one task. `blobs`: (attempt, digest) -> size in bytes."""

    manifests: set[Ref] = field(default_factory=set)
    blobs: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def newest_first(self) -> list[Ref]:
        return sorted(self.manifests, reverse=True)

    def lacks(self, manifest: Manifest) -> list[Blob]:
        """Blobs that the manifest names and the listing does not show in full."""
        return sorted(blob for blob in manifest.blobs if self.blobs.get((blob.n, blob.digest)) != blob.size_bytes)


def held(bucket: Bucket, shelf: Shelf, *, before: int | None = None) -> Held:
    """One listing. `before`: only of attempts with a lower number. Raises `StoreError`."""
    seen = Held()
    for row in list_all(bucket.store, shelf.folder):
        found = shelf.parse(row.key)
        if isinstance(found, Ref):
            if before is None or found.n < before:
                seen.manifests.add(found)
        elif found is not None and (before is None or found[0] < before):
            seen.blobs[found] = row.size_bytes
    return seen


def read(bucket: Bucket, shelf: Shelf, ref: Ref) -> Manifest | None:
    """None: it is not there. Raises `BadRecord`, `StoreError`."""
    found = bucket.store.get(shelf.manifest(ref))
    return None if found is None else checkpoint.decode(found.body, shelf.manifest(ref), ref.n)


def publish(bucket: Bucket, shelf: Shelf, manifest: Manifest) -> None:
    """Make a checkpoint complete: all its blobs are there. Raises `StoreUnavailable`: repeat it."""
    conditional.write_again(
        bucket.store,
        shelf.manifest(manifest.ref),
        checkpoint.encode(manifest),
        budget_s=bucket.budget_s,
        ambient=bucket.ambient,
    )


def ranks_with_one(bucket: Bucket, j: JobId, prefixes: Sequence[str]) -> set[int]:
    """Ranks of a job that have a complete checkpoint. `prefixes`: by rank. Raises `StoreError`."""
    shelves = [Shelf(j, rank, prefix) for rank, prefix in enumerate(prefixes)]
    whole = f"checkpoints/{j.folder}/"
    found: set[int] = set()
    for row in list_all(bucket.store, whole):
        rank = row.key[len(whole) : len(whole) + 5]
        if rank.isdigit() and int(rank) < len(shelves) and isinstance(shelves[int(rank)].parse(row.key), Ref):
            found.add(int(rank))
    return found


# ---- what may go


def collect(
    bucket: Bucket, shelf: Shelf, a: AttemptId, seen: Held, known: dict[Ref, Manifest], keep: int
) -> tuple[Ref, ...]:
    """Remove what is older than the newest `keep` checkpoints, and blobs that none of those names; the caller has just
    published one. `seen` and `known` are what the caller remembers of the store; both are brought up to date. Returns
    the checkpoints that went. Raises `StoreUnavailable`: the next call goes on.
    """
    try:
        kept = _kept(bucket, shelf, seen, known, keep)
    except NewerRecord:
        return ()  # nobody here knows which blobs it needs
    needed = {(blob.n, blob.digest) for ref in kept for blob in known[ref].blobs}
    old = [ref for ref in seen.newest_first if ref not in kept]
    loose = sorted(blob for blob in seen.blobs if blob not in needed)
    if not old and not loose:
        return ()
    ended, buried = bucket.present(keys.end(a), keys.tombstone(a.job))
    if ended or buried:  # guard: look before old checkpoints go
        return ()
    for ref in reversed(old):
        bucket.drop(shelf.manifest(ref))
        seen.manifests.discard(ref)
        known.pop(ref, None)
    for n, digest in loose:
        bucket.drop(shelf.blob(n, digest))
        seen.blobs.pop((n, digest))
    return tuple(old)


def _kept(bucket: Bucket, shelf: Shelf, seen: Held, known: dict[Ref, Manifest], keep: int) -> set[Ref]:
    """The newest `keep` that can be read: one that cannot restores nothing, and goes."""
    kept: set[Ref] = set()
    for ref in seen.newest_first:
        if len(kept) == keep:
            break
        if ref not in known:
            try:
                found = read(bucket, shelf, ref)
            except NewerRecord:
                raise
            except BadRecord:
                found = None
            if found is None:
                continue
            known[ref] = found
        kept.add(ref)
    return kept


def missing(bucket: Bucket, shelf: Shelf, blobs: Iterable[Blob]) -> list[Blob]:
    """Blobs that are not in the store as they should be, each asked for by its key. Raises `StoreError`."""
    wanted = list(blobs)
    found = bucket.store.heads([shelf.blob(blob.n, blob.digest) for blob in wanted])
    return [
        blob for blob, stat in zip(wanted, found, strict=True) if stat is None or stat.size_bytes != blob.size_bytes
    ]
