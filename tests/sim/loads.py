"""Whether what runs on a machine asks for no more than it has."""

from __future__ import annotations

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
    living = [one.attempt for one in host.processes.values() if one.is_alive and one.attempt.job in terms]
    asks = [terms[a.job].for_rank(a.rank).ask for a in living]
    cpu, gpus = sum(ask.cpu_millis for ask in asks), sum(ask.gpus for ask in asks)
    if cpu > host.cores * 1000 or gpus > host.gpus:
        names = ", ".join(sorted(map(str, living)))
        yield f"{cpu} of {host.cores * 1000}, and {gpus} of {host.gpus} GPUs, by {names}"
