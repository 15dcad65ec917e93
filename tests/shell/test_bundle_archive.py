"""An archive's digest says what is in it and nothing else; it comes out as it went in; too much is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stado_like.bundle import archive as archiving
from stado_like.bundle.archive import Packed, pack
from stado_like.bundle.unpack import unpack
from stado_like.errors import Exit, Refused

parts = st.sampled_from(("a", "b", "Z", "ab", "a-b", "a.b", "ü", "x y", "n" * 200, os.fsdecode(b"\xff\xfe")))
trees = st.dictionaries(
    st.lists(parts, min_size=1, max_size=3).map("/".join),
    st.tuples(st.sampled_from(("file", "program", "link", "folder")), st.binary(max_size=2000)),
    min_size=1,
    max_size=8,
)


def made(place: Path, tree: dict[str, tuple[str, bytes]], *, reverse: bool, mtime_s: float, umask: int) -> Path:
    before = os.umask(umask)
    try:
        place.mkdir(parents=True)
        for name, (kind, body) in sorted(tree.items(), reverse=reverse):
            path = place / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.is_symlink() or path.exists():
                    continue
                if kind == "folder":
                    path.mkdir()
                elif kind == "link":
                    path.symlink_to("a" + str(len(body)))
                else:
                    path.write_bytes(body)
                    path.chmod(0o755 if kind == "program" else 0o640)
                    os.utime(path, (mtime_s, mtime_s))
            except (NotADirectoryError, FileExistsError):
                continue  # below a file: not in this tree
        return place
    finally:
        os.umask(before)


def seen(place: Path) -> dict[str, tuple[object, ...]]:
    """What is there, modes as two."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(place.rglob("*")):
        name = os.fsdecode(os.fsencode(path.relative_to(place)))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder",)
        else:
            found[name] = ("file", path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(trees)
def test_a_digest_says_what_is_in_it_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[str, bytes]]
) -> None:
    """Not the time (zero and before 1980 among them), the place, the umask, the order, or who packed."""
    first = made(tmp_path_factory.mktemp("one") / "x", tree, reverse=False, mtime_s=0, umask=0o022)
    other = made(tmp_path_factory.mktemp("two") / "deeper/y", tree, reverse=False, mtime_s=2e9, umask=0o077)
    with pack(first) as one, pack(str(other) + "/") as two:
        assert (one.digest, one.size_bytes, one.files) == (two.digest, two.size_bytes, two.files)
        out = tmp_path_factory.mktemp("out") / "z"
        unpack(one.archive, out)
        assert seen(out) == seen(first)


def test_order_of_writing_does_not_show(tmp_path: Path) -> None:
    tree = {f"{n % 3}/{n}": ("file", bytes([n])) for n in range(40)}
    digests = set()
    for reverse in (False, True):
        place = made(tmp_path / str(reverse), tree, reverse=reverse, mtime_s=1, umask=0o022)
        with pack(place) as packed:
            digests.add(packed.digest)
    assert len(digests) == 1


@pytest.mark.parametrize("change", ["body", "name", "mode", "link", "more"])
def test_another_content_is_another_digest(tmp_path: Path, change: str) -> None:
    (tmp_path / "f/sub").mkdir(parents=True)
    (tmp_path / "f/a").write_text("x")
    (tmp_path / "f/l").symlink_to("a")
    with pack(tmp_path / "f") as before:
        pass
    if change == "body":
        (tmp_path / "f/a").write_text("y")
    elif change == "name":
        (tmp_path / "f/a").rename(tmp_path / "f/b")
    elif change == "mode":
        (tmp_path / "f/a").chmod(0o755)
    elif change == "link":
        (tmp_path / "f/l").unlink()
        (tmp_path / "f/l").symlink_to("./a")
    else:
        (tmp_path / "f/sub/b").write_text("")
    with pack(tmp_path / "f") as after:
        assert after.digest != before.digest


def sparse(path: Path, size_bytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size_bytes)


def test_a_large_dot_git_is_not_counted(tmp_path: Path) -> None:
    """An upload was rejected because `.git` counted, with no hint."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    sparse(tmp_path / ".git/objects/pack/p.pack", 600 << 20)
    (tmp_path / "a").write_text("a")
    with pack(tmp_path) as packed:
        assert (packed.files, packed.content_bytes) == (1, 1)


def test_over_the_limit_names_the_ten_largest(tmp_path: Path) -> None:
    for n in range(12):
        sparse(tmp_path / f"data/{n:02d}.bin", (n + 1) << 20)
    (tmp_path / "small").write_text("s")
    with pytest.raises(Refused) as told:
        pack(tmp_path, limit_bytes=64 << 20)
    assert (told.value.code, told.value.exit_code) == ("BUNDLE_TOO_LARGE", Exit.REFUSED)
    assert told.value.message == (
        f"{tmp_path} holds 78.0 MiB in 13 files, and a bundle may hold 64.0 MiB; 78.0 MiB of it lie below 'data'. "
        "The largest:"
    )
    assert told.value.detail == {f"data/{n:02d}.bin": f"{n + 1}.0 MiB" for n in range(11, 1, -1)}
    assert ".stadoignore" in told.value.next_step and "STADO_BUNDLE_MAX" in told.value.next_step
    (tmp_path / ".stadoignore").write_text("data/\n")
    with pack(tmp_path, limit_bytes=64 << 20) as packed:
        assert packed.files == 2


def test_too_many_files_are_refused_without_looking_at_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stado_like.bundle.contents.MOST_MEMBERS", 5)
    for n in range(9):
        (tmp_path / str(n)).write_text("")
    with pytest.raises(Refused, match="holds more than 5 files"):
        pack(tmp_path)


@pytest.mark.parametrize("how", ["longer", "shorter", "same", "gone", "link"])
def test_a_file_that_changes_while_it_is_read_is_refused_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(bytes(100_000))
    (tmp_path / "a").write_text("a")

    def change(done: int, total: int) -> None:  # after `a`, before `victim`
        if done > 1:
            return
        if how in ("longer", "shorter"):
            os.truncate(victim, 200_000 if how == "longer" else 10)
        elif how == "same":
            victim.write_bytes(bytes(99_999) + b"x")
            os.utime(victim, ns=(1, 1))
        else:
            victim.unlink()
            if how == "link":
                victim.symlink_to("a")

    with pytest.raises(Refused, match=r"/victim' (changed while it was packed|cannot be read)"):
        pack(tmp_path, on_progress=change)


def test_a_file_that_shrinks_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(os.urandom(400_000))
    plain = archiving._Hashed.write

    def write(self: object, piece: bytes) -> int:
        os.truncate(victim, 300_000)
        return plain(self, piece)  # type: ignore[arg-type]

    monkeypatch.setattr(archiving._Hashed, "write", write)
    with pytest.raises(Refused, match="changed while it was packed"):
        pack(tmp_path)


def test_nothing_to_ship_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is nothing to ship in"):
        pack(tmp_path)


def test_packed_in_words(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(3000))
    with pack(tmp_path) as packed:
        assert isinstance(packed, Packed)
        assert str(packed) == f"bundle {packed.digest[:12]}: 1 file, 2.9 KiB"
