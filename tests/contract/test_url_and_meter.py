"""What a store's URL may say, how often to look at it, and what was asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.ambient import REAL
from stado_like.errors import UsageError
from stado_like.store.clock import DateHeader, StoreClock
from stado_like.store.local import LocalStore
from stado_like.store.memory import MemoryStore, forget
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.s3_store import S3Store
from stado_like.store.url import open_store, poll_s
from tests.contract.conftest import Subject
from tests.contract.stepped_ambient import SteppedAmbient


@pytest.mark.parametrize(
    ("url", "kind", "canonical"),
    [
        ("file:///tmp/a", LocalStore, "file:///tmp/a"),
        ("file:///tmp/a/?durable=0", LocalStore, "file:///tmp/a?durable=0"),
        ("file:///tmp/a%20b%23c", LocalStore, "file:///tmp/a%20b%23c"),
        ("file://localhost/tmp/a?poll=5ms", LocalStore, "file:///tmp/a?poll=5ms"),
        ("memory://x", MemoryStore, "memory://x"),
        ("s3://bucket", S3Store, "s3://bucket"),
        (
            "s3://bucket/a/b/?endpoint_url=http://h:9000&region=eu-west-1&addressing=path&poll=50ms",
            S3Store,
            "s3://bucket/a/b?endpoint_url=http://h:9000&region=eu-west-1&addressing=path&poll=50ms",
        ),
        ("s3://bucket?driver=plain", S3Store, "s3://bucket?driver=plain"),
        ("s3://bucket?endpoint_url=http%3A%2F%2Fh%3A9000", S3Store, "s3://bucket?endpoint_url=http://h:9000"),
    ],
)
def test_urls_are_read_and_said_in_one_way(url: str, kind: type, canonical: str) -> None:
    store = open_store(url)
    assert type(store) is kind
    assert store.url == canonical
    assert open_store(store.url).url == canonical


def test_a_tilde_is_the_home_directory(home: Path) -> None:
    store = open_store("file://~/.local/share/stado")
    store.create("x", b"1")
    assert (home / ".local/share/stado/x").read_bytes() == b"1"
    assert store.url == f"file://{home}/.local/share/stado"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("/tmp/x", "file:///path"),
        ("http://x/y", "memory://name"),
        ("file:///tmp/x?durabel=0", "durable, poll"),
        ("file:///tmp/x?durable=no", "durable=0"),
        ("file:///tmp/x?durable=0&durable=1", "one value"),
        ("file://host/tmp/x", "three slashes"),
        ("file://", "file:///path"),
        ("file:///tmp/x#y", "%23"),
        ("memory://", "memory://name"),
        ("memory://x?region=y", "poll"),
        ("s3://", "s3://bucket/prefix"),
        ("s3://bucket/../c", "segments"),
        ("s3://bucket/a b", "segments"),
        ("s3://bucket?endpoint=http://h", "endpoint_url, region, addressing, driver, poll"),
        ("s3://bucket?endpoint_url=h:9000", "http://host:port"),
        ("s3://bucket?endpoint_url=http://u:secret@h", "AWS_PROFILE"),
        ("s3://bucket?addressing=host", "path, virtual, auto"),
        ("s3://bucket?driver=fast", "lean, plain"),
        ("s3://bucket?poll=1h", "bare seconds"),
        ("s3://bucket?poll=0", "bare seconds"),
        ("s3://bucket?poll=", "one value"),
        ("s3://[x", "s3://bucket/prefix"),
    ],
)
def test_what_is_not_understood_is_refused_naming_what_is(url: str, names: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_store(url)
    assert names in refused.value.next_step
    assert "secret" not in refused.value.message + refused.value.next_step


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        ("file:///x", 0.01),
        ("memory://x", 0.01),
        ("s3://bucket", 1.0),
        ("s3://bucket?endpoint_url=http://10.0.0.1:9000", 1.0),
        ("s3://bucket?endpoint_url=http://127.0.0.1:9000", 0.02),
        ("s3://bucket?endpoint_url=http://localhost:9000", 0.02),
        ("s3://bucket?endpoint_url=http://[::1]:9000", 0.02),
        ("s3://bucket?poll=250ms", 0.25),
        ("s3://bucket?poll=2", 2.0),
        ("file:///x?poll=1m", 60.0),
    ],
)
def test_how_often_to_look(url: str, seconds: float) -> None:
    assert poll_s(url) == seconds


def test_requests_are_counted_by_kind_and_priced(subject: Subject) -> None:
    meter = Meter()
    store = MeteredStore(subject.open(), meter)
    one = store.create("a", b"1")
    store.put("b", b"2")
    store.replace("a", b"3", getattr(one, "etag", ""))
    found = store.get("a")
    assert found is not None
    before = meter.snapshot()
    store.get_if_changed("a", found.etag)
    store.get_if_changed("a", '"0123456789abcdef0123456789abcdef"')
    store.head("a")
    store.heads(["a", "b", "c"])
    store.list("")
    store.delete("a")
    spent = meter.snapshot() - before
    assert spent.counts == {"not_modified": 1, "get": 1, "head": 4, "list": 1, "delete": 1}
    everything = meter.snapshot()
    assert everything.total == 12
    assert everything.dollars == pytest.approx((4 * 0.005 + 7 * 0.0004) / 1000)
    assert meter.lines() == [
        "store requests: 12 (create 1, put 1, replace 1, list 1, get 2, not_modified 1, head 4, delete 1)",
        "price at S3 Standard's list prices: $0.0000228",
    ]
    assert everything.as_json()["total"] == 12


def test_an_opened_store_can_be_metered() -> None:
    meter = Meter()
    store = open_store(f"memory://{REAL.token()}", meter=meter)
    store.head("x")
    assert meter.snapshot()["head"] == 1
    assert Meter().lines()[0] == "store requests: 0 (none)"


def test_memory_takes_its_time_from_whoever_opened_it_first() -> None:
    name = REAL.token()
    store = MemoryStore(name, SteppedAmbient(wall_s=1000.0))
    other = MemoryStore(name, SteppedAmbient(wall_s=9999.0))
    other.create("x", b"1")
    found = store.get("x")
    assert found is not None and (found.last_modified, found.now, other.now()) == (1000.0, 1000.0, 1000.0)
    forget(name)
    assert MemoryStore(name).get("x") is None


def test_the_store_clock_keeps_the_best_bound_and_follows_a_clock_set_back() -> None:
    ambient = SteppedAmbient()
    clock = StoreClock(ambient)
    assert clock.now() is None and clock.age_s == float("inf")
    clock.learn(5000.0)
    ambient.sleep(0.4)
    clock.learn(5000.0)  # the same second, received later: a worse bound
    assert clock.now() == pytest.approx(5000.4)
    ambient.sleep(0.5)
    clock.learn(5001.2)
    assert clock.now() == pytest.approx(5001.2)
    ambient.sleep(10.0)
    assert clock.now() == pytest.approx(5011.2) and clock.age_s == pytest.approx(10.0)
    clock.learn(5000.0)  # 11.2 s smaller: an old answer
    assert clock.now() == pytest.approx(5011.2)
    clock.learn(4900.0)
    assert clock.now() == pytest.approx(4900.0)


def test_http_dates() -> None:
    dates = DateHeader()
    assert dates.parse("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777.0
    assert dates.parse("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777.0
    assert [dates.parse(text) for text in (None, "", "no date", "99")] == [None] * 4
