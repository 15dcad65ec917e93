"""Listings: in the order of whole keys, page after page, and never outside the prefix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from stado_like.store.protocol import ObjectStore, list_all
from tests.contract.conftest import BUCKET, Proxied, Subject
from tests.contract.stepped_ambient import SteppedAmbient
from tests.fault_proxy import Fault
from tests.servers import Server


def _fill(store: ObjectStore, keys: list[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b"x"), keys))


def _fill_moto(url: str, keys: list[str]) -> None:
    """Behind the back of moto's server, which runs in this process and takes 5 ms for each request."""
    from moto.s3.models import s3_backends

    prefix = url.split("?")[0].rsplit("/", 1)[1]
    for key in keys:
        s3_backends["123456789012"]["aws"].put_object(BUCKET, f"{prefix}/{key}", b"x")


def test_2501_keys_come_in_pages_once_each(subject: Subject) -> None:
    store = subject.open()
    keys = [f"q/{number:05d}" for number in range(2501)]
    if subject.kind == "moto":
        _fill_moto(subject.url, [*keys, "p/before", "r/after"])
    else:
        _fill(store, [*keys, "p/before", "r/after"])
    pages = [store.list("q/")]
    while pages[-1].more:
        pages.append(store.list("q/", start_after=pages[-1].rows[-1].key))
    assert [len(page.rows) for page in pages] == [1000, 1000, 501]
    assert [row.key for page in pages for row in page.rows] == keys
    assert [row.key for row in store.list("q/", start_after="q/02498", limit=1000).rows] == ["q/02499", "q/02500"]
    exact = store.list("q/", start_after="q/00500", limit=1000)
    assert (len(exact.rows), exact.more) == (1000, True)
    last = store.list("q/", start_after="q/01500", limit=1000)
    assert (len(last.rows), last.more) == (1000, False)


def test_prefixes_are_of_whole_keys(subject: Subject) -> None:
    """Only keys that differ after their last '/' are promised to be in order; SeaweedFS sorts names, not whole keys."""
    store = subject.open()
    whole_order = subject.kind != "seaweedfs"
    keys = ["a-b/x", "a.b", "a/x", "a/y/1", "a/y/2", "a0", "ab/c", "b"]
    _fill(store, keys)

    def under(prefix: str, start_after: str = "") -> list[str]:
        found = [row.key for row in list_all(store, prefix, start_after=start_after)]
        return found if whole_order else sorted(found)

    assert under("") == sorted(keys)
    assert under("a") == [key for key in sorted(keys) if key.startswith("a")]
    assert under("a/") == ["a/x", "a/y/1", "a/y/2"]
    assert under("a/y") == under("a/y/") == ["a/y/1", "a/y/2"]
    assert under("a/", "a/x") == ["a/y/1", "a/y/2"]
    assert under("a/", "a/y/1") == ["a/y/2"]
    if whole_order:
        assert under("", "a/y/1") == ["a/y/2", "a0", "ab/c", "b"]
    assert under("a/", "0") == ["a/x", "a/y/1", "a/y/2"]
    assert under("a/", "b") == under("c") == under("a/z") == under("b/") == []
    page = store.list("", limit=3)
    assert (len(page.rows), page.more) == (3, True)


def test_small_pages_over_nested_keys_miss_nothing(store: ObjectStore) -> None:
    keys = [f"status/w{a}/job-{b}.{c}/0000{d}/end" for a in "ab" for b in "12" for c in "12" for d in "123"]
    _fill(store, keys)
    seen: list[str] = []
    page = store.list("status/", limit=5)
    while page.rows:
        seen += [row.key for row in page.rows]
        if not page.more:
            break
        page = store.list("status/", start_after=seen[-1], limit=5)
    assert sorted(seen) == sorted(keys)


def test_rows_tell_size_and_time_and_change_their_etag(store: ObjectStore) -> None:
    store.put("r/one", b"12345")
    before = store.list("r/").rows[0]
    store.put("r/one", b"54321")
    after = store.list("r/").rows[0]
    assert before.size_bytes == after.size_bytes == 5
    assert before.etag and before.etag != after.etag
    assert abs(store.now() - after.last_modified) < 3.0


