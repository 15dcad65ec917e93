"""Who watches the output of which job, and until when: supervisors upload every half second for them, else every ten.

Not obvious because people follow a job before it is claimed: the ring comes before there is a supervisor to tell, so it
is kept and told at the launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from stado_like.job.keys import AttemptId
from stado_like.job.records import BellEvent
from stado_worker.holdings import Holding
from stado_worker.launcher import Launcher
from stado_worker.shim.attempt_dir import AttemptDir


def concerns(what: str, a: AttemptId) -> bool:
    """A bell event names a job, or one rank of it."""
    return what in (str(a.job), f"{a.job}.{a.rank:05d}")


class Followers:
    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def heard(self, what: str, until: float) -> None:
        """`until` is store time."""
        self._until[what] = until

    def tell(self, a: AttemptId, folder: AttemptDir) -> None:
        """For the supervisor of this attempt, in its folder."""
        until = max((until for what, until in self._until.items() if concerns(what, a)), default=0.0)
        if until:
            with suppress(OSError):  # a full disk: the log comes every ten seconds then
                folder.write_follow(until)

    def pass_on(self, event: BellEvent, holdings: Iterable[Holding], launcher: Launcher) -> None:
        """A stop or a follower: whatever it concerns looks now."""
        if event.kind == "follow":
            self.heard(event.what, event.until)
        for holding in holdings:
            if concerns(event.what, holding.a):
                self.tell(holding.a, holding.folder)
                launcher.nudge(holding.folder)

    def forget_old(self, now: float) -> None:
        self._until = {what: until for what, until in self._until.items() if until > now}
