"""One who only reads, past the lossy network: every end record as it was first seen, whether its bytes ever change,
which jobs and tombstones there were, and when. Deleted jobs leave no other trace."""

from __future__ import annotations

import threading
import time

from stado_like.bucket.bucket import Bucket
from stado_like.errors import StoreError
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Final
from stado_like.job.states import JobState
from stado_like.store.protocol import Row, list_all
from tests.chaos.history import EndSeen, History

EVERY_S = 1.0
DECIDED = ("verdict.json", "final.json", "stop.json")


class Watcher(threading.Thread):
    def __init__(self, bucket: Bucket, history: History) -> None:
        super().__init__(name="watcher", daemon=True)
        self._bucket = bucket
        self._history = history
        self._etags: dict[str, str] = {}
        self._bodies: dict[str, bytes] = {}
        self._leaving = threading.Event()
        self.looks = 0

    def leave(self) -> None:
        self._leaving.set()
        self.join(30)

    def run(self) -> None:
        while not self._leaving.wait(EVERY_S):
            try:
                self.look()
            except StoreError:
                continue  # the server is away, too

    def look(self) -> None:
        """Raises `StoreUnavailable`."""
        standing = set()
        for row in list_all(self._bucket.store, keys.JOBS):
            standing.add(keys.parse_job(row.key))
            self._once(row)
        self._history.jobs_seen |= standing
        for row in list_all(self._bucket.store, keys.DELETED):
            self._history.buried_at.setdefault(keys.parse_tombstone(row.key), time.time())
        for row in list_all(self._bucket.store, keys.STATUS):
            name = row.key.rsplit("/", 1)[1]
            if name.startswith("end."):
                self._end(row)
            elif name in DECIDED:
                self._once(row)
        self._history.standing = standing
        self._states()
        self.looks += 1

    def _changed(self, row: Row) -> bytes | None:
        """The body, when the row tells of one that was not read yet."""
        if self._etags.get(row.key) == row.etag:
            return None
        found = self._bucket.store.get(row.key)
        if found is None:
            return None
        self._etags[row.key] = row.etag
        return found.body

    def _end(self, row: Row) -> None:
        body = self._changed(row)
        if body is None:
            return
        a = attempt_of(row.key)
        seen = self._history.ends.get(a)
        if seen is None:
            end = codec.decode(End, body, row.key)
            self._history.ends[a] = EndSeen(end, body, time.time())
        elif body != seen.body:
            seen.others.append(body)

    def _once(self, row: Row) -> None:
        body = self._changed(row)
        if body is None:
            return
        if self._bodies.setdefault(row.key, body) != body and not self._is_of_a_buried_job(row.key):
            self._history.rewritten.append(row.key)
        if row.key.endswith("/final.json"):
            self._history.finals[job_of(row.key)] = codec.decode(Final, body, row.key).state

    def _is_of_a_buried_job(self, key: str) -> bool:
        """Whoever uses a name again creates the old job's key, and takes it away once the tombstone was seen."""
        return key.startswith(keys.JOBS) and any(self._bucket.present(keys.tombstone(keys.parse_job(key))))

    def _states(self) -> None:
        """For the people, who keep so many jobs open and no more."""
        finals = {(a.job, a.rank): seen.end for a, seen in self._history.ends.items() if seen.end.is_final}
        for one in self._history.acknowledged:
            if one.state is not None or one.id is None:
                continue
            if one.several:
                one.state = self._history.finals.get(one.id)
            elif (one.id, 0) in finals:
                one.state = state_of(finals[one.id, 0])


def state_of(end: End) -> JobState:
    """What a one-task job has become by its final end."""
    return {"Completed": JobState.COMPLETED, "Cancelled": JobState.CANCELLED}.get(end.state.value, JobState.FAILED)


def job_of(key: str) -> JobId:
    _, workspace, named, _ = key.split("/", 3)
    return JobId.parse(f"{workspace}.{named}")


def attempt_of(key: str) -> AttemptId:
    j = job_of(key)
    status = keys.parse_status(j, key)
    return AttemptId(j, status.rank, status.n)
