"""Whether what runs on a machine takes no more than it has, and no GPU that another one has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from stado_like.job.keys import JobId
from stado_like.job.terms import Terms
from tests.sim.processes import Process


class Loaded(Protocol):
    cores: int
    gpus: int
    processes: dict[str, Process]


def beyond_its_room(host: Loaded, terms: Mapping[JobId, Terms]) -> Iterator[str]:
    living = [one for one in host.processes.values() if one.is_alive and one.attempt.job in terms]
    asks = [terms[one.attempt.job].for_rank(one.attempt.rank).ask.on(one.devices) for one in living]
    cpu, gpus = sum(ask.cpu_millis for ask in asks), sum(ask.gpus for ask in asks)
    twice = [device for device, count in Counter(id for one in living for id in one.devices).items() if count > 1]
    if cpu > host.cores * 1000 or gpus > host.gpus or twice:
        names = ", ".join(sorted(str(one.attempt) for one in living))
        given = f", {' '.join(twice)} given twice" if twice else ""
        yield f"{cpu} of {host.cores * 1000}, and {gpus} of {host.gpus} GPUs{given}, by {names}"
