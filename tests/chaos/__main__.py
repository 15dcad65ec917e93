"""`scripts/chaos`: a campaign of real processes, then its table. Exit code 1 when a rule was broken."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from tests.chaos.campaign import Plan, run
from tests.chaos.checker import check
from tests.chaos.table import markdown
from tests.servers import CREDENTIALS


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long there is trouble (default 5)")
    parser.add_argument("--store", choices=("seaweedfs", "dir"), default="seaweedfs", help="default seaweedfs")
    parser.add_argument("--seed", type=int, help="which faults, in which order (default: drawn from the clock)")
    parser.add_argument("--keep", type=Path, help="a folder for the logs of all processes and the effect log")
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000
    os.environ.update(CREDENTIALS)
    signal.signal(signal.SIGTERM, _end)
    print(f"chaos: {asked.minutes:g} minutes on {asked.store}, seed {seed}", file=sys.stderr, flush=True)
    plan = Plan(minutes=asked.minutes, store=asked.store, seed=seed)
    history = run(plan, lambda line: print(line, file=sys.stderr, flush=True), asked.keep)
    print(f"`scripts/chaos --minutes {asked.minutes:g} --store {asked.store} --seed {seed}`\n")
    print(markdown(history), flush=True)
    return 1 if any(check(history).values()) else 0


def _end(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C does: what was started is ended on the way out."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
