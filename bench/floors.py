"""The floors: the least that starting a process, or writing a file, costs on this machine, right now.

Run as a process of its own (`python -m bench.floors KIND N [DIR]`), so that what is forked is as small as it can be
and no child of the benchmark is waited for by mistake. Prints one number: processes, or files, per second.

    spawn    posix_spawn of /bin/true, two at a time
    popen    subprocess.Popen with a session of its own and its output in a file of its own, two at a time
    fork     fork of a Python process that has loaded a supervisor's modules; the child only exits
    files    create (written, closed) and unlink of a small file
    synced   the same, with the file and its directory synced before the unlink
"""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stado_like.ambient import REAL

SLOTS = 2
TRUE = "/bin/true"
BODY = b"x" * 300


def _two_at_a_time(n: int, start: Callable[[int], object]) -> None:
    running = 0
    for i in range(n):
        if running == SLOTS:
            os.waitpid(-1, 0)
            running -= 1
        start(i)
        running += 1
    while running:
        os.waitpid(-1, 0)
        running -= 1


def spawn(n: int, _folder: Path) -> None:
    _two_at_a_time(n, lambda _: os.posix_spawn(TRUE, [TRUE], os.environ))


def popen(n: int, folder: Path) -> None:
    kept = []

    def start(i: int) -> None:
        with (folder / f"log.{i}").open("wb") as log:
            kept.append(
                subprocess.Popen([TRUE], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            )

    _two_at_a_time(n, start)
    for process in kept:
        process.returncode = 0  # collected above, by pid: its own wait would find nobody


def fork(n: int, _folder: Path) -> None:
    def start(_i: int) -> None:
        if os.fork() == 0:
            os._exit(0)

    _two_at_a_time(n, start)


def files(n: int, folder: Path, sync: bool = False) -> None:
    directory = os.open(folder, os.O_RDONLY)
    for i in range(n):
        name = folder / f"file.{i}"
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, BODY)
        if sync:
            os.fsync(descriptor)
        os.close(descriptor)
        if sync:
            os.fsync(directory)
        os.unlink(name)
    os.close(directory)


def synced(n: int, folder: Path) -> None:
    files(n, folder, sync=True)


def main(kind: str, n: int, folder: Path) -> None:
    if kind == "fork":
        importlib.import_module("stado_worker.shim.supervise")
        gc.collect()
        gc.freeze()
    run = {"spawn": spawn, "popen": popen, "fork": fork, "files": files, "synced": synced}[kind]
    began_s = REAL.boot_s()
    run(n, folder)
    sys.stdout.write(f"{n / (REAL.boot_s() - began_s)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
