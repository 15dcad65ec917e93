"""Whether a store keeps the promises on which everything rests, found out by trying.

Vendors' tables are wrong, servers change, and some gateways answer 200 to a condition that they ignore. One store in
the wild passes two creates in a row and fails when four race; another ignores the condition in versioned buckets. So
the first writer of a store tries each promise on objects of its own below `state/probe/` and takes them away again.
The verdict is kept in `state/store.json`; to a store that fails nothing else is ever written.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Protocol, runtime_checkable

from stado_like.ambient import REAL, Ambient
from stado_like.errors import BadRecord, CredentialsRefused, NewerRecord, StoreUnavailable, StoreUntrusted
from stado_like.store.clock import in_words
from stado_like.store.conditional import Lost, create_once
from stado_like.store.protocol import Applied, Object, ObjectStore, Rejected, Unchanged, Unknown, Write, list_all

VERSION = 1
RACERS = 4
ROUNDS = 3
BODY_BYTES = 4096
ORDERED = ("-", "0", "10", "9", "A", "B.x", "_", "c", "d-1", "d.1", "d_1")  # ascending bytes, no two alike but for case
SKEW_FOLLOWED_S = 15.0


@runtime_checkable
class Inspectable(Protocol):
    """What an S3 store can tell beside its objects, and be told."""

    etag_style: str
    replaces: bool

    @property
    def sends_date(self) -> bool: ...
    def versioning(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Promise:
    """`kept` is None when it could not be told; only a promise that is `needed` and broken refuses a store."""

    name: str
    kept: bool | None
    sentence: str
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe found. `clock_skew_s`: the store's clock minus this machine's."""

    promises: tuple[Promise, ...]
    can_replace: bool
    etag_style: str
    clock_skew_s: float

    @property
    def ok(self) -> bool:
        return not self.broken

    @property
    def broken(self) -> tuple[Promise, ...]:
        return tuple(promise for promise in self.promises if promise.needed and promise.kept is False)

    def to_bytes(self, nonce: str) -> bytes:
        stored = {
            "v": VERSION,
            "nonce": nonce,
            "can_replace": self.can_replace,
            "etag_style": self.etag_style,
            "clock_skew_s": round(self.clock_skew_s, 3),
            "promises": [
                {"name": one.name, "kept": one.kept, "sentence": one.sentence, "needed": one.needed}
                for one in self.promises
            ],
        }
        return json.dumps(stored, separators=(",", ":")).encode()


def verdict_from_bytes(body: bytes, key: str) -> Verdict:
    """Raises `NewerRecord`, `BadRecord`."""
    try:
        stored = json.loads(body)
        if stored["v"] > VERSION:
            raise NewerRecord(
                f"{key} has version {stored['v']}, this program reads up to {VERSION}", "Upgrade this program first."
            )
        return Verdict(
            tuple(Promise(p["name"], p["kept"], p["sentence"], p["needed"]) for p in stored["promises"]),
            bool(stored["can_replace"]),
            str(stored["etag_style"]),
            float(stored["clock_skew_s"]),
        )
    except (ValueError, KeyError, TypeError) as wrong:
        raise BadRecord(
            f"{key} cannot be read: {wrong!r}", f"Delete {key} (`stado storage rm {key}`): the store is probed again."
        ) from wrong


def ensure_trusted(store: ObjectStore, key: str = "state/store.json", *, ambient: Ambient = REAL) -> Verdict:
    """The stored verdict on this store, probing it first when there is none; the store is set up as the verdict says.

    For writers: a reader of a store that does not exist yet must not make it. Raises `StoreUntrusted` naming the broken
    promise, and what reads and creates raise.
    """
    found = store.get(key)
    if found is not None:
        verdict = verdict_from_bytes(found.body, key)
    else:
        verdict = probe(store, ambient=ambient)
        if verdict.ok:
            outcome = create_once(store, key, verdict.to_bytes(ambient.token()), ambient=ambient)
            if isinstance(outcome, Lost):
                verdict = verdict_from_bytes(outcome.found.body, key)
    if verdict.broken:
        raise StoreUntrusted(
            "; ".join(promise.sentence for promise in verdict.broken) + f" (store {store.url})",
            "Nothing was written but the probe's own objects. Use a store that keeps this promise: a directory "
            "(file://), Amazon S3, or another that passes `stado storage check`.",
            detail={promise.name: promise.sentence for promise in verdict.broken},
        )
    inner = _inner(store)
    if isinstance(inner, Inspectable):
        inner.etag_style, inner.replaces = verdict.etag_style, verdict.can_replace
    return verdict


