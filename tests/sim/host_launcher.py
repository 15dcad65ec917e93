"""The agent's way to its supervisors on a simulated machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stado_worker.nursery import LaunchUnknown, NurseryFailed
from stado_worker.shim.attempt_dir import AttemptDir
from tests.sim.block_host import ranks_left

if TYPE_CHECKING:
    from tests.sim.host import Host


@dataclass
class HostLauncher:
    """A nursery that may fail, or sleep with a request in its socket."""

    host: Host

    def launch(self, folder: AttemptDir) -> None:
        host, world = self.host, self.host.grounds.world
        if host.nursery_fails:
            raise NurseryFailed("the nursery could not be started", "Look at its log.")
        if host.nursery_sleeps_s:
            # Stopped: the agent gives up on it and starts another, but the request is still in its socket.
            late_s = host.nursery_sleeps_s
            host.nursery_sleeps_s = 0.0
            world.at(world.now_s + late_s, lambda: host.spawn_supervisor(folder))
            raise LaunchUnknown("the nursery did not answer and was replaced", "The agent looks again.")
        host.spawn_supervisor(folder)

    def adopt(self, folder: AttemptDir) -> None:
        """Its end is heard of as that of any supervisor of this host."""

    def forget(self, folder: AttemptDir) -> None:
        """Nothing is held open for it here."""

    def nudge(self, folder: AttemptDir) -> None:
        supervisor = self.host.supervisors.get(folder.attempt_id)
        nudge = getattr(supervisor, "nudge", None)
        if nudge is not None:
            nudge()

    def remove_remains(self, folder: AttemptDir) -> tuple[int, ...]:
        for name in (folder.attempt_id, *ranks_left(folder)):
            process = self.host.processes.pop(name, None)
            if process is not None:
                process.kill()
        return ()
