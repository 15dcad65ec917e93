"""GNU parallel: no queue and no daemon, so a list of commands on its input is all it has. It writes a job log.

`singles` is one run of parallel for each job, two at a time through its own `sem`: what scripts do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serving import CLOCK, SLOTS, TRUE, program, said, serve


class Parallel:
    def __init__(self, place: Path) -> None:
        self._parallel, self._place = program("parallel", "parallel"), place
        self.versions = {"GNU parallel": said([self._parallel, "--version"]).split()[-1]}

    def _run(self, arguments: list[str], text: str = "") -> str:
        log = self._place / "joblog"
        log.unlink(missing_ok=True)
        command = [self._parallel, "--will-cite", f"-j{SLOTS}", "--joblog", str(log), *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=300).stdout

    def singles(self, n: int) -> None:
        semaphore = [self._parallel, "--will-cite", "--semaphore", "--id", f"bench-{self._place.parent.name}"]
        for _ in range(n):
            subprocess.run([*semaphore, f"-j{SLOTS}", TRUE], check=True, timeout=60)
        subprocess.run([*semaphore, "--wait"], check=True, timeout=60)

    def array(self, n: int) -> None:
        self._run(["-n0", TRUE], "\n".join(map(str, range(n))) + "\n")
        done = (self._place / "joblog").read_text().splitlines()[1:]
        if len(done) != n:
            raise RuntimeError(f"{len(done)} of {n} commands are in its log")

    def clock(self, i: int) -> str:
        return self._run(["-n0", *CLOCK], "1\n")

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": []}

    def stop(self) -> None:
        """Nothing stays."""


if __name__ == "__main__":
    serve(Parallel)
