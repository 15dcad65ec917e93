"""What one checkpoint is: a directory told in one record, whose contents lie in blobs beside it.

    manifest   every directory, link and file; a file is pieces of blobs: (blob, offset, size), in order
    blob       bytes named by their own SHA-256: a piece of a large file, or many small files one after the other

Not obvious because a manifest decides what is written to a disk, and came over a network. So whoever reads one gets
either a tree that can be laid out below a directory without ever leaving it, or `BadRecord`: no name climbs, every
parent of a name is a directory of the manifest itself (hence no link), and no name stands twice.

Names are bytes, as on a disk: they stand percent-encoded. A blob is named by the attempt that sent it and its digest,
so that a later attempt's manifest refers to what an earlier one sent.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from stado_like.errors import BadRecord
from stado_like.job import codec
from stado_like.job.spec import limits

MOST_ENTRIES: Final = 200_000
"""Files, links and directories of one checkpoint."""
MODE_BITS: Final = 0o777
_SAFE: Final = " /!#$&'()*+,:;<=>?@[]^_`{|}~.-"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run asks for. `prefix`: a folder of the attempt's own place in the store, or nothing."""

    dir: str
    interval_s: int
    keep: int
    prefix: str
    final_s: int


def wanted(said: Mapping[str, Any] | None) -> Wanted | None:
    """What `task_template.checkpoint` says; None where nothing is to be kept."""
    if not said or not said.get("dir"):
        return None
    return Wanted(
        dir=said["dir"],
        interval_s=said.get("interval_seconds", limits.DEFAULT_CHECKPOINT_INTERVAL_S),
        keep=said.get("keep", limits.DEFAULT_CHECKPOINTS_KEPT),
        prefix=said.get("prefix") or "",
        final_s=said.get("final_seconds", limits.DEFAULT_CHECKPOINT_FINAL_S),
    )


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Checkpoint `seq` of attempt `n`. The greater one is the newer."""

    n: int
    seq: int

    def __str__(self) -> str:
        return f"checkpoint {self.seq} of attempt {self.n}"


@dataclass(frozen=True, slots=True, order=True)
class Blob:
    """`n`: the attempt that sent it."""

    n: int
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    blob: Blob
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Kept:
    """One file. `digest`: of its whole content, where it shares a blob with others; else its pieces tell it."""

    mode: int
    mtime_ns: int
    size_bytes: int
    digest: str
    pieces: tuple[Piece, ...]

    @property
    def content(self) -> tuple[object, ...]:
        """Equal for equal bytes, wherever they lie."""
        return (self.size_bytes, self.digest or tuple(piece.blob.digest for piece in self.pieces))


@dataclass(frozen=True, slots=True)
class Manifest:
    """Paths are relative, without a leading or trailing `/`. `directories`: path -> mode; `links`: path -> target."""

    attempt: str
    ref: Ref
    at: float
    directories: Mapping[bytes, int] = field(default_factory=dict)
    links: Mapping[bytes, bytes] = field(default_factory=dict)
    files: Mapping[bytes, Kept] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())

    @property
    def blobs(self) -> frozenset[Blob]:
        return frozenset(piece.blob for file in self.files.values() for piece in file.pieces)

    @property
    def says(self) -> tuple[object, ...]:
        """Equal for two checkpoints of the same names and contents; times are not looked at."""
        files = {path: (file.mode, file.content) for path, file in self.files.items()}
        return (dict(self.directories), dict(self.links), files)


def encode(manifest: Manifest) -> bytes:
    blobs = sorted(manifest.blobs)
    place = {blob: index for index, blob in enumerate(blobs)}
    return codec.encode(
        {
            "attempt": manifest.attempt,
            "seq": manifest.ref.seq,
            "at": manifest.at,
            "size_bytes": manifest.size_bytes,
            "blobs": [[blob.n, blob.digest, blob.size_bytes] for blob in blobs],
            "directories": [[_said(path), mode] for path, mode in sorted(manifest.directories.items())],
            "links": [[_said(path), _said(target)] for path, target in sorted(manifest.links.items())],
            "files": [
                [
                    _said(path),
                    file.mode,
                    file.mtime_ns,
                    file.size_bytes,
                    file.digest,
                    [[place[piece.blob], piece.offset, piece.size_bytes] for piece in file.pieces],
                ]
                for path, file in sorted(manifest.files.items())
            ],
        }
    )


def decode(body: bytes, key: str, n: int) -> Manifest:
    """`n`: the attempt under which it lies; its blobs are of no later one. Raises `BadRecord`, `NewerRecord`."""
    plain = codec.decode_plain(body, key)
    try:
        made = _read(plain, n)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise _bad(key, f"is no manifest of a checkpoint ({wrong!r})") from None
    fault = _fault(made)
    if fault:
        raise _bad(key, fault)
    return made


def _bad(key: str, why: str) -> BadRecord:
    return BadRecord(f"{key}: {why}", "The checkpoint was set aside, and an older one is taken.")


def _said(path: bytes) -> str:
    return quote_from_bytes(path, safe=_SAFE)


def _read(plain: Mapping[str, Any], n: int) -> Manifest:
    blobs = tuple(Blob(_number(m), str(digest), _number(size)) for m, digest, size in plain["blobs"])
    if any(_DIGEST.match(blob.digest) is None or not 1 <= blob.n <= n for blob in blobs):
        raise ValueError("a blob that has no name")
    files: dict[bytes, Kept] = {}
    for path, mode, mtime_ns, size, digest, pieces in plain["files"]:
        kept = tuple(Piece(blobs[_number(at)], _number(offset), _number(length)) for at, offset, length in pieces)
        name = unquote_to_bytes(path)
        if name in files:
            raise ValueError("a file that stands twice")
        files[name] = Kept(_number(mode) & MODE_BITS, int(mtime_ns), _number(size), str(digest), kept)
    directories = {unquote_to_bytes(path): _number(mode) & MODE_BITS for path, mode in plain["directories"]}
    links = {unquote_to_bytes(path): unquote_to_bytes(target) for path, target in plain["links"]}
    ref = Ref(n, _number(plain["seq"]))
    return Manifest(str(plain["attempt"]), ref, float(plain["at"]), directories, links, files)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    return value


def _fault(made: Manifest) -> str:
    """Why this must not be laid out; empty: it may."""
    if len(made.directories) + len(made.links) + len(made.files) > MOST_ENTRIES:
        return f"it names more than {MOST_ENTRIES} files, links and directories"
    seen: set[bytes] = set()
    for path in _names(made):
        if path in seen or not is_inner(path):
            return f"the name {path!r} stands twice, or leaves the directory"
        seen.add(path)
        parent = path.rpartition(b"/")[0]
        if parent and parent not in made.directories:
            return f"{path!r} lies below something that is no directory of it"
    for path, target in made.links.items():
        if inner_target(path, target) != target:
            return f"the link {path!r} leads outside"
    for path, file in made.files.items():
        if sum(piece.size_bytes for piece in file.pieces) != file.size_bytes:
            return f"the pieces of {path!r} do not add up to its {file.size_bytes} bytes"
        if any(piece.offset + piece.size_bytes > piece.blob.size_bytes for piece in file.pieces):
            return f"a piece of {path!r} ends behind its blob"
    return ""


def _names(made: Manifest) -> Iterator[bytes]:
    yield from made.directories
    yield from made.links
    yield from made.files


def is_inner(path: bytes) -> bool:
    """Whether a relative path names something below the directory, without a detour."""
    return b"\0" not in path and all(part not in (b"", b".", b"..") for part in path.split(b"/"))


def inner_target(path: bytes, target: bytes, root: bytes = b"") -> bytes | None:
    """Where a link at `path` may lead, relative to itself; None when that is not below the directory. A `target` given
    from `/` on is taken from `root`, the directory's own path."""
    if b"\0" in target or not target:
        return None
    here = posixpath.dirname(path)
    if target.startswith(b"/"):
        if not root or not (target + b"/").startswith(root.rstrip(b"/") + b"/"):
            return None
        return posixpath.relpath(target, posixpath.join(root, here))
    reached = posixpath.normpath(posixpath.join(b".", here, target))
    return None if reached == b".." or reached.startswith(b"../") else target
