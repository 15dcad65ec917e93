"""What one process keeps on its disk for the next: found again, bounded, of this store only, and never an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.kept_lines import KeptLines
from stado_like.kept_marks import KeptMarks

ABOUT = "1 file:///store etag"


def lines(path: Path, about: str = ABOUT, most_bytes: int = 1 << 20) -> KeptLines:
    return KeptLines(path, about, most_bytes=most_bytes)


def marks(path: Path, about: str = ABOUT, most: int = 1000) -> KeptMarks:
    return KeptMarks(path, about, most=most)


def kept(path: Path, **values: object) -> KeptLines:
    one = lines(path)
    for key, value in values.items():
        one.keep(key, value)
    one.save()
    return one


def test_next_process_finds_what_was_kept_and_the_last_value_counts(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.lines"
    kept(path, a=[1, "one"], b={"two": 2})
    kept(path, a=[3])
    found = lines(path)
    assert (found.said("a"), found.said("b"), found.said("c")) == ([3], {"two": 2}, None)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not [one for one in path.parent.iterdir() if one != path]


def test_what_is_kept_already_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.lines"
    kept(path, a=1)
    size = path.stat().st_size
    kept(path, a=1)
    assert path.stat().st_size == size


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_file_cut_or_damaged_anywhere_loses_lines_and_invents_none(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.lines"
    kept(path, a=[1, "one"], b=[2, "two"])
    whole = path.read_bytes()
    for damaged in (whole[:-cut], whole[: cut - 1] + b"\xff" + whole[cut:]):
        path.write_bytes(damaged)
        found = lines(path)
        assert found.said("a") in ([1, "one"], None) and found.said("b") in ([2, "two"], None)
        found.keep("c", 3)
        found.save()
        assert lines(path).said("c") == 3


def test_noise_behind_what_was_kept_names_nothing_that_cannot_be_asked_for(tmp_path: Path) -> None:
    """A list of very many jobs cuts its listing at the keys that are kept."""
    path = tmp_path / "x.lines"
    kept(path, a=1, b=2)
    with path.open("ab") as file:
        file.write(b"\xff" * 40 + b"\n" + b"1234567 [" + bytes(range(256)) + b'"\n' + b'12345678 ["j\xffobs"\n')
    assert sorted(lines(path).names()) == ["a", "b"]


@pytest.mark.parametrize("noise", [b"", b"\n\n", b"\x00" * 500, b"12345678 [1\n" * 50, bytes(range(256))])
def test_noise_is_an_empty_cache(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "x.lines"
    path.write_bytes(noise)
    assert lines(path).said("a") is None
    kept(path, a=1)
    assert lines(path).said("a") == 1


def test_other_store_finds_nothing_even_where_an_old_process_appends_late(tmp_path: Path) -> None:
    path = tmp_path / "x.lines"
    old = kept(path, a=1)
    other = lines(path, about="another")
    assert other.said("a") is None
    other.keep("b", 2)
    other.save()
    old.keep("c", 3)
    old.save()
    found = lines(path, about="another")
    assert (found.said("a"), found.said("b"), found.said("c")) == (None, 2, None)


def test_two_processes_that_keep_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.lines"
    kept(path, z=0)
    one, two = lines(path), lines(path)
    assert one.said("z") == two.said("z") == 0
    one.keep("a", 1)
    two.keep("b", 2)
    one.save()
    two.save()
    found = lines(path)
    assert (found.said("a"), found.said("b"), found.said("z")) == (1, 2, 0)


def test_file_stays_below_its_bound_and_keeps_what_was_asked_for(tmp_path: Path) -> None:
    path, most = tmp_path / "x.lines", 20_000
    for number in range(40):
        one = lines(path, most_bytes=most)
        if number:
            assert one.said("wanted") == "always"
        one.keep("wanted", "always")
        for each in range(20):
            one.keep(f"{number}-{each}", "x" * 50)
        one.save()
        assert path.stat().st_size <= most + 2_500
    assert lines(path).said("39-19") == "x" * 50 and lines(path).said("0-0") is None


def test_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    one = kept(blocked / "x.lines", a=1)
    assert one.said("a") == 1
    seen = marks(blocked / "x.marks")
    seen.mark(["a"])
    seen.save()
    assert seen.among({1: "a"}) == {1}


def test_marks_are_found_by_the_next_process_of_this_store_only(tmp_path: Path) -> None:
    path = tmp_path / "x.marks"
    first = marks(path)
    first.mark(["over/1/a", "over/1/b"])
    assert first.among({"a": "over/1/a", "c": "over/1/c"}) == {"a"}
    first.save()
    assert marks(path).among({"a": "over/1/a", "b": "over/2/b"}) == {"a"}
    assert marks(path, about="another").among({"a": "over/1/a"}) == set()
    assert path.stat().st_mode & 0o777 == 0o600


def test_marks_cut_short_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.marks"
    first = marks(path)
    first.mark(["a", "b"])
    first.save()
    path.write_bytes(path.read_bytes()[:-3])
    second = marks(path)
    assert second.among({1: "a", 2: "b"}) == set()
    second.mark(["c"])
    second.save()
    assert marks(path).among({1: "a", 3: "c"}) == {3}


@pytest.mark.parametrize("on_disk", [True, False])
def test_marks_stay_below_their_bound_the_newest_stay(tmp_path: Path, on_disk: bool) -> None:
    path = tmp_path / "x.marks"
    seen = KeptMarks(path if on_disk else None, ABOUT, most=100)
    for number in range(300):
        seen.mark([str(number)])
        if on_disk and number % 10 == 9:
            seen.save()
            assert path.stat().st_size <= 100 * 8 + 80
            seen = marks(path, most=100)
    assert seen.among({n: str(n) for n in range(300)}) >= set(range(290, 300))
    assert len(seen.among({n: str(n) for n in range(300)})) <= 110
