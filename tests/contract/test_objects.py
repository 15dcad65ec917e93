"""What every store does with one object: three answers of a write, three of a read."""

from __future__ import annotations

from tempfile import TemporaryFile

import pytest

from stado_like.errors import UsageError
from stado_like.store.protocol import Applied, Object, ObjectStore, Rejected, Unchanged, list_all
from tests.contract.conftest import Subject

ODD_KEYS = [
    "a",
    "A-b_c.d",
    "...",
    "..a/b..",
    "-/-/-.-",
    "0/" + "x" * 200 + "/y",
    "queued/open/0900.1700000000000.default.train.1.00003.000002.c1m1024g0",
]
BAD_KEYS = ["", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a/./b", "a b", "a?b", "a#b", "zażółć", "a\x01b", "a\nb",
            ".tmp/x", ".tmp", "a/" + "x" * 256, "x/" * 520 + "y"]  # fmt: skip


def test_create_then_create_again_is_rejected_and_changes_nothing(store: ObjectStore) -> None:
    first = store.create("jobs/one", b"1")
    assert isinstance(first, Applied)
    assert isinstance(store.create("jobs/one", b"2"), Rejected)
    found = store.get("jobs/one")
    assert found is not None
    assert (found.body, found.etag) == (b"1", first.etag)


@pytest.mark.parametrize("body", [b"", b"\x00\xff" * 10, bytes(range(256)) * 40, b"0;chunk\r\n\r\n"])
def test_bodies_come_back_byte_for_byte(store: ObjectStore, body: bytes) -> None:
    store.create("body", body)
    found, seen = store.get("body"), store.head("body")
    assert found is not None and seen is not None
    assert (found.body, seen.size_bytes, seen.etag) == (body, len(body), found.etag)


def test_a_body_above_one_mebibyte(store: ObjectStore) -> None:
    body = bytes(3 << 20)
    applied = store.put("large", body)
    found, seen = store.get("large"), store.head("large")
    assert isinstance(applied, Applied) and found is not None and seen is not None
    assert found.body == body
    assert applied.etag == found.etag == seen.etag
    assert isinstance(store.get_if_changed("large", found.etag), Unchanged)
    assert isinstance(store.replace("large", b"small", found.etag), Applied)


def test_a_file_is_put_whole_from_its_beginning_and_read_in_pieces(store: ObjectStore) -> None:
    body = bytes(range(256)) * 12_000  # three mebibytes, no two neighbouring pieces alike
    for size in (0, 1000, len(body)):
        with TemporaryFile() as file:
            file.write(body[:size])
            applied = store.put_file("large", file)  # it stands at its end: nobody has to rewind it
        seen = store.head("large")
        assert isinstance(applied, Applied) and seen is not None
        assert (seen.size_bytes, seen.etag) == (size, applied.etag)
    pieces = [store.get_range("large", start, 1 << 20) for start in range(0, len(body), 1 << 20)]
    assert b"".join(piece or b"" for piece in pieces) == body
    assert store.get_range("large", 999, 3) == body[999:1002]
    assert store.get_range("large", len(body), 10) == b""
    assert store.get_range("small", 0, 10) is None


def test_what_is_absent_is_none(store: ObjectStore) -> None:
    store.create("there/is", b"x")
    assert store.get("there/not") is None
    assert store.head("there") is None
    assert store.get("there/is/below") is None
    assert store.get_if_changed("nowhere", '"x"') is None
    assert store.heads(["nowhere", "there/is", "there/not"])[0::2] == [None, None]
    assert store.heads([]) == []


def test_heads_keep_the_order_asked(store: ObjectStore) -> None:
    for number in range(12):
        store.put(f"n/{number}", b"x" * number)
    asked = [f"n/{number}" for number in (11, 3, 7, 0, 5, 5, 9, 2, 10, 1, 8)]
    assert [stat and stat.size_bytes for stat in store.heads(asked)] == [11, 3, 7, 0, 5, 5, 9, 2, 10, 1, 8]


