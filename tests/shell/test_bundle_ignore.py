"""`.stadoignore` means what `.gitignore` means: a table, and git itself as the judge of the table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.bundle.ignore import Ignore
from stado_like.errors import Refused

TREE = (
    "a", "keep", "x.py", "x.log", "#note", "!bang", "two words", "trailing ", "build/out", "build/keep",
    "src/build/out", "src/a", "src/deep/er/a", "src/x.log", "src/keep", "doc/a/b/c", "doc/b", "data/big.bin",
    "data/sub/small.txt", "B/out",
)  # fmt: skip
TABLE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a star is everything, not nothing": (("*",), TREE),
    "a star, and one thing back": (("*", "!keep"), tuple(name for name in TREE if name != "keep")),
    "a star that leaves folders open": (("*", "!*/", "!keep"), tuple(n for n in TREE if n.split("/")[-1] != "keep")),
    "a suffix anywhere": (("*.log",), ("x.log", "src/x.log")),
    "a suffix but one": (("*.log", "!src/x.log"), ("x.log",)),
    "a name anywhere": (("a",), ("a", "src/a", "src/deep/er/a", "doc/a/b/c")),
    "a name at the top": (("/a",), ("a",)),
    "folders only": (("build/",), ("build/out", "build/keep", "src/build/out")),
    "folders only, at the top": (("/build/",), ("build/out", "build/keep")),
    "nothing comes back from an ignored folder": (
        ("build/", "!build/keep"),
        ("build/out", "build/keep", "src/build/out"),
    ),
    "what is in a folder, but one": (("build/*", "!build/keep"), ("build/out",)),
    "all below, but one": (("build/**", "!build/keep"), ("build/out",)),
    "two stars before": (("**/b",), ("doc/a/b/c", "doc/b")),
    "two stars between": (("doc/**/b",), ("doc/a/b/c", "doc/b")),
    "two stars after": (("data/**",), ("data/big.bin", "data/sub/small.txt")),
    "a slash in the middle ties to the top": (("deep/er",), ()),
    "a question mark and a set": (("?.py", "[#]note"), ("x.py", "#note")),
    "a class of letters": (("[[:lower:]].py", "[[:upper:]]"), ("x.py", "B/out")),
    "a class that there is not": (("[[:letter:]]*",), ()),
    "a bracket of a bracket": (("[]a]", "[b\\]-]"), ("a", "src/a", "src/deep/er/a", "doc/a/b/c", "doc/b")),
    "a bracket that is never closed": (("[a", "x.py["), ()),
    "a range, and one that runs backwards": (("[w-y].py", "[z-a].log"), ("x.py",)),
    "not one of these": (("/[!a-z]*",), ("#note", "!bang", "B/out")),
    "a bracket ties to the top when it holds a slash": (("[a/]",), ("a",)),
    "a tab after is kept": (("keep\t",), ()),
    "a comment": (("#note",), ()),
    "an escaped hash": ((r"\#note",), ("#note",)),
    "an escaped bang": ((r"\!bang",), ("!bang",)),
    "a space inside": (("two words",), ("two words",)),
    "spaces after are dropped": (("x.py   ",), ("x.py",)),
    "an escaped space at the end": (("trailing\\ ",), ("trailing ",)),
    "the last that matches decides": (("a", "!a", "/a"), ("a",)),
    "blank lines": (("", "   ", "keep"), ("keep", "build/keep", "src/keep")),
    "a file is not a folder": (("a/",), ("doc/a/b/c",)),
    "a folder back, not what a star says of its files": (("*", "!src/"), TREE),
}


def ignored(lines: tuple[str, ...]) -> list[str]:
    ignore = Ignore(lines)
    return [name for name in TREE if ignore.ignores(name)]


@pytest.mark.parametrize("scenario", TABLE)
def test_a_pattern_ignores(scenario: str) -> None:
    """`excludes=["*"]` excluded nothing."""
    lines, expected = TABLE[scenario]
    assert ignored(lines) == [name for name in TREE if name in expected]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tree")
    for name in TREE:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    return place


def git_ignores(tree: Path, lines: tuple[str, ...]) -> list[str]:
    (tree / ".git/info/exclude").write_text("\n".join(lines) + "\n")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return [name for name in TREE if name not in listed]


@pytest.mark.parametrize("scenario", TABLE)
def test_git_says_the_same(tree: Path, scenario: str) -> None:
    lines, expected = TABLE[scenario]
    assert git_ignores(tree, lines) == [name for name in TREE if name in expected]


PIECES = (
    "a", "b", "build", "src", "*", "**", "keep", "*.log", "?", "deep", "er", "doc", "x*", "[[:alpha:]]", "[a-c]",
    "[!a]", "[^b]", "[]a]", "[a\\]]", "[b", "[[:punct:]]*", "[a[b]", "[--b]", "s[r]c", "[[:digit:]-z]uild",
)  # fmt: skip


def test_git_says_the_same_of_any_patterns(tree: Path) -> None:
    pieces = st.sampled_from(PIECES)
    lines = st.builds(
        lambda bang, root, parts, folder: bang + root + "/".join(parts) + folder,
        st.sampled_from(("", "", "!")),
        st.sampled_from(("", "/")),
        st.lists(pieces, min_size=1, max_size=3),
        st.sampled_from(("", "", "/")),
    )

    @given(st.lists(lines, min_size=1, max_size=4))
    def same(lines: list[str]) -> None:
        assert ignored(tuple(lines)) == git_ignores(tree, tuple(lines)), lines

    same()


def test_the_file_as_editors_write_it() -> None:
    assert Ignore.of(b"\xef\xbb\xbfa\r\nb c \r\n").ignores("a")
    assert Ignore.of(b"\xef\xbb\xbfa\r\nb c \r\n").ignores("b c")
    assert Ignore.of(b"caf\xe9\n").ignores("caf\udce9")
    assert not Ignore.of(b"").ignores("a")


def test_a_line_that_is_no_pattern_is_named() -> None:
    with pytest.raises(Refused, match=r"line 2 of \.stadoignore is no pattern of gitignore's dialect: '!'"):
        Ignore(["a", "!"])
