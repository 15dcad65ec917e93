"""A ring all-reduce over sockets, as distributed training does it: every rank adds its number and learns the sum.

    stado submit --gang -N 4 --checkpoint-dir kept -- python3 ring.py 20

Rank 0 listens at MASTER_ADDR:MASTER_PORT and tells everybody where each rank's left ear is. The round that was reached
is kept in STADO_CHECKPOINT_DIR, so a gang that is restarted or preempted goes on from it. Arguments: how many rounds,
and how many seconds each of them takes.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import TextIO

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def lines(connection: socket.socket) -> TextIO:
    return connection.makefile("rw", encoding="utf-8")


def say(file: TextIO, value: object) -> None:
    print(json.dumps(value), file=file, flush=True)


def reached(master: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(master)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def meet(port: int) -> list[tuple[str, int]]:
    """Where every rank listens, ourselves at `port`."""
    if RANK:
        connection = reached(MASTER)
        hub = lines(connection)
        say(hub, {"rank": RANK, "at": (connection.getsockname()[0], port)})
        return [tuple(one) for one in json.loads(hub.readline())]
    where = {0: (MASTER[0], port)}
    with socket.create_server(MASTER) as server:
        members = [lines(server.accept()[0]) for _ in range(WORLD - 1)]
    for member in members:
        said = json.loads(member.readline())
        where[said["rank"]] = said["at"]
    everybody = [where[rank] for rank in range(WORLD)]
    for member in members:
        say(member, everybody)
    return everybody


def ring() -> tuple[TextIO, TextIO]:
    ear = socket.create_server(("", 0))
    where = meet(ear.getsockname()[1])
    right = lines(socket.create_connection(tuple(where[(RANK + 1) % WORLD])))
    return lines(ear.accept()[0]), right


def all_reduce(left: TextIO, right: TextIO, number: int) -> int:
    total = passing = number
    for _ in range(WORLD - 1):
        say(right, passing)
        passing = json.loads(left.readline())
        total += passing
    return total


def main(rounds: int, round_s: float) -> None:
    kept = Path(os.environ.get("STADO_CHECKPOINT_DIR", "."), f"round.{RANK}")
    left, right = ring()
    done = int(kept.read_text()) if kept.exists() else 0
    first = all_reduce(left, right, done) // WORLD  # all go on from one round, whoever was stopped in between
    print(f"attempt {os.environ['STADO_ATTEMPT']} begins at round {first}", flush=True)
    total = 0
    for n in range(first, rounds):
        total = all_reduce(left, right, (RANK + 1) * (n + 1))
        fresh = kept.with_suffix(".new")
        fresh.write_text(str(n + 1))
        fresh.replace(kept)
        time.sleep(round_s)
    print(f"sum {total}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
