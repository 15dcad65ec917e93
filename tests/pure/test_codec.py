"""Bytes of records: unknown fields survive, a newer version is refused politely, a wrong type names key and field."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.errors import BadRecord, NewerRecord
from stado_like.job import codec
from stado_like.job.records import Claim, Heartbeat, Pointer
from stado_like.job.states import TaskState

KEY = "running/default.train.1.00003.000002.json"


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    number: int = 0
    share: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    flag: bool = False
    colour: Colour = Colour.RED
    maybe: str | None = None
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()
    table: Mapping[str, Inner] = dataclasses.field(default_factory=dict)
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


whole = st.integers(-(2**53), 2**53)
inner = st.builds(Inner, number=whole, share=st.floats(allow_nan=False, allow_infinity=False))
texts = st.text(st.characters(codec="utf-8"), max_size=20)
fresh_names = st.text(alphabet="xyz", min_size=1, max_size=4)
outer = st.builds(
    Outer,
    name=texts,
    flag=st.booleans(),
    colour=st.sampled_from(Colour),
    maybe=st.none() | texts,
    inner=inner,
    many=st.lists(inner, max_size=3).map(tuple),
    table=st.dictionaries(texts, inner, max_size=3),
    extra=st.dictionaries(fresh_names, whole | texts | st.none() | st.lists(whole, max_size=3), max_size=3),
)


@given(outer)
def test_what_was_written_is_read_back_with_unknown_fields(record: Outer) -> None:
    assert codec.decode(Outer, codec.encode(record), KEY) == record


def test_missing_field_takes_its_default() -> None:
    assert codec.decode(Outer, b'{"name":"a"}', KEY) == Outer(name="a")


def test_missing_field_without_default_is_named() -> None:
    with pytest.raises(BadRecord, match=r"running/.*nonce, attempt, worker"):
        codec.decode(Claim, b"{}", KEY)


WRONG = [
    ({"name": 5}, "name should be text, found '5'"),
    ({"name": "a", "flag": 1}, "flag should be true or false"),
    ({"name": "a", "maybe": 3}, "maybe should be text"),
    ({"name": "a", "colour": "green"}, "colour should be one of red, blue, found 'green'"),
    ({"name": "a", "inner": {"number": True}}, "inner.number should be a whole number, found 'True'"),
    ({"name": "a", "inner": {"number": 1.5}}, "inner.number should be a whole number"),
    ({"name": "a", "inner": {"share": "1"}}, "inner.share should be a number"),
    ({"name": "a", "inner": []}, "inner should be an object"),
    ({"name": "a", "many": {}}, "many should be a list"),
    ({"name": "a", "many": [{}, {"number": "x"}]}, r"many\[1\].number should be a whole number"),
    ({"name": "a", "table": {"k": {"share": None}}}, "table.k.share should be a number"),
    ({"name": "a", "table": []}, "table should be an object"),
]


@pytest.mark.parametrize(("plain", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_type_names_key_and_field(plain: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRecord, match=f"^{KEY}: {said}") as refused:
        codec.decode(Outer, orjson.dumps(plain), KEY)
    assert refused.value.next_step


@pytest.mark.parametrize("body", [b"", b"\x00" * 40, b"{", b"[]", b"null", b'"x"', b"7", b'{"name":"a"', b"\xff\xfe"])
def test_bytes_that_are_no_record_name_the_key(body: bytes) -> None:
    """Case: one malformed queued record is set aside with a reason; it stops nothing."""
    with pytest.raises(BadRecord, match=f"^{KEY}"):
        codec.decode(Outer, body, KEY)


@pytest.mark.parametrize("version", [2, 3, 10**6])
def test_newer_major_version_is_refused_politely(version: int) -> None:
    said = f"version {version} of the format; this program reads up to {codec.MAJOR}"
    with pytest.raises(NewerRecord, match=said) as it:
        codec.decode(Claim, orjson.dumps({"v": version, "shape": "unknown"}), KEY)
    assert KEY in it.value.message
    assert "Upgrade" in it.value.next_step


@pytest.mark.parametrize("version", ["1", None, 1.5, True, [], {}])
def test_version_that_is_no_number_is_a_bad_record(version: Any) -> None:
    with pytest.raises(BadRecord, match="its version should be a number") as refused:
        codec.decode(Claim, orjson.dumps({"v": version}), KEY)
    assert not isinstance(refused.value, NewerRecord)


def test_every_record_says_its_version() -> None:
    assert orjson.loads(codec.encode(Pointer()))["v"] == codec.MAJOR
    assert orjson.loads(codec.encode({"any": "mapping"})) == {"v": codec.MAJOR, "any": "mapping"}


def test_enumerations_are_their_words() -> None:
    beat = Heartbeat(seq=1, nonce="n", worker="w", state=TaskState.READY_TO_START)
    assert orjson.loads(codec.encode(beat))["state"] == "ReadyToStart"
    assert codec.decode(Heartbeat, codec.encode(beat), KEY).state is TaskState.READY_TO_START
