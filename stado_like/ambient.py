"""The only door to clock, randomness, pid and host name.

Everything that would make two runs of the same code differ comes through one `Ambient`, so that the
simulator can drive the real loops: it hands in its own. No other module of the library asks the operating system
for the time or for a random number.
"""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path
from typing import Protocol


class Ambient(Protocol):
    """What a process knows of itself and of time, without asking the store."""

    @property
    def pid(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def boot_id(self) -> str: ...

    def boot_s(self) -> float:
        """Seconds on a clock that never jumps and counts suspend. Its zero means nothing."""
        ...

    def wall_s(self) -> float:
        """This machine's own idea of UTC, seconds. Never compared with a store's time; shown to people only."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def token(self) -> str:
        """A fresh random nonce: 16 hexadecimal digits."""
        ...

    def uniform(self, low: float, high: float) -> float: ...


def _boot_clock() -> int:
    """CLOCK_BOOTTIME counts suspend on Linux; macOS's CLOCK_MONOTONIC (mach_continuous_time) does there."""
    return getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_boot_id() -> str:
    """A name for this boot of this machine; another after a reboot. Empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class RealAmbient:
    """The machine this process runs on. Forked children share the class but ask for their own pid each time."""

    def __init__(self) -> None:
        self._clock = _boot_clock()
        self._random = random.SystemRandom()
        self._boot_id: str | None = None

    @property
    def pid(self) -> int:
        return os.getpid()

    @property
    def host(self) -> str:
        return socket.gethostname()

    @property
    def boot_id(self) -> str:
        if self._boot_id is None:
            self._boot_id = read_boot_id()
        return self._boot_id

    def boot_s(self) -> float:
        return time.clock_gettime(self._clock)

    def wall_s(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def token(self) -> str:
        return os.urandom(8).hex()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


REAL: Ambient = RealAmbient()