def probe(store: ObjectStore, prefix: str = "state/probe", *, ambient: Ambient = REAL) -> Verdict:
    """Try every promise on objects `<prefix>/<random>.…`, and remove them. Raises when an answer does not come."""
    trial = _Trial(store, f"{prefix}/{ambient.token()}", ambient)
    try:
        return trial.run()
    finally:
        trial.clean_up()


def _inner(store: ObjectStore) -> object:
    while hasattr(store, "inner"):
        store = store.inner
    return store


def _definite(answer: Write | Unknown, what: str) -> Applied | Rejected:
    if isinstance(answer, Unknown):
        raise StoreUnavailable(
            f"the probe of the store got no definite answer to {what}: {answer.why}", "Repeat the command."
        )
    return answer


class _Trial:
    def __init__(self, store: ObjectStore, stem: str, ambient: Ambient) -> None:
        self._store = store
        self._stem = stem
        self._ambient = ambient
        self._written: list[str] = []

    def run(self) -> Verdict:
        absent = self._absent()
        if absent.kept is False:  # every later answer would be misread
            return Verdict((absent,), False, "quoted", 0.0)
        promises = [absent, self._twice(), self._race(), self._read_after_write(), self._order(), self._not_modified()]
        replace, style = self._replace()
        time, skew_s = self._time()
        promises += [time, replace, self._versioning()]
        return Verdict(tuple(promises), bool(replace.kept), style, skew_s)

    def clean_up(self) -> None:
        for key in self._written:
            self._store.delete(key)  # Unknown leaves an object that nothing reads

    def _key(self, name: str) -> str:
        key = f"{self._stem}.{name}"
        self._written.append(key)
        return key

    def _create(self, key: str, body: bytes) -> Applied | Rejected:
        return _definite(self._store.create(key, body), f"the creation of {key}")

    def _put(self, key: str, body: bytes) -> None:
        _definite(self._store.put(key, body), f"the writing of {key}")

    def _absent(self) -> Promise:
        name, key = "absent", f"{self._stem}.absent"
        try:
            if self._store.head(key) is None and self._store.get(key) is None:
                return Promise(name, True, "an absent key answers 404")
        except CredentialsRefused as refused:
            if self._store_lists():
                raise
            return Promise(
                name,
                False,
                f"an absent key answers 403, not 404: the credentials lack s3:ListBucket ({refused.message})",
            )
        return Promise(name, False, f"{key} was never written, yet the store says that it is there")

    def _store_lists(self) -> bool:
        try:
            self._store.list(self._stem, limit=1)
        except CredentialsRefused:
            return False
        return True

    def _twice(self) -> Promise:
        name, key = "create-if-absent", self._key("twice")
        if not isinstance(self._create(key, b"first"), Applied):
            return Promise(name, False, "create-if-absent is broken: the creation of a new key was refused")
        if isinstance(self._create(key, b"second"), Applied):
            return Promise(name, False, "create-if-absent is not enforced: two creates of one key both succeeded")
        if (kept := self._store.get(key)) is None or kept.body != b"first":
            return Promise(name, False, "create-if-absent is not enforced: a refused create changed the object")
        return Promise(name, True, "the second of two creates of one key is refused")

    def _race(self) -> Promise:
        name = "race"
        with ThreadPoolExecutor(RACERS, thread_name_prefix="store-probe") as pool:
            for turn in range(ROUNDS):
                key, line = self._key(f"race-{turn}"), Barrier(RACERS)

                def enter(key: str = key, line: Barrier = line) -> Write:
                    line.wait(30)
                    return self._store.create(key, b"")

                answers = [entry.result() for entry in [pool.submit(enter) for _ in range(RACERS)]]
                won = sum(isinstance(answer, Applied) for answer in answers)
                if won > 1:
                    return Promise(
                        name,
                        False,
                        f"create-if-absent is not enforced under a race: {won} of {RACERS} simultaneous creates "
                        "of one key succeeded",
                    )
                if won == 0:
                    for answer in answers:
                        _definite(answer, f"a race to create {key}")
                    return Promise(name, False, f"of {RACERS} simultaneous creates of one new key none succeeded")
        return Promise(name, True, f"of {RACERS} simultaneous creates of one key one succeeds, {ROUNDS} times")

    def _read_after_write(self) -> Promise:
        name, key = "read-after-write", self._key("body")
        bodies = (bytes(range(256)) * (BODY_BYTES // 256), b"\r\n0;chunk-signature=\x00" * 7, b"")
        for body in bodies:
            self._put(key, body)
            found = self._store.get(key)
            if found is None or found.body != body:
                seen = "nothing" if found is None else f"{len(found.body)} other bytes"
                return Promise(
                    name, False, f"what is written is not what is read: {len(body)} bytes came back as {seen}"
                )
            if key not in {row.key for row in self._store.list(key).rows}:
                return Promise(name, False, "an object just written is missing from the listing")
        for _ in range(2):
            _definite(self._store.delete(key), f"the deletion of {key}")
        if self._store.head(key) is not None:
            return Promise(name, False, "an object just deleted is still there")
        return Promise(name, True, "what is written is read back, byte for byte, and gone when deleted")

    def _order(self) -> Promise:
        name = "list-order"
        keys = [self._key(f"order{part}") for part in ORDERED]
        for key in reversed(keys):
            self._create(key, b"x")
        under = f"{self._stem}.order"
        first = self._store.list(under, limit=4)
        rest = list(list_all(self._store, under, start_after=first.rows[-1].key if first.rows else ""))
        seen = [row.key for row in (*first.rows, *rest)]
        if len(first.rows) != 4 or not first.more:
            return Promise(name, False, f"a listing of at most 4 of {len(keys)} keys gave {len(first.rows)}")
        if seen != keys:
            return Promise(name, False, "a listing is not in ascending order of its keys, or start-after is not obeyed")
        if not all(row.etag and row.last_modified and row.size_bytes == 1 for row in first.rows):
            return Promise(name, False, "the rows of a listing lack etag, size or last-modified")
        return Promise(name, True, "listings are in ascending order and go on after a given key")

    def _not_modified(self) -> Promise:
        name, key = "not-modified", self._key("poll")
        self._put(key, b"one")
        one = self._store.get(key)
        assert one is not None
        if not isinstance(self._store.get_if_changed(key, one.etag), Unchanged):
            return Promise(name, False, "an unchanged object is sent again: a conditional GET does not answer 304")
        self._put(key, b"two")
        two = self._store.get_if_changed(key, one.etag)
        if not isinstance(two, Object) or two.body != b"two":
            return Promise(name, False, "a changed object is not seen by a conditional GET")
        return Promise(name, True, "a conditional GET answers 304 until the object changes")

    def _replace(self) -> tuple[Promise, str]:
        """Optional. Some stores want the ETag as they sent it, in quotes, some without."""
        name = "replace"
        inner = _inner(self._store)
        before = inner.etag_style if isinstance(inner, Inspectable) else "quoted"
        try:
            for style in ("quoted", "unquoted") if isinstance(inner, Inspectable) else ("quoted",):
                if isinstance(inner, Inspectable):
                    inner.etag_style = style
                if self._replaces(self._key(f"replace-{style}")):
                    return Promise(name, True, f"replace-if-same is kept, with {style} ETags", needed=False), style
        finally:
            if isinstance(inner, Inspectable):
                inner.etag_style = before
        return Promise(name, False, "replace-if-same is not kept: it is done without", needed=False), "quoted"

    def _replaces(self, key: str) -> bool:
        self._put(key, b"one")
        one = self._store.get(key)
        assert one is not None
        if not isinstance(self._store.replace(key, b"two", one.etag), Applied):
            return False
        if isinstance(self._store.replace(key, b"three", one.etag), Applied):
            return False
        absent = self._store.replace(self._key("replace-absent"), b"x", one.etag)
        found = self._store.get(key)
        return not isinstance(absent, Applied) and found is not None and found.body == b"two"

    def _time(self) -> tuple[Promise, float]:
        name, key = "time", self._key("time")
        inner = _inner(self._store)
        self._put(key, b"now")
        found = self._store.head(key)
        assert found is not None
        if isinstance(inner, Inspectable) and not inner.sends_date:
            return Promise(name, False, "the store's answers carry no Date: ages cannot be told"), 0.0
        age_s, skew_s = found.now - found.last_modified, found.now - self._ambient.wall_s()
        if abs(age_s) > SKEW_FOLLOWED_S:
            return Promise(
                name,
                False,
                f"the store's Date and last-modified disagree by {in_words(age_s)} on an object just written",
            ), skew_s
        return Promise(name, True, f"the store tells its time, {skew_s:+.1f} s from this machine's"), skew_s

    def _versioning(self) -> Promise:
        name = "unversioned"
        inner = _inner(self._store)
        if not isinstance(inner, Inspectable):
            return Promise(name, True, "a store of this kind keeps no old versions")
        said = inner.versioning()
        if said is None:
            return Promise(
                name, None, "whether the bucket is versioned could not be told: s3:GetBucketVersioning is denied"
            )
        if said == "Enabled":
            return Promise(
                name, False, "the bucket is versioned: every heartbeat would be kept for ever; use one that is not"
            )
        return Promise(name, True, f"the bucket is not versioned ({said})")


__all__: list[str] = ["Inspectable", "Promise", "Verdict", "ensure_trusted", "probe", "verdict_from_bytes"]
