"""The network and the server of a campaign: a proxy that loses, repeats and delays what it is told to, and a SeaweedFS
that is killed and started again on its old ports and data."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.fault_proxy import Fault, FaultProxy, Seen
from tests.servers import Server, seaweedfs

CALM = Fault()
STORMS = ("replies lost", "503 storm", "slow", "duplicates", "all of it")


class LossyProxy(FaultProxy):
    """Passes everything while it is calm. In a storm each request has its chance of a fault; `counted` says of which
    kind there were how many."""

    def __init__(self, upstream: str, chance: random.Random) -> None:
        super().__init__(upstream)
        self._chance = chance
        self.storm = ""
        self.counted: Counter[str] = Counter()

    def take(self, seen: Seen, target: str) -> Fault | None:
        fault, kind = self._drawn()
        self.counted["requests"] += 1
        if kind:
            self.counted[kind] += 1
        return fault

    def _drawn(self) -> tuple[Fault, str]:
        storm, drawn = self.storm, self._chance.random()
        if not storm:
            return CALM, ""
        all_of_it = storm == "all of it"
        if (storm == "replies lost" and drawn < 0.25) or (all_of_it and drawn < 0.1):
            return Fault(drop_reply=True), "replies dropped after the request was carried out"
        if (storm == "503 storm" and drawn < 0.6) or (all_of_it and drawn < 0.25):
            return Fault(answer=503), "answered 503"
        if (storm == "duplicates" and drawn < 0.3) or (all_of_it and drawn < 0.35):
            return Fault(duplicate=True), "requests carried out twice"
        if (storm == "slow" and drawn < 0.4) or (all_of_it and drawn < 0.5):
            return Fault(delay_s=self._chance.uniform(0.2, 3.0)), "requests delayed"
        return CALM, ""


@contextmanager
def lossy_proxy(upstream: str, chance: random.Random) -> Iterator[LossyProxy]:
    proxy = LossyProxy(upstream, chance)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


class RestartableServer:
    """A SeaweedFS that may be killed at any moment. Started again it has the same command, so its ports and data."""

    def __init__(self, server: Server, log: Path) -> None:
        self.server = server
        first = psutil.Process(server.pid)
        self._command, self._environment = first.cmdline(), first.environ()
        self._log = log
        self._process = first
        self._child: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        self._process.kill()
        if self._child is not None:
            self._child.wait()

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
            )
        self._process = psutil.Process(self._child.pid)

    def suspend(self) -> None:
        self._process.suspend()

    def resume(self) -> None:
        self._process.resume()

    def answers(self) -> bool:
        """Whether it takes requests again."""
        import botocore.exceptions

        try:
            self.server.client().list_buckets()
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            return False
        return True

    def close(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGCONT)
            self._child.kill()
            self._child.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@contextmanager
def restartable_seaweedfs(folder: Path) -> Iterator[RestartableServer]:
    with seaweedfs(folder) as server:
        made = RestartableServer(server, folder.parent / f"{folder.name}.again.log")
        try:
            yield made
        finally:
            made.close()


class SmallDisk:
    """A disk of its own that can be full: a tmpfs, which only root may mount. `usable` is False elsewhere."""

    SIZE_MIB = 160

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self.usable = os.geteuid() == 0 and self._mount() == 0
        self._filler = place / "filler"

    def _mount(self) -> int:
        command = ["mount", "-t", "tmpfs", "-o", f"size={self.SIZE_MIB}m", "stado-chaos", str(self.place)]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode

    def fill(self) -> None:
        """To the last byte: what is freed meanwhile (a log, a folder) is room again."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:  # until it is full
            while True:
                file.write(bytes(1 << 16))

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        deadline_s = time.monotonic() + 10
        while self.usable and time.monotonic() < deadline_s:
            if subprocess.run(["umount", str(self.place)], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
            time.sleep(0.1)  # the last of its processes is still going
        if self.usable:
            subprocess.run(["umount", "-l", str(self.place)], check=False)
