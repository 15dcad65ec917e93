"""Archives made to do harm: each is refused, and nothing is written outside of the folder, or left in it."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from stado_like.bundle.archive import pack
from stado_like.bundle.unpack import BadArchive, Stopped, unpack

Made = tuple[tarfile.TarInfo, bytes]


def member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "", mode: int = 0o644, body: bytes = b"") -> Made:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.size = kind, to, mode, len(body)
    return made, body


def archive(*members: Made, tail: bytes = b"") -> io.BytesIO:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", encoding="utf-8", errors="surrogateescape") as tar:
        for made, body in members:
            tar.addfile(made, io.BytesIO(body))
    return io.BytesIO(gzip.compress(plain.getvalue() + tail))


def file(name: str, body: bytes = b"x") -> Made:
    return member(name, body=body)


def link(name: str, to: str) -> Made:
    return member(name, tarfile.SYMTYPE, to)


EVIL: dict[str, tuple[tuple[Made, ...], str]] = {
    "above": ((file("../escaped"),), "no path inside the folder"),
    "above, later": ((file("ok/../../escaped"),), "no path inside the folder"),
    "absolute": ((file("/tmp/stado-escaped"),), "no path inside the folder"),
    "itself": ((file("."),), "no path inside the folder"),
    "twice slashed": ((file("a//b"),), "no path inside the folder"),
    "link above": ((link("l", "../outside"),), "a link that leaves the folder"),
    "link to the root": ((link("l", "/etc/passwd"),), "a link that leaves the folder"),
    "link by way of a link": ((link("d", "."), link("l", "d/../outside")), "a link that leaves the folder"),
    "link by way of a later link": ((link("a", "b/../outside"), link("b", ".")), "a link that leaves the folder"),
    "through a link": ((link("d", "."), file("d/x")), "a file or a link, and the folder of others"),
    "through a link that leaves": ((link("d", ".."), file("d/escaped")), "link"),
    "over a link": ((link("l", "x"), file("l")), "there twice"),
    "a link over a file": ((file("l"), link("l", "x")), "there twice"),
    "a folder over a link": ((link("l", "x"), member("l", tarfile.DIRTYPE)), "a file or a link"),
    "below a file": ((file("f"), file("f/x")), "a file or a link, and the folder of others"),
    "hard link": ((file("f"), member("h", tarfile.LNKTYPE, "f")), "a hard link"),
    "hard link outside": ((member("h", tarfile.LNKTYPE, "../../etc/passwd"),), "a hard link"),
    "device": ((member("d", tarfile.CHRTYPE),), "a device"),
    "block device": ((member("d", tarfile.BLKTYPE),), "a device"),
    "fifo": ((member("d", tarfile.FIFOTYPE),), "a fifo"),
    "unknown": ((member("d", b"Z"),), "of an unknown kind"),
    "setuid": ((member("s", mode=0o4755),), "setuid"),
    "setgid": ((member("s", mode=0o2755),), "setuid, setgid and sticky"),
    "sticky folder": ((member("s", tarfile.DIRTYPE, mode=0o1777),), "setuid, setgid and sticky"),
    "a long path": ((file("/".join(["n" * 200] * 30)),), "is a path of"),
    "a long name": ((file("n" * 300),), "a name in it cannot be one here"),
    "too much in one": ((file("f", bytes(70_000)),), "unpacks to more than 64.0 KiB"),
    "too much in all": (tuple(file(str(n), bytes(10_000)) for n in range(9)), "unpacks to more than 64.0 KiB"),
    "too many": (tuple(file(str(n), b"") for n in range(40)), "more than 30 members"),
    "too many folders": ((file("/".join("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ")),), "more than 30 folders"),
}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_text("untouched")
    return tmp_path / "below" / "target"


def everything(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.parametrize("scenario", EVIL)
def test_it_is_refused_and_nothing_is_written(scenario: str, target: Path, tmp_path: Path) -> None:
    members, why = EVIL[scenario]
    good = (file("good"), member("folder", tarfile.DIRTYPE))
    with pytest.raises(BadArchive, match=why):
        unpack(archive(*good, *members), target, most_bytes=64 << 10, most_members=30)
    assert everything(tmp_path) == {"outside", "below", "below/target"}
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not Path("/tmp/stado-escaped").exists()


def header(kind: bytes, size: int, name: bytes = b"x") -> bytes:
    """One header that claims `size` bytes, made by hand."""
    made = tarfile.TarInfo()
    made.type, made.name, made.size = kind, name.decode(), size
    return made.tobuf(tarfile.GNU_FORMAT)


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "no archive": (lambda: b"not gzip at all", "no archive that can be read"),
    "nothing": (lambda: b"", "no archive that can be read"),
    "no tar": (lambda: gzip.compress(b"x" * 2000), "no archive that can be read"),
    "cut in the compression": (lambda: archive(file("a", os.urandom(9000))).getvalue()[:4000], "no archive"),
    "cut in a file": (lambda: gzip.compress(header(tarfile.REGTYPE, 5000) + b"abc"), "cut short|no archive"),
    "a flipped bit": (lambda: _flipped(archive(file("a", os.urandom(9000))).getvalue()), "no archive"),
    "a header of a gigabyte": (lambda: gzip.compress(header(b"x", 1 << 30) + bytes(9000)), "belong to no file"),
    "a name of a gigabyte": (lambda: gzip.compress(header(b"L", 1 << 30) + bytes(9000)), "belong to no file"),
    "headers for ever": (lambda: gzip.compress(header(b"x", 0) * 3000), "no archive|belong to no file"),
    "a size below zero": (lambda: gzip.compress(header(tarfile.REGTYPE, -1 << 20)), "no archive|cut short|refused|no"),
    "data of a link": (
        lambda: gzip.compress(header(b"Z", 1 << 40) + bytes(9000)),
        "of an unknown kind",
    ),
}


def _flipped(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 0x55]) + body[middle + 1 :]


@pytest.mark.parametrize("scenario", BROKEN)
def test_what_cannot_be_read_is_refused(scenario: str, target: Path, tmp_path: Path) -> None:
    make, why = BROKEN[scenario]
    with pytest.raises(BadArchive, match=why):
        unpack(io.BytesIO(make()), target)
    assert everything(tmp_path) == {"outside", "below", "below/target"}


def test_a_bomb_is_stopped_by_what_came_out(target: Path) -> None:
    """Ten gibibytes of zeros in ten mebibytes: the header tells the truth, and the limit holds before it is read."""
    with TemporaryFile() as bomb:
        with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as plain:
            plain.write(header(tarfile.REGTYPE, 10 << 30))
            plain.write(bytes(1 << 20))
        with pytest.raises(BadArchive, match="unpacks to more than"):
            unpack(bomb, target)  # type: ignore[arg-type]
    assert list(target.iterdir()) == []


def test_sparse_files_are_refused(target: Path) -> None:
    made = tarfile.TarInfo("s")
    made.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
    body = b"1\n0\n0\n".ljust(512, b"\0")
    made.size = len(body)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(made, io.BytesIO(body))
    with pytest.raises(BadArchive, match="sparse"):
        unpack(io.BytesIO(gzip.compress(plain.getvalue())), target)


def test_what_is_honest_is_laid_out(target: Path) -> None:
    members = (
        file("a/b/c"), member("run.sh", mode=0o755, body=b"#!"), link("to-run", "run.sh"), link("a/up", "../run.sh"),
        link("nowhere", "not/there"), member("a", tarfile.DIRTYPE), member("empty", tarfile.DIRTYPE),
        link("loop", "loop"), file(os.fsdecode(b"caf\xe9")),
    )  # fmt: skip
    assert unpack(archive(*members), target) == len(members)
    assert (target / "a/up").read_bytes() == b"#!"
    assert os.access(target / "run.sh", os.X_OK) and not os.access(target / "a/b/c", os.X_OK)
    assert b"caf\xe9" in os.listdir(os.fsencode(target))
    assert (target / "empty").is_dir() and os.readlink(target / "nowhere") == "not/there"


def test_a_target_that_is_not_empty_is_left_alone(target: Path) -> None:
    target.mkdir(parents=True)
    (target / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        unpack(archive(file("a")), target)
    assert (target / "mine").read_text() == "mine"


@pytest.mark.parametrize("large", [False, True])
def test_a_stop_ends_it_between_two_pieces(target: Path, tmp_path: Path, large: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    if large:
        (source / "large").write_bytes(bytes(16 << 20))
    else:
        for n in range(500):
            (source / str(n)).write_text("")
    asked: list[int] = []

    def stop_asked() -> bool:
        asked.append(1)
        return len(asked) == 2

    with pack(source) as packed, pytest.raises(Stopped):
        unpack(packed.archive, target, stop_asked=stop_asked)
    assert list(target.iterdir()) == [] and len(asked) == 2