def test_put_overwrites_and_the_last_writer_wins(store: ObjectStore) -> None:
    one, two = store.put("beat", b"1"), store.put("beat", b"2")
    assert isinstance(one, Applied) and isinstance(two, Applied)
    assert one.etag != two.etag
    found = store.get("beat")
    assert found is not None and found.body == b"2"


def test_replace_needs_the_bytes_named(store: ObjectStore) -> None:
    assert store.can_replace
    assert isinstance(store.replace("bell", b"x", '"0123456789abcdef0123456789abcdef"'), Rejected)
    assert store.head("bell") is None
    one = store.create("bell", b"1")
    assert isinstance(one, Applied)
    two = store.replace("bell", b"2", one.etag)
    assert isinstance(two, Applied)
    assert isinstance(store.replace("bell", b"3", one.etag), Rejected)
    found = store.get("bell")
    assert found is not None and (found.body, found.etag) == (b"2", two.etag)


def test_an_unchanged_object_answers_304_until_it_changes(store: ObjectStore) -> None:
    store.put("bell", b"1")
    one = store.get("bell")
    assert one is not None
    for _ in range(3):
        assert isinstance(store.get_if_changed("bell", one.etag), Unchanged)
    store.put("bell", b"2")
    two = store.get_if_changed("bell", one.etag)
    assert isinstance(two, Object) and two.body == b"2"
    store.put("bell", b"3")  # same size, same moment: the change must not be missed
    three = store.get_if_changed("bell", two.etag)
    assert isinstance(three, Object) and three.body == b"3"
    store.delete("bell")
    assert store.get_if_changed("bell", three.etag) is None


def test_delete_is_idempotent(store: ObjectStore) -> None:
    store.create("a/b", b"x")
    for _ in range(3):
        assert isinstance(store.delete("a/b"), Applied)
    assert isinstance(store.delete("never/was"), Applied)
    assert store.get("a/b") is None
    assert isinstance(store.create("a/b", b"again"), Applied)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_keys_live(store: ObjectStore, key: str) -> None:
    assert isinstance(store.create(key, b"odd"), Applied)
    assert isinstance(store.create(key, b"odd"), Rejected)
    found = store.get(key)
    assert found is not None and found.body == b"odd"
    assert [row.key for row in list_all(store, "")] == [key]
    assert isinstance(store.delete(key), Applied)
    assert store.head(key) is None


def test_bad_keys_are_refused_before_anything_is_written(store: ObjectStore) -> None:
    """'?' cuts the key, '#' loses the tail; LIST XML cannot be parsed with control characters: refused when written."""
    for key in BAD_KEYS:
        for write in (store.create, store.put, lambda key, body: store.replace(key, body, "x")):
            with pytest.raises(UsageError):
                write(key, b"x")
    assert list(list_all(store, "")) == []


def test_times_are_the_stores_and_agree(subject: Subject) -> None:
    store = subject.open()
    before = store.now()
    applied = store.create("when", b"x")
    found, seen, rows = store.get("when"), store.head("when"), store.list("when")
    assert isinstance(applied, Applied) and found is not None and seen is not None
    assert found.last_modified == seen.last_modified
    assert abs(rows.rows[0].last_modified - found.last_modified) < 1.001  # headers have whole seconds
    for now in (applied.now, found.now, seen.now, rows.now, store.now(), subject.open().now()):
        assert abs(now - found.last_modified) < 3.0
        assert now >= before - 1.5
    assert abs(before - found.last_modified) < 5.0


def test_another_opener_sees_it_at_once(subject: Subject) -> None:
    one, two = subject.open(), subject.open()
    one.create("x", b"1")
    found = two.get("x")
    assert found is not None and found.body == b"1"
    assert [row.key for row in two.list("").rows] == ["x"]
    two.delete("x")
    assert one.head("x") is None
    assert one.list("").rows == ()


def test_the_url_opens_the_same_store(subject: Subject) -> None:
    store = subject.open()
    store.create("x", b"1")
    assert Subject(subject.kind, store.url).open().head("x") is not None
    store.close()
    assert store.head("x") is not None