def test_keys_added_and_removed_while_paging_harm_no_others(store: ObjectStore) -> None:
    """Job counts differ between two listings: what stands still is seen once, whatever moves around it."""
    still = [f"m/{number:03d}" for number in range(0, 200, 2)]
    _fill(store, still)
    stop = Event()

    def move() -> None:
        number = 1
        while not stop.is_set():
            store.put(f"m/{number % 200:03d}", b"moving")
            store.delete(f"m/{(number + 100) % 200:03d}")
            number += 2

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        try:
            for _ in range(3):
                seen: list[str] = []
                page = store.list("m/", limit=25)
                while True:
                    seen += [row.key for row in page.rows]
                    if not page.more or not page.rows:
                        break
                    page = store.list("m/", start_after=page.rows[-1].key, limit=25)
                assert [key for key in seen if key in still] == still
                assert seen == sorted(set(seen))
        finally:
            stop.set()
        moving.result()


def test_a_page_that_fails_is_asked_again_and_nothing_is_seen_twice(proxied: Proxied) -> None:
    """Bucket sweep stops half-way: 503 on page 2 of 5, every key once."""
    keys = [f"s/{number:02d}" for number in range(50)]
    _fill(proxied.beside(), keys)
    ambient = SteppedAmbient()
    store = proxied.open(ambient)
    seen = [row.key for row in store.list("s/", limit=10).rows]
    proxied.proxy.add(Fault("GET", "start-after", times=2, answer=503))
    pages = 1
    while True:
        page = store.list("s/", start_after=seen[-1], limit=10)
        seen += [row.key for row in page.rows]
        pages += 1
        if not page.more:
            break
    assert seen == keys
    assert pages == 5
    after = [seen.query["start-after"][0] for seen in proxied.proxy.log if "start-after" in seen.query]
    assert [key[-4:] for key in after] == ["s/09", "s/09", "s/09", "s/19", "s/29", "s/39"]
    assert len(ambient.slept) == 2


def test_junk_outside_the_prefix_is_never_read(proxied: Proxied, moto_server: Server) -> None:
    """Listing returns the whole bucket when the prefix is dropped from the request."""
    server = Server(proxied.proxy.endpoint, 0)
    client = server.client()
    client.put_object(Bucket=BUCKET, Key="0-junk", Body=b"{")
    store = proxied.open()
    store.create("jobs/x", b"x")
    proxied.proxy.clear()
    assert [row.key for row in list_all(store, "")] == ["jobs/x"]
    assert [row.key for row in list_all(store, "jobs/")] == ["jobs/x"]
    under = store.url.split("?")[0].rsplit("/", 1)[1]
    assert [seen.query["prefix"] for seen in proxied.proxy.log] == [[f"{under}/"], [f"{under}/jobs/"]]
    assert all(seen.query["encoding-type"] == ["url"] for seen in proxied.proxy.log)
    assert all("junk" not in seen.path for seen in proxied.proxy.log)


@pytest.mark.parametrize("name", ["a\x01b", "a b+c%20d", "a?b#c", "zażółć&<>"])
def test_a_foreign_key_does_not_break_a_listing(moto_server: Server, name: str, driver: str) -> None:
    """LIST XML cannot be parsed: a foreign key with U+0001 in the bucket is listed as it is."""
    from stado_like.ambient import REAL
    from stado_like.store.url import open_store

    token = REAL.token()
    store = open_store(moto_server.url(BUCKET, token, driver))
    moto_server.client().put_object(Bucket=BUCKET, Key=f"{token}/{name}", Body=b"foreign")
    store.create("zz", b"ours")
    assert [row.key for row in list_all(store, "")] == [name, "zz"]
    found = store.get(name)
    assert found is not None and found.body == b"foreign"
    store.delete(name)
    assert [row.key for row in list_all(store, "")] == ["zz"]
