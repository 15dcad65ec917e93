"""Whether the kernel killed a task for want of memory.

Not obvious because 137 alone does not say so, and because the exact counter, that of the attempt's own control group,
exists only where the memory controller is on there. On a bare version 2 tree (a hybrid machine, a container without
delegation) the nearest counter is the worker's own group, or the whole machine: it counts the kills of others too. So
there three things must come together: the command ended by SIGKILL, or with 137 as a shell says it of its child; we did
not send that signal; and the counter rose in the seconds around it. A child that was killed and whose parent carried on
is then not seen; an exact counter sees it.
"""

from __future__ import annotations

from functools import cache

from stado_like.ambient import Ambient
from stado_worker.machine.limits import OomCounter, oom_counter
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.exit_status import Exit

LOOK_EVERY_S = 1.0
KILLED = 128 + 9


@cache
def shared_counter() -> OomCounter | None:
    """Found once per process; by a nursery, for all that it forks."""
    return oom_counter()


class OomWatch:
    """Made before the command starts; `look` while it runs. A group that served earlier tasks has their kills in it."""

    def __init__(self, group: AttemptGroup | None, ambient: Ambient, shared: OomCounter | None = None) -> None:
        self._group = group
        self._ambient = ambient
        self._own = group.oom_kills() if group is not None else None
        self._shared = None if self._own is not None else shared or shared_counter()
        self._count = self._before = self._shared.read() if self._shared is not None else None
        self._looked_s = ambient.boot_s()

    @property
    def is_exact(self) -> bool:
        """Whether it counts the kills of this task's own group alone."""
        return self._own is not None

    def look(self) -> None:
        """The command lives. What the counter says now may already hold the kill that ends it: so the count before
        the last is compared in the end."""
        now_s = self._ambient.boot_s()
        if self._shared is not None and now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._before, self._count = self._count, self._shared.read()

    def happened(self, exited: Exit | None) -> bool:
        """Whether the kernel killed in this task. `exited`: how the command had ended before we killed anything, None
        where it had not."""
        if self._own is not None and self._group is not None:
            return (self._group.oom_kills() or 0) > self._own
        if exited is None or exited.exit_code != KILLED or self._shared is None or self._before is None:
            return False
        return (self._shared.read() or 0) > self._before
