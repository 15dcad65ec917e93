"""Why waiting work waits, in the words of the published table: one reason for each job, that of its first unit.

Times are UTC and rounded up to the minute, so that "starts by" stays true. Jobs of another workspace are not named.
What each machine says is told where that is the answer (no machine fits, or none does now), for a bounded number of
machines and of units: a plan over thousands of both must not spend its time on sentences; whoever explains one job asks
`nodes_of` for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.ids import JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Running, Unit
from stado_like.planning.fit import Machine, why_not
from stado_like.planning.heads import Head
from stado_like.planning.moments import clock
from stado_like.planning.placing import Waiting
from stado_like.planning.quota import Refusal

MACHINES_TOLD = 50
UNITS_TOLD = 100
Nodes = Mapping[str, tuple[str, ...]]


class Told:
    def __init__(self, board: Board, nodes: Callable[[Unit, int], Nodes]) -> None:
        """`nodes`: what so many machines say against a unit."""
        self.now = board.now
        self._of_machines = nodes
        self.waiting: dict[JobId, Waiting] = {}
        self.quota: dict[JobId, str] = {}
        self.total = len(board.spots)
        self.ready = sum(not spot.machine.closed for spot in board.spots)
        self._units_told = 0

    def knows(self, unit: Unit) -> bool:
        return unit.job in self.waiting

    def say(self, unit: Unit, reason: str) -> None:
        self.waiting.setdefault(unit.job, Waiting(reason))

    def on_quota(self, unit: Unit, refusal: Refusal) -> None:
        if not self.knows(unit):
            self.quota[unit.job] = refusal.numbers
            self.say(unit, refusal.reason)

    def no_machine(self, unit: Unit, whole: Unit) -> None:
        """Nothing that ends would help. `whole`: with all of its members, of which `unit` has those that count."""
        if self.knows(unit):
            return
        if 0 < whole.least < len(whole.members):
            reason = says.minimum_cannot_be_placed(self.ready, self.total)
        elif len(whole.members) > 1:
            reason = says.gang_cannot_be_placed(self.ready, self.total)
        else:
            reason = reasons.no_machine_fits(self.ready, self.total)
        self.waiting[unit.job] = Waiting(reason, nodes=self._nodes(unit))

    def behind(self, unit: Unit, head: Head) -> None:
        if self.knows(unit):
            return
        mine = head.unit.job.workspace == unit.job.workspace
        if head.unit.priority > unit.priority:
            self.say(unit, says.behind_higher_priority(head.unit.job.name if mine else says.ELSEWHERE))
            return
        name = head.unit.job.name if mine else f"({says.ELSEWHERE})"
        self.say(unit, says.behind(name, self.moment(head.starts_at)))

    def head(self, unit: Unit, head: Head) -> None:
        if not self.knows(unit):
            self.waiting[unit.job] = Waiting(self._of_head(unit, head), headline=True, nodes=self._nodes(unit))

    def _of_head(self, unit: Unit, head: Head) -> str:
        if head.victims:
            return says.preempting(len(head.victims), runs(head.victims, unit.job.workspace))
        if head.stopping:
            return says.waits_for_preempted(head.stopping)
        starts_by = self.moment(head.starts_at)
        if head.protected and not starts_by:
            return says.next_but_protected(unit.priority, "; ".join(head.protected))
        return says.next_to_run(unit.priority, starts_by)

    def moment(self, at: float) -> str:
        """`14:20`; with its date a day ahead; empty: not known, or past, when whatever should have ended did not."""
        if at <= self.now:
            return ""
        return clock(at, self.now)

    def _nodes(self, unit: Unit) -> Nodes:
        self._units_told += 1
        return self._of_machines(unit, MACHINES_TOLD) if self._units_told <= UNITS_TOLD else {}


def nodes_of(
    machines: Iterable[Machine], asks: Iterable[Ask], why: Callable[[Machine, Ask], tuple[str, ...]] = why_not
) -> dict[str, tuple[str, ...]]:
    """What each machine says against work of these asks; of several asks, what it says against all of them."""
    different: list[Ask] = []
    for ask in asks:
        if not any(ask is one or ask == one for one in different):
            different.append(ask)
    found = {}
    for machine in machines:
        said = [why(machine, ask) for ask in different]
        found[machine.worker] = next((one for one in said if one), ()) if all(said) else ()
    return dict(sorted(found.items()))


def runs(victims: Iterable[Running], workspace: str) -> str:
    """`a, b`: each once; those of other workspaces without their names."""
    names = (one.job.name if one.job.workspace == workspace else f"({says.ELSEWHERE})" for one in victims)
    return ", ".join(dict.fromkeys(names))
