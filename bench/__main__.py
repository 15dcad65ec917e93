"""`scripts/bench`: what is measured, in which order, and where it goes.

Every round takes every figure once, in turns, so that a machine that gets slower in the middle slows all of them.
A figure that cannot be taken is told with its reason and does not stop the others; the exit code is 2 then.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import orjson

from bench import commands, memory_and_requests, rates
from bench.cluster import NotMeasured
from bench.figures import Results, markdown
from stado_like.ambient import REAL
from stado_like.errors import StadoError

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / ".cache" / "bench"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, without S3: about a minute")
    parser.add_argument("--rounds", type=int, default=3, help="at least 3 for a median (default 3)")
    parser.add_argument("--jobs", type=int, help="jobs per rate (default 500, quick 150)")
    parser.add_argument("--out", type=Path, default=OUT, help="where the tables go")
    options = parser.parse_args(arguments)
    if not sys.platform.startswith("linux"):
        parser.error("the benchmark reads /proc and /dev/shm: it runs on Linux only")
    signal.signal(signal.SIGTERM, _end)
    began_s = REAL.boot_s()
    results = Results()
    options.out.mkdir(parents=True, exist_ok=True)
    on_disk = Path(tempfile.mkdtemp(prefix="work-", dir=options.out))
    in_memory = Path(tempfile.mkdtemp(prefix="stado-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        _measure(results, options, on_disk, in_memory)
    finally:
        shutil.rmtree(on_disk, ignore_errors=True)
        shutil.rmtree(in_memory, ignore_errors=True)
    text = markdown(results, _head(options, REAL.boot_s() - began_s))
    stem = "quick" if options.quick else "bench"
    (options.out / f"{stem}.md").write_text(text)
    told = {"head": _head(options, REAL.boot_s() - began_s), **results.as_json()}
    (options.out / f"{stem}.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    sys.stdout.write(text)
    sys.stdout.write(f"\nWritten to {options.out}/{stem}.md and {stem}.json\n")
    return 2 if results.missing else 0


def _measure(results: Results, options: argparse.Namespace, on_disk: Path, in_memory: Path) -> None:
    n = options.jobs or (150 if options.quick else 500)
    samples = 10 if options.quick else 30
    for i in range(options.rounds):
        memory, disk = in_memory / f"round-{i}", on_disk / f"round-{i}"
        memory.mkdir()
        disk.mkdir()
        _try(results, i, "floors", partial(rates.floors, results, memory, n, disk=False))
        _try(results, i, "embedded in memory", partial(rates.in_memory, results, memory, n, samples, options.quick))
        _try(results, i, "floors on disk", partial(rates.floors, results, disk, n, disk=True))
        _try(results, i, "embedded on disk", partial(rates.on_disk, results, disk, n))
        if i == 0 or not options.quick:  # sizes hardly vary from round to round
            _try(results, i, "memory", partial(memory_and_requests.resident, results, memory))
    times = 7 if options.quick else 20
    _try(results, 0, "commands", partial(commands.measure, results, in_memory / "commands", options.rounds, times))
    _try(results, 0, "requests", partial(memory_and_requests.requests, results, in_memory / "requests", 20))
    if not options.quick:
        _try(results, 0, "SeaweedFS", partial(rates.on_seaweedfs, results, on_disk / "s3", 100, options.rounds))


def _try(results: Results, i: int, what: str, step: Callable[[], None]) -> None:
    sys.stderr.write(f"round {i + 1}: {what}\n")
    try:
        step()
    except (NotMeasured, StadoError, OSError, subprocess.SubprocessError, RuntimeError) as why:
        results.missing[f"{what} (round {i + 1})"] = " ".join(str(why).split())[:500]
        sys.stderr.write(f"  not measured: {why}\n")


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def _head(options: argparse.Namespace, took_s: float) -> dict[str, str]:
    commit = ""
    with suppress(OSError, subprocess.SubprocessError):
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, timeout=10
        ).stdout.strip()
    load = "/".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "Date": datetime.fromtimestamp(REAL.wall_s(), UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Machine": f"{os.cpu_count()} cores {platform.machine()}, Linux {platform.release()}, load {load} at the end",
        "Versions": f"Python {platform.python_version()}, stado {commit or 'unknown'}",
        "Method": f"{options.rounds} rounds, in turns; medians; a ratio is the median of the rounds' ratios",
        "Took": f"{took_s:.0f} s",
    }


if __name__ == "__main__":
    sys.exit(main())
