"""How long a task has between its stop signal and SIGKILL on this machine: as the machine was told, else as the cluster
says, read at each sweep. What cannot be read changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from stado_like.bucket import cluster
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job.cluster import Cluster


class Graces:
    def __init__(
        self, bucket: Bucket, given_s: int | None, most_given_s: int | None, log: Callable[[str], None]
    ) -> None:
        """`given_s`, `most_given_s`: what this machine itself was told, None where nothing."""
        self._bucket = bucket
        self._given_s = given_s
        self._most_given_s = most_given_s
        self._log = log
        self._complaint = ""
        self.grace_s, self.most_grace_s = Cluster().graces(given_s, most_given_s)

    def sweep(self) -> None:
        """Raises `StoreUnavailable`."""
        try:
            said = cluster.read(self._bucket)
        except BadRecord as bad:
            if bad.message != self._complaint:
                self._log(bad.message)
            self._complaint = bad.message
            return
        self._complaint = ""
        self.grace_s, self.most_grace_s = said.graces(self._given_s, self._most_given_s)
