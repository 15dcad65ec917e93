"""A Redis of its own for Celery and RQ, with or without an append-only file synced at every write."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from serving import end, free_port, program, said, spawn, until


@dataclass
class Redis:
    port: int
    process: subprocess.Popen[bytes]
    version: str

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def stop(self) -> None:
        end(self.process)


def start(place: Path, *, synced: bool) -> Redis:
    """`synced`: `appendonly yes, appendfsync always`, so that what was acknowledged survives a power cut; else nothing
    is kept on disk."""
    binary = program("redis-server", "redis-server")
    port, folder = free_port(), place / "redis"
    folder.mkdir()
    command = [binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always"] if synced else ["--appendonly", "no"]
    process = spawn(command, place / "redis.log")
    until(lambda: _answers(port), 10.0, "redis-server did not answer", poll_s=0.02)
    words = dict(one.split("=", 1) for one in said([binary, "--version"]).split() if "=" in one)
    return Redis(port, process, words.get("v", "?"))


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as one:
            one.sendall(b"PING\r\n")
            return one.recv(16).startswith(b"+PONG")
    except OSError:
        return False
