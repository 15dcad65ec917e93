"""`scripts/sim`: run seeds on every core and print the table; or one seed with its trace."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult

from tests.sim.campaign import Tally, run_seed
from tests.sim.fleet import Fleet

BATCH = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds (default 100)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--minutes", type=float, help="go on for so many minutes, whatever --seeds says")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one seed and print its whole trace")
    parser.add_argument("--grep", default="", help="with --replay: only lines that hold this")
    asked = parser.parse_args()
    if asked.replay is not None:
        return replay(asked.replay, asked.grep)
    tally = run(asked.first, asked.seeds, asked.minutes)
    print("\n".join(tally.lines()))
    return 1 if tally.found else 0


def run(first: int, seeds: int, minutes: float | None) -> Tally:
    deadline_s = time.monotonic() + minutes * 60 if minutes else None
    whole = Tally()
    cores = os.cpu_count() or 1
    with multiprocessing.Pool(cores) as pool:
        under_way: deque[AsyncResult[Tally]] = deque()
        batches = _batches(first, None if deadline_s else seeds)
        while True:
            while len(under_way) < 2 * cores and (deadline_s is None or time.monotonic() < deadline_s):
                batch = next(batches, None)
                if batch is None:
                    break
                under_way.append(pool.apply_async(run_batch, (batch,)))
            if not under_way:
                return whole
            done = under_way.popleft().get()
            for seed, what in done.found.items():
                print(f"seed {seed}: {what.splitlines()[0]}", flush=True)
            whole.merge(done)
            if sys.stderr.isatty():
                print(f"\r{whole.seeds} seeds, {len(whole.found)} broke a rule ", end="", file=sys.stderr)


def _batches(first: int, count: int | None) -> Iterator[range]:
    at = first
    while count is None or at < first + count:
        last = at + BATCH if count is None else min(at + BATCH, first + count)
        yield range(at, last)
        at = last


def run_batch(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        run_seed(seed, tally)
    return tally


def replay(seed: int, wanted: str) -> int:
    fleet = Fleet(seed)
    fleet.world.trace = deque()
    broken = ""
    try:
        fleet.run()
    except AssertionError as found:
        broken = str(found).partition("\ntrace:")[0]
    finally:
        fleet.close()
    print(fleet.plan)
    for line in fleet.world.trace:
        if wanted in line:
            print(line)
    print(broken or "no rule was broken", f"(trace {fleet.world.fingerprint})")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
