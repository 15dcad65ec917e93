"""A Slurm of one node on loopback: munged, slurmctld and slurmd of its own, in the foreground, ended with this driver.

Settings are those of Slurm's guide to high throughput: no accounting, no gathering, errors only in the logs, no delay
of batch starts; output to /dev/null. `singles` is one `sbatch` for each job.
"""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serving import CLOCK, SLOTS, end, free_port, program, said, serve, spawn, until

POLL_S = 0.05
WITHIN_S = 180.0
CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={daemon_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
SlurmctldDebug=error
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MinJobAge=300
MaxJobCount=20000
MaxArraySize=10001
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class Slurm:
    def __init__(self, place: Path) -> None:
        munged = program("munged", "slurm-wlm")
        controller, daemon = program("slurmctld", "slurm-wlm"), program("slurmd", "slurm-wlm")
        self._sbatch, self._squeue = program("sbatch", "slurm-wlm"), program("squeue", "slurm-wlm")
        self.versions: dict[str, str] = {}
        self._place, self._processes = place, list[subprocess.Popen[bytes]]()
        for name in ("munge", "state", "spool"):
            (place / name).mkdir()
        self._open_folders_above(place)
        config = place / "slurm.conf"
        config.write_text(
            CONFIG.format(
                host=socket.gethostname().split(".")[0],
                controller_port=free_port(),
                daemon_port=free_port(),
                user=getpass.getuser(),
                place=place,
                slots=SLOTS,
            )
        )
        os.environ["SLURM_CONF"] = str(config)
        self.versions["Slurm"] = said([self._sbatch, "--version"]).split()[-1]
        try:
            self._start(munged, controller, daemon, config)
        except BaseException:
            self.stop()
            raise

    def _open_folders_above(self, place: Path) -> None:
        """munged refuses a socket that others cannot reach; it looks at every folder above."""
        for folder in (place / "munge", place):
            folder.chmod(0o755)

    def _start(self, munged: str, controller: str, daemon: str, config: Path) -> None:
        munge = self._place / "munge"
        key = munge / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = [f"--{what}={munge}/{name}" for what, name in MUNGE_FILES.items()]
        self._processes.append(spawn([munged, "--foreground", "--force", *files], self._place / "munged.out"))
        until((munge / "socket").exists, 10.0, "munged made no socket", POLL_S)
        self._processes.append(spawn([controller, "-D", "-c", "-f", str(config)], self._place / "slurmctld.out"))
        until(lambda: "UP" in self._ping(), 20.0, "slurmctld did not answer", POLL_S)
        self._processes.append(spawn([daemon, "-D", "-f", str(config)], self._place / "slurmd.out"))
        until(lambda: "idle" in self._nodes(), 30.0, "slurmd's node did not become idle", POLL_S)

    def _ping(self) -> str:
        return _out([program("scontrol", "slurm-wlm"), "ping"])

    def _nodes(self) -> str:
        return _out([program("sinfo", "slurm-wlm"), "-h", "-o", "%T"])

    def singles(self, n: int) -> None:
        for _ in range(n):
            self._submit(["--wrap", "/bin/true"])
        self._wait()

    def array(self, n: int) -> None:
        self._submit([f"--array=0-{n - 1}", "--wrap", "/bin/true"])
        self._wait()

    def _submit(self, arguments: list[str], out: str = "/dev/null") -> None:
        command = [self._sbatch, "--parsable", "-n1", "-o", out, "-e", "/dev/null", "-D", str(self._place), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=30)

    def _wait(self) -> None:
        until(lambda: not _out([self._squeue, "-h"]).strip(), WITHIN_S, "Slurm's queue did not become empty", POLL_S)
        bad = _out([self._squeue, "-h", "-t", "F,NF,TO,CA,OOM,BF", "-o", "%i"]).split()
        if bad:
            raise RuntimeError(f"{len(bad)} of Slurm's jobs did not end well, the first is {bad[0]}")

    def clock(self, i: int) -> str:
        out = self._place / f"clock.{i}"
        self._submit(["--wrap", " ".join(CLOCK)], str(out))
        self._wait()
        return out.read_text()

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": [process.pid for process in self._processes]}

    def stop(self) -> None:
        end(*reversed(self._processes))


MUNGE_FILES = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def _out(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return ran.stdout


if __name__ == "__main__":
    serve(Slurm)
