"""The keys of checkpoints below one task's attempts, built and parsed.

    checkpoints/<J>/<rank>/<n>/[<prefix>/]blob.<sha256>
    checkpoints/<J>/<rank>/<n>/[<prefix>/]manifest.<seq>.json

Apart from `keys` because a program writes objects of its own below the same folder, by STADO_CHECKPOINT_URL. What is
not exactly of one of these two forms is nobody's but the program's, and no reader here ever sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stado_like.job.checkpoint import Ref
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.keys import checkpoints_of

_FORM = re.compile(r"(\d{6})/(.*?)(?:blob\.([0-9a-f]{64})|manifest\.(\d{6})\.json)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the checkpoints of one task lie. `prefix`: the folder that the job puts them in, or nothing."""

    job: JobId
    rank: int
    prefix: str = ""

    @property
    def folder(self) -> str:
        """Of every attempt, own objects of programs included."""
        return checkpoints_of(AttemptId(self.job, self.rank, 1)).removesuffix("000001/")

    def _of(self, n: int) -> str:
        inner = f"{self.prefix}/" if self.prefix else ""
        return f"{checkpoints_of(AttemptId(self.job, self.rank, n))}{inner}"

    def manifest(self, ref: Ref) -> str:
        return f"{self._of(ref.n)}manifest.{ref.seq:06d}.json"

    def blob(self, n: int, digest: str) -> str:
        return f"{self._of(n)}blob.{digest}"

    def parse(self, key: str) -> Ref | tuple[int, str] | None:
        """A checkpoint, a blob as (attempt, digest), or None: a program's own object."""
        found = _FORM.match(key.removeprefix(self.folder)) if key.startswith(self.folder) else None
        if found is None or found[2] != (f"{self.prefix}/" if self.prefix else ""):
            return None
        n = int(found[1])
        return (n, found[3]) if found[3] else Ref(n, int(found[4]))
