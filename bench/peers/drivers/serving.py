"""The driver's end of the pipe: one JSON object a line in, one out. Standard library only, for any Python
>= 3.11.

A driver starts its peer, says `ready`, and carries out `singles`, `array`, `start`, `daemons` until its input ends.
What a peer prints goes to standard error, so answers have a descriptor of their own.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

TRUE = "/bin/true"
CLOCK = ["/bin/date", "+%s%N"]  # reads the clock within half a millisecond of its exec, and prints nanoseconds
SLOTS = 2
POLL_S = 0.002


class Unavailable(Exception):
    """The peer cannot run here; the text says why, and what would help."""


class Peer(Protocol):
    """One peer, started. `singles` and `array` return when all `n` are known to have ended well."""

    versions: Mapping[str, str]

    def singles(self, n: int) -> None: ...
    def array(self, n: int) -> None: ...

    def clock(self, i: int) -> str:
        """What `CLOCK` printed as a job of its own."""

    def daemons(self) -> Mapping[str, Any]:
        """`pids` of what stays resident, whose children count too; `minus_mib`: what of it is this driver itself."""

    def stop(self) -> None: ...


def serve(start: Callable[[Path], Peer]) -> None:
    """`argv`: the folder to work in. Raises nothing: what goes wrong is an answer."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    peer: Peer | None = None
    try:
        peer = start(place)
        _say(answers, ready=dict(peer.versions))
        for line in sys.stdin:
            asked = json.loads(line)
            _say(answers, **_answer(peer, asked["do"], int(asked.get("n", 0))))
    except (Unavailable, ImportError) as why:
        _say(answers, unavailable=f"{why}")
    except Exception as why:
        _say(answers, failed=f"{type(why).__name__}: {why}")
    finally:
        if peer is not None:
            peer.stop()


def _say(answers: Any, **what: Any) -> None:
    answers.write(json.dumps(what) + "\n")


def _answer(peer: Peer, do: str, n: int) -> dict[str, Any]:
    try:
        if do == "daemons":
            return {"value": dict(peer.daemons())}
        if do == "start":
            before_ns = time.time_ns()
            return {"value": (int(peer.clock(n).strip()) - before_ns) / 1e6}
        began_s = time.monotonic()
        {"singles": peer.singles, "array": peer.array}[do](n)
        return {"value": n / (time.monotonic() - began_s)}
    except Exception as why:
        return {"failed": f"{type(why).__name__}: {why}"}


def until(holds: Callable[[], bool], within_s: float, what: str, poll_s: float = POLL_S) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what}: not within {within_s:g} s")
        time.sleep(poll_s)


def program(name: str, package: str) -> str:
    """Where `name` is. Raises `Unavailable` naming the Debian package."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        raise Unavailable(f"{name} is not installed; Debian: apt install {package}")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spawn(command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A daemon of the peer, in the foreground: it dies with this driver."""
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
            cwd=log.parent,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
        )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def end(*processes: subprocess.Popen[bytes], within_s: float = 8.0) -> None:
    """TERM one after the other, in this order; KILL what does not go."""
    for process in processes:
        process.terminate()
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(command: Sequence[str]) -> str:
    """The first line that a command prints."""
    out = subprocess.run(list(command), capture_output=True, text=True, timeout=20).stdout
    return (out.strip().splitlines() or ["?"])[0]
