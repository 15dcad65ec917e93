"""A census of Python's own standard-library sources, made for an array job: each task counts its share.

    stado run -J census -a 8 -- python3 examples/census.py
    stado job logs census | python3 examples/census.py --report

A task learns which share is its own from STADO_ARRAY_TASK_ID and STADO_ARRAY_SIZE, prints one line of JSON, and knows
nothing else of the queue: by itself it counts everything. `--report` adds such lines up; words before the JSON (the
rank that `job logs` puts there) are passed over.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

COUNTED = ("files", "lines", "functions", "classes")


def sources() -> list[Path]:
    """Every .py file of the standard library, in one order on all tasks; installed packages are not part of it."""
    top = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in top.rglob("*.py") if "site-packages" not in path.parts)


def count(rank: int, size: int) -> dict[str, object]:
    begun = time.perf_counter()
    found: dict[str, object] = {"rank": rank, **dict.fromkeys(COUNTED, 0), "unreadable": 0}
    numbers = dict.fromkeys((*COUNTED, "unreadable"), 0)
    longest = (0, "")
    for path in sources()[rank::size]:
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, ValueError):  # the library's own tests keep some broken files on purpose
            numbers["unreadable"] += 1
            continue
        numbers["files"] += 1
        numbers["lines"] += text.count("\n")
        longest = max(longest, (text.count("\n"), path.name))
        for node in ast.walk(tree):
            numbers["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            numbers["classes"] += isinstance(node, ast.ClassDef)
    found.update(numbers)
    found["longest"] = {"file": longest[1], "lines": longest[0]}
    found["seconds"] = round(time.perf_counter() - begun, 3)
    return found


def report(lines: Iterable[str]) -> int:
    rows: dict[int, dict[str, object]] = {}
    for line in lines:
        at = line.find("{")
        if at < 0:
            continue
        try:
            row = json.loads(line[at:])
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("rank"), int):
            rows[row["rank"]] = row  # the last attempt of a task is the one that counts
    if not rows:
        print("No line of a census was found.", file=sys.stderr)
        return 1
    titles = ("rank", *COUNTED, "seconds")
    print("".join(f"{title:>11}" for title in titles) + "  longest file")
    for rank in sorted(rows):
        row = rows[rank]
        longest = row["longest"]
        assert isinstance(longest, dict)
        print("".join(f"{row[title]!s:>11}" for title in titles) + f"  {longest['file']} ({longest['lines']})")
    total = [sum(float(str(row[title])) for row in rows.values()) for title in titles[1:]]
    print(f"{'all':>11}" + "".join(f"{number:>11.0f}" for number in total[:-1]) + f"{total[-1]:>11.3f}")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--report"]:
        return report(sys.stdin)
    warnings.simplefilter("ignore")  # old escapes in the library's own tests
    rank = int(os.environ.get("STADO_ARRAY_TASK_ID", "0"))
    size = int(os.environ.get("STADO_ARRAY_SIZE", "1"))
    print(json.dumps(count(rank, size)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
