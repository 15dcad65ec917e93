"""The probe: what it finds on stores that keep their promises, and that it catches every store that does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError

import pytest

from stado_like.ambient import REAL
from stado_like.errors import BadRecord, CredentialsRefused, NewerRecord, StoreUntrusted
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.probe import Verdict, ensure_trusted, probe, verdict_from_bytes
from stado_like.store.protocol import (
    Applied,
    Object,
    ObjectStore,
    Page,
    Rejected,
    Stat,
    Unchanged,
    Write,
    list_all,
)
from stado_like.store.url import open_store
from tests.contract.conftest import BUCKET, Proxied, Subject
from tests.fault_proxy import Fault
from tests.servers import Server

NAMES = {
    "absent", "create-if-absent", "race", "read-after-write", "list-order", "not-modified", "time", "replace",
    "unversioned",
}  # fmt: skip


def test_a_good_store_is_trusted_and_asked_only_once(subject: Subject) -> None:
    meter = Meter()
    store = MeteredStore(subject.open(), meter)
    verdict = ensure_trusted(store)
    assert verdict.ok and verdict.can_replace
    assert {promise.name for promise in verdict.promises} == NAMES
    assert all(promise.kept for promise in verdict.promises), verdict.promises
    assert abs(verdict.clock_skew_s) < 5
    assert [row.key for row in list_all(store, "")] == ["state/store.json"]  # the probe cleaned up after itself
    before = meter.snapshot()
    again = ensure_trusted(MeteredStore(subject.open(), meter))
    assert again.promises == verdict.promises
    assert (meter.snapshot() - before).counts == {"get": 1}


def test_a_gateway_that_ignores_the_condition_is_refused(gateway: Server, driver: str) -> None:
    """Gateway returns 200 and overwrites in spite of the header: nothing may be submitted there."""
    store = open_store(gateway.url(BUCKET, REAL.token(), driver))
    verdict = probe(store)
    assert not verdict.ok
    assert (
        "two creates of one key both succeeded"
        in next(p for p in verdict.broken if p.name == "create-if-absent").sentence
    )
    with pytest.raises(StoreUntrusted, match="create-if-absent is not enforced: two creates of one key both succeeded"):
        ensure_trusted(store)
    # This gateway answers deletes before its listing shows them: nothing but the probe's own objects may be seen.
    assert all(row.key.startswith("state/probe/") for row in list_all(store, ""))


def test_a_versioned_bucket_is_refused(moto_server: Server, driver: str) -> None:
    client, name = moto_server.client(), f"versioned-{driver}"
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    with pytest.raises(StoreUntrusted, match="the bucket is versioned"):
        ensure_trusted(open_store(moto_server.url(name, "p", driver)))


def test_versioning_that_may_not_be_asked_is_said_and_accepted(proxied: Proxied) -> None:
    proxied.proxy.add(Fault("GET", "versioning", answer=403))
    verdict = probe(proxied.open())
    assert verdict.ok
    told = {promise.name: promise for promise in verdict.promises}["unversioned"]
    assert told.kept is None and "s3:GetBucketVersioning" in told.sentence


def test_403_for_an_absent_key_names_the_missing_permission(proxied: Proxied) -> None:
    proxied.proxy.add(Fault("HEAD", answer=403, times=10_000))
    proxied.proxy.add(Fault("GET", "prefix=", answer=403, times=10_000))
    with pytest.raises(StoreUntrusted, match="the credentials lack s3:ListBucket"):
        ensure_trusted(proxied.open())
    proxied.proxy.clear()
    proxied.proxy.add(Fault("HEAD", answer=403, times=10_000))
    with pytest.raises(CredentialsRefused):
        probe(proxied.open())


def test_a_store_without_date_is_refused(proxied: Proxied) -> None:
    proxied.proxy.add(Fault(headers={"Date": "no date"}, times=10_000))
    broken = probe(proxied.open()).broken
    assert [promise.name for promise in broken] == ["time"]


@pytest.mark.parametrize("insists_on", ["quoted", "unquoted"])
def test_the_quoting_of_etags_is_learned(insists_on: str) -> None:
    """One store insists on quotes, another refuses them: the style is probed once, stored, and used after."""

    class Insisting(MemoryStore):
        """A server whose If-Match knows one style; beside it the client's side that sends what it was told."""

        etag_style = "quoted"
        replaces = True
        sends_date = True

        def versioning(self) -> str | None:
            return "Off"

        def replace(self, key: str, body: bytes, etag: str) -> Write:
            if self.etag_style != insists_on:
                return Rejected(self.now())
            return super().replace(key, body, etag)

    name = REAL.token()
    assert ensure_trusted(Insisting(name)).etag_style == insists_on
    later = Insisting(name)
    verdict = ensure_trusted(later)
    assert verdict.can_replace and later.etag_style == insists_on


