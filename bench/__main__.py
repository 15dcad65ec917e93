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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import orjson

from bench import check, report
from bench.figures import Results
from bench.rounds import Run
from stado_like.ambient import REAL

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / ".cache" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, _end)
    began_s, load_before = REAL.boot_s(), os.getloadavg()[0]
    options.out.mkdir(parents=True, exist_ok=True)
    with _places(options.out) as (on_disk, in_memory):
        if options.check:
            return check.main(in_memory, options.bounds)
        run = Run(Results(), on_disk, in_memory, OUT, rounds=options.rounds, quick=options.quick, only=options.peers)
        run.measure()
    head = _head(options, run.results, load_before, REAL.boot_s() - began_s)
    _write(options, run.results, head)
    return 2 if run.results.missing else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, without S3 and the slow peers: about a minute")
    parser.add_argument("--check", action="store_true", help="hold ratios and request counts to the stored bounds")
    parser.add_argument("--bounds", type=Path, default=check.BOUNDS, help="the bounds of --check")
    parser.add_argument(
        "--publish", action="store_true", help="write docs/benchmarks.md and its pictures from this run"
    )
    parser.add_argument("--rounds", type=int, default=3, help="at least 3 for a median (default 3)")
    parser.add_argument("--peers", help="only these peers, by name, separated by commas; 'none' for none")
    parser.add_argument("--out", type=Path, default=OUT, help="where the tables go")
    options = parser.parse_args(arguments)
    if not sys.platform.startswith("linux"):
        parser.error("the benchmark reads /proc and /dev/shm: it runs on Linux only")
    if options.publish and (options.quick or options.peers or options.rounds < 3):
        parser.error("--publish is of a whole run: without --quick and --peers, of at least 3 rounds")
    return options


@contextmanager
def _places(out: Path) -> Iterator[tuple[Path, Path]]:
    on_disk = Path(tempfile.mkdtemp(prefix="work-", dir=out))
    in_memory = Path(tempfile.mkdtemp(prefix="stado-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield on_disk, in_memory
    finally:
        shutil.rmtree(on_disk, ignore_errors=True)
        shutil.rmtree(in_memory, ignore_errors=True)


def _write(options: argparse.Namespace, results: Results, head: dict[str, str]) -> None:
    stem = "quick" if options.quick else "bench"
    told = orjson.dumps({"head": head, **results.as_json()}, option=orjson.OPT_INDENT_2)
    pictures = report.pictures(results)
    _leave(options.out, stem, report.markdown(results, head), told, {})
    if options.publish:
        _leave(PAGE.parent, PAGE.stem, report.markdown(results, head, PAGE.stem), None, {})
        _leave(PAGE.parent / PAGE.stem, "figures", None, told, pictures)
    sys.stdout.write((options.out / f"{stem}.md").read_text())
    where = PAGE if options.publish else options.out / f"{stem}.md and {stem}.json"
    sys.stdout.write(f"\nWritten to {where}\n")


def _leave(folder: Path, stem: str, page: str | None, told: bytes | None, pictures: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if page is not None:
        (folder / f"{stem}.md").write_text(page)
    if told is not None:
        (folder / f"{stem}.json").write_bytes(told)
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_text(picture)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def _head(options: argparse.Namespace, results: Results, load_before: float, took_s: float) -> dict[str, str]:
    commit = ""
    with suppress(OSError, subprocess.SubprocessError):
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, timeout=10
        ).stdout.strip()
    peers = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    return {
        "Date": datetime.fromtimestamp(REAL.wall_s(), UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Machine": f"{os.cpu_count()} cores {platform.machine()}, Linux {platform.release()}",
        "Load before": f"{load_before:.1f} (above 0.5 other work was in the way: read the ratios only)",
        "Versions": f"Python {platform.python_version()}, stado {commit or 'unknown'}",
        "Peers": peers or "none",
        "Run": f"{'quick, smaller than the bounds say' if options.quick else 'whole'}, {options.rounds} rounds",
        "Took": f"{took_s:.0f} s",
    }


if __name__ == "__main__":
    sys.exit(main())
