"""Walking a bucket from its first key to its last, and judging keys as such: who does not belong here, and what cannot
lie side by side in a directory.

A foreign key may hold anything, control characters too, so it is always shown quoted. Rooms that hold data of jobs are
passed over a job at a time: one listing tells that a job has data, whether it is one object or a million. What programs
name their own files below a job's folder is their affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, UsageError
from stado_like.fsck.finding import Finding, found
from stado_like.job.day_keys import DAYS, parse_day_part
from stado_like.job.keys import BUNDLES, WORKSPACES, JobId, parse_bundle, parse_workspace
from stado_like.job.records import MOST_BYTES
from stado_like.store.key_shape import check_written
from stado_like.store.protocol import Row, list_all

INDEXED = ("queued/open/", "queued/held/", "queued/later/", "running/", "open/", "cancels/", "deleted/", "inbox/")
OF_JOBS = ("jobs/", "status/")
DATA = ("checkpoints/", "gangs/", "logs/", "outputs/")
SMALL = ("config/", "instances/", "queue/", "schedules/", "state/", "workers/")
LARGE = ("billing/", "bundles/", "days/", "drives/", "fired/")
ROOMS = tuple(sorted((*INDEXED, *OF_JOBS, *DATA, *SMALL, *LARGE, "capacity/")))
BEHIND = "0"
"""Follows "/": `room0` sorts behind everything in `room/`."""


@dataclass(slots=True)
class Walk:
    """The rows of a bucket, room by room, judged on the way. `objects` counts them."""

    bucket: Bucket
    tell: Callable[[], None]
    findings: list[Finding] = field(default_factory=list)
    objects: int = 0

    def rows(self, prefix: str, *, start_after: str = "") -> Iterator[Row]:
        """Every row of a prefix whose key could be ours. Raises `StoreUnavailable`."""
        above: list[str] = []
        for row in list_all(self.bucket.store, prefix, start_after=start_after):
            self.objects += 1
            self.tell()
            if self._belongs(row, above):
                yield row

    def _belongs(self, row: Row, above: list[str]) -> bool:
        while above and not row.key.startswith(above[-1]):
            above.pop()
        for key in above:
            if row.key[len(key) :].startswith("/"):
                self._find("folder-is-a-key", key, f"{key!r} is an object, and the folder of {row.key!r}")
        above.append(row.key)
        try:
            check_written(row.key)
        except UsageError as wrong:
            self._find("foreign-key", row.key, wrong.message)
            return False
        return True

    def judge_size(self, row: Row) -> None:
        if row.size_bytes > MOST_BYTES:
            self._find("record-large", row.key, f"a record of {row.size_bytes} bytes; {MOST_BYTES} is the most")

    def foreign(self, key: str, why: str) -> None:
        self._find("foreign-key", key, why)

    def parsed(self, prefix: str, keep: Callable[[Row], None]) -> None:
        """Hand every row to `keep`; one that it cannot parse is foreign."""
        for row in self.rows(prefix):
            self.judge_size(row)
            try:
                keep(row)
            except BadRecord as bad:
                self.foreign(row.key, bad.message)

    def jobs_with_data(self, room: str) -> Iterator[tuple[str, JobId]]:
        """The jobs of which `room` holds anything, in order of their folders: at most one listing each."""
        start_after = ""
        while True:
            page = self.bucket.store.list(room, start_after=start_after)
            last = ""
            for row in page.rows:
                folder = "/".join(row.key[len(room) :].split("/")[:2])
                if folder == last:
                    continue
                last = folder
                self.objects += 1
                self.tell()
                j = self._owner(room, folder, row)
                if j is not None:
                    yield folder, j
            if not page.more or not page.rows:
                return
            # Past the rest of the job that the page ends in; a foreign name is passed by its own key.
            start_after = max(page.rows[-1].key, f"{room}{last}{BEHIND}")

    def _owner(self, room: str, folder: str, row: Row) -> JobId | None:
        workspace, _, rest = folder.partition("/")
        try:
            if row.key.count("/") < 3:
                raise BadRecord(f"{row.key!r} is no key of a job's {room.rstrip('/')}")
            return JobId.parse(f"{workspace}.{rest}")
        except BadRecord as bad:
            self.foreign(row.key, bad.message)
            return None

    def rest(self, *, every: bool) -> Iterator[Row]:
        """The rooms that no job is found by, the large ones only when asked."""
        for room in (*SMALL, *LARGE) if every else SMALL:
            for row in self.rows(room):
                if row.key.startswith(WORKSPACES):
                    self._parse(row.key, parse_workspace)
                elif room == BUNDLES:  # one that no job names is no finding: whoever collects waits a week
                    self._parse(row.key, parse_bundle)
                elif room == DAYS:
                    self._parse(row.key, parse_day_part)
                yield row

    def _parse(self, key: str, parse: Callable[[str], object]) -> None:
        try:
            parse(key)
        except BadRecord as bad:
            self.foreign(key, bad.message)

    def strangers(self) -> None:
        """Keys outside of every room: one listing of each gap between two rooms that holds any."""
        start_after = ""
        while True:
            page = self.bucket.store.list("", start_after=start_after, limit=100)
            hop = ""
            for row in page.rows:
                room = next((one for one in ROOMS if row.key.startswith(one)), "")
                if room:
                    hop = room[:-1] + BEHIND
                    break
                self.objects += 1
                if row.key not in {one.key for one in self.findings}:
                    self.foreign(row.key, f"{row.key!r} belongs to no room of this bucket")
            if hop:
                start_after = hop
            elif not page.more or not page.rows:
                return
            else:
                start_after = page.rows[-1].key

    def _find(self, code: str, key: str, sentence: str) -> None:
        self.findings.append(found(code, key, sentence))
