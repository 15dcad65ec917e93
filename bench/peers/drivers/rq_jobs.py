"""What an RQ worker runs: functions, imported by name in a process forked for each job."""

from __future__ import annotations

import subprocess


def run(command: list[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode


def read(command: list[str]) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
