"""A process that was made ready for it starts commands by `posix_spawn`: what they get, and what is said where they
cannot start, is what `subprocess` gives and says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stado_worker.shim.cgroup import AttemptGroup, group_name

C_LIBRARYS_OWN = 0x180000000
"""32 and 33, which glibc uses itself: its posix_spawn leaves them ignored, and every program sets them anew."""
RUN = """
import json, os, signal, socket, sys
from pathlib import Path
from stado_worker.shim import forking, process
from stado_worker.shim.cgroup import AttemptGroup, group_name

place = Path(sys.argv[1])
ready = sys.argv[2] == "ready"
process.become_subreaper()
group = AttemptGroup.join(group_name(place))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
leaking = os.open(os.devnull, os.O_RDONLY)
os.set_inheritable(leaking, True)
if ready:
    forking.make_ready(signal.SIGINT)
    late, _theirs = socket.socketpair()

def run(command, cwd=str(place), **env):
    log = place / "log"
    log.unlink(missing_ok=True)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        child = process.start(command, cwd=cwd, env={"PATH": "/usr/bin:/bin", **env}, log_fd=fd, group=group,
                              attempt_id="default.t.1.00000.000001")
    except process.CouldNotStart as fault:
        return {"fault": fault.fault.name, "message": fault.message, "exit": fault.command_exit}
    finally:
        os.close(fd)
    ended = process.Tree(child, group).kill_and_reap(10) if child.wait(10) is not None else None
    child.close()
    return {"status": ended.status, "said": log.read_text(), "spawned": child._popen is None}

found = {
    "says": run(["sh", "-c", "echo out; echo err >&2; pwd; cat; exit 3"]),
    "descriptors": run(["ls", "/proc/self/fd"]),
    "signals": run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]),
    "session": run(["sh", "-c", 'ps -o sid= -p $$ | tr -d " "; echo $$']),
    "environment": run(["env"], A="b c"),
    "own path": run(["tool"], PATH=f"{place}/nothing:{place}/locked:{place}/tools"),
    "beside": run(["./tools/tool"]),
    "relative path": run(["tool"], PATH="tools"),
    "absent": run(["no-such-command"]),
    "absent by name": run(["/no/such/command"]),
    "locked": run(["tool"], PATH=f"{place}/locked"),
    "no interpreter line": run([f"{place}/plain"]),
    "interpreter gone": run([f"{place}/orphan"]),
    "no directory": run(["true"], cwd=f"{place}/nowhere"),
    "nul": run(["echo", "a\\0b"]),
    "too long": run(["echo", "x" * 200_000]),
    "stays": os.getcwd(),
}
if group is not None:
    group.remove()
print(json.dumps(found))
"""


def _runs(place: Path, how: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(place), how], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _script(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_a_ready_process_starts_commands_as_subprocess_does(tmp_path: Path) -> None:
    group = AttemptGroup.make(group_name(tmp_path))
    if group is None:
        pytest.skip("no group can be made here")
    group.remove()
    place = tmp_path.resolve()
    _script(place / "tools" / "tool", "#!/bin/sh\necho found\n", 0o755)
    _script(place / "locked" / "tool", "#!/bin/sh\necho no\n", 0o644)
    _script(place / "plain", "echo no\n", 0o755)
    _script(place / "orphan", "#!/no/such/interpreter\n", 0o755)
    spawned, popened = _runs(place, "ready"), _runs(place, "plain")
    for found, by_spawn in ((spawned, True), (popened, False)):
        assert found["says"]["said"] == f"out\nerr\n{place}\n", "nothing on its standard input"
        assert os.waitstatus_to_exitcode(found["says"]["status"]) == 3
        assert found["says"]["spawned"] == by_spawn
        assert found["descriptors"]["said"].split() == ["0", "1", "2", "3"], "3 is what ls lists with"
        blocked, ignored = (int(line.split()[1], 16) for line in found["signals"]["said"].splitlines())
        assert blocked == 0 and ignored & ~C_LIBRARYS_OWN == 0
        sid, pid = found["session"]["said"].split()
        assert sid == pid
        assert sorted(found["environment"]["said"].splitlines()) == [
            "A=b c", "PATH=/usr/bin:/bin", "STADO_ATTEMPT_ID=default.t.1.00000.000001",
        ]  # fmt: skip
        assert found["own path"]["said"] == found["beside"]["said"] == "found\n"
        assert found["stays"] == "/"
    faults = [
        "absent",
        "absent by name",
        "locked",
        "no interpreter line",
        "interpreter gone",
        "no directory",
        "nul",
        "too long",
    ]
    for name in faults:
        assert "fault" in spawned[name], name
        assert spawned[name] == popened[name], name
    assert spawned["relative path"]["said"] == popened["relative path"]["said"] == "found\n"
