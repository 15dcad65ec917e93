"""A document printed as YAML is the same document when it is submitted: no text turns into a number on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_cli.output.as_yaml import dumps
from stado_like.job.spec.reading import read_document

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LOOKS_LIKE = [
    "no",
    "Off",
    "y",
    "null",
    "~",
    "1e3",
    "0x10",
    "0o17",
    "1_000",
    "2026-01-31",
    "12:30",
    ".inf",
    "-",
    "=",
    "<<",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | TEXTS | st.sampled_from(LOOKS_LIKE),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(lambda key: key != "<<"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "no", "1"]), VALUES))
def test_what_is_printed_reads_back(document: dict[str, object]) -> None:
    assert read_document(dumps(document).encode(), "printed") == document


@pytest.mark.parametrize("text", ["#!/bin/sh\nset -e\n\n  echo hi", "a\n", "a\n\n", "a:\n- b # c\n"])
def test_lines_stand_as_they_are(text: str) -> None:
    printed = dumps({"args": [text]})
    assert read_document(printed.encode(), "printed") == {"args": [text]}
    assert "|" in printed and "\\n" not in printed
