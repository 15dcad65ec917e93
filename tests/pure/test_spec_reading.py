"""YAML and JSON as people really write them: read in the manner of YAML 1.2, or refused with one clear sentence."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.errors import Exit, Refused
from stado_like.job.spec import limits
from stado_like.job.spec.validate import read_document, validate

RUN = """\
metadata:
  name: llama-finetune            # the name
  labels: { team: nlp, on: no, "yes": 'off' }
spec:
  priority: 10
  task_template:
    command: torchrun
    args: ["--nproc-per-node=8", train.py, --config, 1:30, 2024-01-01, 1_000, |-
      no, "5", ~x]
    env: { NCCL_DEBUG: INFO, A: "", B: '\u00fc', C: y, D: 0b1, E: "\\t" }
    time_limit_seconds: 86400
    requested_resources: {cpu_cores: 0.5, memory_bytes: 0x40000000}
""".replace(", |-\n      no", ",\n      no")


def test_yaml_is_read_as_its_writer_meant_it() -> None:
    """`no` is a text, 1:30 and 2024-01-01 and 1_000 are texts; only true, false, null and numbers are not."""
    read = read_document(RUN, "run.yaml")
    assert read["metadata"]["labels"] == {"team": "nlp", "on": "no", "yes": "off"}
    template = read["spec"]["task_template"]
    assert template["args"][3:] == ["1:30", "2024-01-01", "1_000", "no", "5", "~x"]
    assert template["env"] == {"NCCL_DEBUG": "INFO", "A": "", "B": "ü", "C": "y", "D": "0b1", "E": "\t"}
    assert template["requested_resources"] == {"cpu_cores": 0.5, "memory_bytes": 1 << 30}
    assert validate(read) == validate(read_document(RUN.encode(), "run.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("yes", "yes"), ("off", "off"), ("N", "N"), ("null", None), ("~", None),
        ("", None), ("007", 7), ("+5", 5), ("-5", -5), ("0o17", 15), ("0x1F", 31), ("1e3", 1000.0), (".5", 0.5),
        ("5.", 5.0), ("1.2.3", "1.2.3"), ("12:30:45", "12:30:45"), ("1,000", "1,000"), ("0b1", "0b1"), ("=", "="),
        ("!!str 5", "5"), ("! 5", "5"), ("'5'", "5"), ('"no"', "no"), ("inf", "inf"), ("nan", "nan"),
        ("[a, {b: c}]", ["a", {"b": "c"}]), ("&x a", "a"), ("|\n  a\n  b\n", "a\nb\n"), (">-\n  a\n  b\n", "a b"),
        ("9" * 300, int("9" * 300)), ("9" * 401, "9" * 401),
    ],
)  # fmt: skip
def test_yaml_scalar(text: str, value: object) -> None:
    got = read_document(f"k: {text}", "x")["k"]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    "text", ['{"a": "b",\n\t"c": [1, 2.5, null, true]}', '\ufeff{"a": "b", "c": [1, 2.5, null, true]}']
)
def test_json_is_read_also_where_it_is_no_yaml(text: str) -> None:
    expected = {"a": "b", "c": [1, 2.5, None, True]}
    for what in ("run.json", "standard input"):
        assert read_document(text, what) == expected
        assert read_document(text.encode(), what) == expected


def test_flow_yaml_is_not_taken_for_broken_json() -> None:
    assert read_document("{metadata: {name: x}, spec: {}}", "-") == {"metadata": {"name": "x"}, "spec": {}}


def test_aliases_within_bounds_are_written_out() -> None:
    read = read_document("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]", "x")
    assert read == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}, "c": [{"k": [1, 2]}, {"k": [1, 2]}]}


BOMB = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
LONG_BOMB = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]"
MALFORMED: list[tuple[str, str | bytes, str]] = [
    ("empty", "", "holds nothing"),
    ("only a comment", "# nothing\n", "holds nothing"),
    ("a list", "- a", "holds a list"),
    ("a text", "just words", "holds a text"),
    ("a number", "5", "holds a int"),
    ("two documents", "a: 1\n---\nb: 2", "a second document begins"),
    ("duplicate key", "a: 1\nb: {c: 1, c: 2}", "line 2, column 11: the key `c` stands twice"),
    ("duplicate key in JSON", '{"a": {"b": 1, "b": 2}}', "the key `b` stands twice"),
    ("key by alias twice", "&k a: 1\n*k : 2", "the key `a` stands twice"),
    ("key that is a number", "env: {1: x}", "a key must be a text, got 1"),
    ("key that is null", "~: x", "a key must be a text, got None"),
    ("key that is true", "true: x", "a key must be a text, got True"),
    ("key that is a mapping", "? {a: b}\n: c", "a key must be a text, not a list or mapping"),
    ("key that is an aliased list", "a: &x [b]\n*x : c", "a key must be a text"),
    ("merge key", "a: &x {b: 1}\nc: {<<: *x}", "merge keys"),
    ("python tag", "a: !!python/object/apply:os.system [ls]", "python/object/apply:os.system` is not read"),
    ("own tag", "a: !secret x", "the tag `!secret`"),
    ("binary tag", "a: !!binary aGk=", "the tag"),
    ("integer by tag", 'a: !!int "5"', "the tag"),
    ("not a number", "a: .nan", ".nan is not a number"),
    ("infinite", "a: -.inf", "-.inf is not a number"),
    ("overflowing", "a: 1e999", "1e999 is not a number"),
    ("not a number in JSON", '{"a": NaN}', "NaN is not a number"),
    ("infinite in JSON", '{"a": -Infinity}', "-Infinity is not a number"),
    ("overflowing in JSON", '{"a": 1e999}', "1e999 is not a number"),
    ("endless integer in JSON", '{"a": ' + "9" * 5000 + "}", "an integer of 5000 digits is not a number"),
    ("unknown alias", "a: *b", "*b has no anchor before it"),
    ("alias of itself", "a: &a [*a]", "*a contains itself"),
    ("alias bomb", BOMB, "aliases stand for more than 1 MiB"),
    ("alias bomb of long texts", LONG_BOMB, "aliases stand for more than 1 MiB"),
    ("deep flow", "a: " + "[" * 500_000, "nest"),
    ("deep mappings", "{a: " * 200_000, "nested too deep"),
    ("deep block", "".join(" " * n + "a:\n" for n in range(1000)), "nested too deep"),
    ("deep JSON", '{"a": ' + "[" * 900_000, "nested too deep"),
    ("too large", "a: " + "x" * (1 << 20), "a specification has at most 1 MiB"),
    ("unclosed", "a: [1, 2", "is not YAML: line"),
    ("tab indented", "a:\n\tb: 1", "is not YAML: line 2"),
    ("bad indentation", "a: 1\n b: 2", "is not YAML: line 2"),
    ("broken JSON and YAML", '{"a": 1,\n"b" 2', "nor YAML: "),
    ("UTF-16", "a: 1".encode("utf-16"), "is not UTF-8: it begins with the mark of UTF-16"),
    ("Latin-1", "a: \xfc".encode("latin-1"), "is not UTF-8: byte 0xfc at offset 3"),
    ("cut UTF-8", b"a: \xe2\x82", "is not UTF-8"),
    ("overlong NUL", b"a: \xc0\x80", "is not UTF-8"),
    ("NUL", b"a: 1\nb: \0", "line 2, column 4: the character U+0000 is not allowed"),
    ("escape character", "a: \x1b[31m", "line 1, column 4: the character U+001B"),
    ("lone surrogate", "a: \ud800", "the character U+D800"),
    ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not UTF-8"),
    ("escape beyond Unicode", 'a: "\\UFFFFFFFF"', "is not YAML"),
    ("a script", "#!/bin/sh\necho hello\n", "holds a text"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "says"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_document_is_one_clear_refusal(source: str | bytes, says: str) -> None:
    began = time.process_time()
    with pytest.raises(Refused) as refused:
        read_document(source, "run.yaml")
    assert time.process_time() - began < 1
    error = refused.value
    assert error.exit_code is Exit.REFUSED
    assert error.message.startswith("run.yaml")
    assert says in error.message
    assert error.next_step
    assert len(error.message) < 400
    error.message.encode()


def test_json_file_is_never_read_as_yaml() -> None:
    with pytest.raises(Refused, match="line 1, column 2"):
        read_document("{a: 1}", "run.json")


@pytest.mark.parametrize(
    "text", ["a: " + "x" * 1_000_000, "a:\n" + "- b\n" * 250_000, "a: [" + "1," * 500_000 + "1]", "- " * 500_000,
             "k? " * 300_000, "\n" * 1_000_000 + "a: 1", "a: '" + "''" * 500_000 + "'", "# " * 500_000,
             "&a " * 300_000, "a" * 1_000_000 + ": b", '{"a": [' + "{}," * 300_000 + "{}]}"],
    ids=lambda text: text[:10],
)  # fmt: skip
def test_the_largest_documents_end_in_bounded_time(text: str) -> None:
    """With libyaml; a Python without it is slower, never unbounded."""
    began = time.process_time()
    try:
        read_document(text, "x")
    except Refused as refused:
        assert len(refused.message) < 400
    assert time.process_time() - began < 5


def test_the_python_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml its own parser is used: the same values, the same refusals."""
    with_libyaml = read_document(RUN, "x")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read_document(RUN, "x") == with_libyaml
    for name, source, _ in MALFORMED:
        if name != "too large":
            with pytest.raises(Refused):
                read_document(source, "x")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200), st.text(alphabet="{}[]:,-&*!|>'\"\n #?%@ a1.~<", max_size=60), st.binary(max_size=200)
    )
)
def test_any_input_is_a_mapping_or_a_refusal(source: str | bytes) -> None:
    try:
        read: Any = read_document(source, "x")
    except Refused as refused:
        assert refused.message
    else:
        assert type(read) is dict


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["metadata", "spec", "spec.task_template", "spec.array", "spec.task_template.resilience", "top"]),
)
def test_any_value_anywhere_is_stored_or_refused(value: Any, where: str) -> None:
    document: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"task_template": {"command": "true"}}}
    at = document
    *above, last = where.split(".")
    for step in above:
        at = at[step]
    at[last] = {**at[last], **value} if isinstance(value, dict) and isinstance(at.get(last), dict) else value
    try:
        stored = validate(document)
    except Refused as refused:
        assert refused.detail
    else:
        assert validate(stored) == stored


def test_stored_form_of_a_large_array_is_read_again() -> None:
    """Entries may fill a mebibyte by themselves, and a stored form is indented and has every default beside them."""
    stored = {"spec": {"array": {"entries": ["x" * 104] * 10_000}}}
    text = json.dumps(stored, indent=2)
    assert len(text) > limits.DOCUMENT_MAX_BYTES
    assert read_document(text, "stored.json") == read_document(text, "standard input") == stored


def test_yaml_above_a_mebibyte_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(Refused, match=r"at most 1 MiB \(as JSON 8 MiB\)"):
        read_document("a: " + "x" * limits.DOCUMENT_MAX_BYTES, "run.yaml")