def test_an_s3_store_sends_the_style_it_was_told(proxied: Proxied) -> None:
    store = proxied.open()
    one = store.put("x", b"1")
    assert isinstance(one, Applied)
    store.replace("x", b"2", one.etag)
    assert proxied.proxy.log[-1].headers["if-match"] == one.etag
    assert one.etag.startswith('"')
    store.etag_style = "unquoted"  # type: ignore[attr-defined]
    store.replace("x", b"2", one.etag)
    assert proxied.proxy.log[-1].headers["if-match"] == one.etag.strip('"')


class Overwrites(MemoryStore):
    def create(self, key: str, body: bytes) -> Write:
        return self.put(key, body)


class RacesBadly(MemoryStore):
    """Looks, then writes: right in a row, wrong side by side."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._line = Barrier(2)

    def create(self, key: str, body: bytes) -> Write:
        if self.head(key) is not None:
            return Rejected(self.now())
        if ".race-" in key:
            try:
                self._line.wait(1)
            except BrokenBarrierError:
                self._line.reset()
        return self.put(key, body)


class ForgetsBodies(MemoryStore):
    def get(self, key: str) -> Object | None:
        found = super().get(key)
        if found is None or not found.body.startswith(b"\x00"):
            return found
        return Object(b"a;chunk-signature=" + found.body, found.etag, found.last_modified, found.now)


class ListsBackwards(MemoryStore):
    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        page = super().list(prefix, start_after=start_after, limit=limit)
        return Page(tuple(reversed(page.rows)), page.more, page.now)


class ListsLate(MemoryStore):
    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        return Page((), False, self.now())


class SendsAgain(MemoryStore):
    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        return self.get(key)


class SeesNoChange(MemoryStore):
    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        return Unchanged(self.now())


class KnowsAll(MemoryStore):
    def head(self, key: str) -> Stat | None:
        return super().head(key) or Stat('"x"', 0, self.now(), self.now())

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        return [self.head(key) for key in keys]


class TellsOldTimes(MemoryStore):
    def head(self, key: str) -> Stat | None:
        found = super().head(key)
        return found and Stat(found.etag, found.size_bytes, found.last_modified - 3600, found.now)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Overwrites, "create-if-absent"),
        (RacesBadly, "race"),
        (ForgetsBodies, "read-after-write"),
        (ListsLate, "read-after-write"),
        (ListsBackwards, "list-order"),
        (SendsAgain, "not-modified"),
        (SeesNoChange, "not-modified"),
        (KnowsAll, "absent"),
        (TellsOldTimes, "time"),
    ],
)
def test_every_broken_promise_is_caught(broken: Callable[[str], ObjectStore], promise: str) -> None:
    """Upload corrupt, listing late, two winners: a checker that never failed is no checker."""
    name = REAL.token()
    verdict = probe(broken(name))
    assert promise in {one.name for one in verdict.broken}
    with pytest.raises(StoreUntrusted):
        ensure_trusted(broken(name))
    assert MemoryStore(name).list("").rows == ()


def test_a_store_that_replaces_blindly_is_used_without_replace() -> None:
    class Blind(MemoryStore):
        def replace(self, key: str, body: bytes, etag: str) -> Write:
            return self.put(key, body)

    verdict = ensure_trusted(Blind(REAL.token()))
    assert verdict.ok and not verdict.can_replace


def test_verdicts_are_read_back_and_newer_ones_are_refused_politely() -> None:
    verdict = probe(MemoryStore(REAL.token()))
    stored = verdict.to_bytes("n")
    back = verdict_from_bytes(stored, "state/store.json")
    assert (back.promises, back.can_replace, back.etag_style) == (verdict.promises, True, "quoted")
    with pytest.raises(NewerRecord, match="version 2"):
        verdict_from_bytes(stored.replace(b'"v":1', b'"v":2'), "state/store.json")
    for bad in (b"", b"[]", b"{}", b'{"v":1}', b"\xff"):
        with pytest.raises(BadRecord):
            verdict_from_bytes(bad, "state/store.json")


def test_two_first_writers_agree(subject: Subject) -> None:
    first = ensure_trusted(subject.open())
    started = time.monotonic()
    second = ensure_trusted(subject.open())
    assert isinstance(second, Verdict)
    assert second.clock_skew_s == pytest.approx(first.clock_skew_s, abs=0.001)
    assert time.monotonic() - started < 2
