"""How many requests one tick spends on what nobody waits for.

Looking after a hundred thousand jobs costs more than a tick may: a page of them at a time is looked at, in turns, so
that a store in which much lies about makes rounds longer and not ticks dearer. What may be over is looked at whatever
it costs, for somebody waits for its end.
"""

from __future__ import annotations

from collections import Counter

from stado_like.planning.actions import Action, MendJob, SweepEntry, SweepJob
from stado_like.store.meter import Meter

REQUESTS: dict[type, int] = {MendJob: 100, SweepJob: 20, SweepEntry: 24}


class Purse:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._spent: Counter[type] = Counter()
        self._before = 0

    def pays(self, action: Action) -> bool:
        """Whether the action may still be carried out in this tick. One that begins is carried out whole."""
        self._before = self._meter.snapshot().total
        most = REQUESTS.get(type(action))
        return most is None or self._spent[type(action)] < most or (isinstance(action, MendJob) and action.urgent)

    def settle(self, action: Action) -> None:
        """After an action that it paid for."""
        if type(action) in REQUESTS:
            self._spent[type(action)] += self._meter.snapshot().total - self._before
