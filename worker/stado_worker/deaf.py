"""Supervisors that do not hear that their attempt is over: stopped, hung, or without a connection of their own.

A supervisor whose attempt was ended by another finds that out before its next heartbeat and kills its tree. One that
does not would run beside the attempt that follows. So at each sweep the agent asks for the ends of what runs here, and
kills what still runs some seconds after it was told. One that reports an end of its own (`exit.json`) is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_worker.holdings import Holding, Phase
from stado_worker.launcher import Launcher

HEARS_WITHIN_S = 5.0


def kill_the_deaf(
    bucket: Bucket, holdings: Iterable[Holding], launcher: Launcher, now_s: float, log: Callable[[str], None]
) -> None:
    """One HEAD per running attempt. Raises `StoreUnavailable`."""
    running = [one for one in holdings if one.phase is Phase.RUNNING]
    if not running:
        return
    for holding, over in zip(running, bucket.present(*(keys.end(one.a) for one in running)), strict=True):
        reports = (holding.folder.path / "exit.json").exists()
        if not over or reports or not holding.folder.is_alive():
            holding.told_over_s = None
        elif holding.told_over_s is None:
            holding.told_over_s = now_s
            launcher.nudge(holding.folder)
        elif now_s - holding.told_over_s >= HEARS_WITHIN_S:
            log(f"{holding.a}: ended by others, and its supervisor does not hear it: killed")
            holding.stuck = launcher.remove_remains(holding.folder)
