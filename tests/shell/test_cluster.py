"""The record of a cluster: who reads it, how often, and what becomes of one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from stado_like import Client, JobSpec, config
from stado_like.errors import BadRecord, UsageError
from stado_like.job import keys
from stado_like.job.cluster import Cluster
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_worker.graces import Graces
from tests.builders_jobs import Clock

_numbers = count(1)


class Bench:
    def __init__(self, **environ: str) -> None:
        self.clock, self.meter = Clock(), Meter()
        self.store = MemoryStore(f"cluster-{next(_numbers)}", self.clock)
        settings = config.load({"store": self.store.url}, environ)
        self.client = Client(settings, opened=MeteredStore(self.store, self.meter), ambient=self.clock)

    def restarts(self, **resilience: int) -> tuple[int, int]:
        document = {"spec": {"task_template": {"resilience": resilience}}}
        stored = self.client.document(JobSpec(command="true", name="a", document=document))
        found: Mapping[str, Any] = stored["spec"]["task_template"]["resilience"]
        return found["max_restarts"], found["max_machine_restarts"]

    def asked(self) -> int:
        return self.meter.snapshot().total


def test_document_that_says_nothing_gets_what_the_cluster_says() -> None:
    bench = Bench()
    assert bench.restarts() == (10, 20)
    bench.client.cluster.change({"max_restarts": 3, "max_machine_restarts": 4})
    assert bench.restarts() == (3, 4)
    assert bench.restarts(max_restarts=7) == (7, 4)
    assert bench.restarts(max_retries_failure=0, max_machine_restarts=1) == (0, 1)


def test_what_a_process_was_told_stands_before_the_cluster() -> None:
    bench = Bench(STADO_RETRY_MAX_ATTEMPTS="5", ASTRAEUS_MACHINE_RESTARTS="6")
    bench.client.cluster.change({"max_restarts": 3, "max_machine_restarts": 4})
    assert bench.restarts() == (5, 6)
    only_one = Bench(STADO_RETRY_MAX_ATTEMPTS="5")
    only_one.client.cluster.change({"max_restarts": 3, "max_machine_restarts": 4})
    assert only_one.restarts() == (5, 4)


def test_it_is_asked_once_a_minute_and_only_where_it_matters() -> None:
    bench = Bench()
    bench.restarts(max_restarts=1, max_machine_restarts=1)
    assert bench.asked() == 0
    for _ in range(5):
        bench.restarts()
    assert bench.asked() == 1
    bench.clock.now_s += 61
    bench.restarts()
    assert bench.asked() == 2
    told = Bench(STADO_RETRY_MAX_ATTEMPTS="5", STADO_MACHINE_RESTARTS="6")
    told.restarts()
    assert told.asked() == 0


def test_edit_keeps_what_it_does_not_name_and_takes_away_what_is_none() -> None:
    cluster = Bench().client.cluster
    cluster.change({"max_restarts": 3, "stop_grace_seconds": 60})
    made = cluster.change({"max_restarts": None, "max_stop_grace_seconds": 90})
    assert (made.max_restarts, made.stop_grace_seconds, made.max_stop_grace_seconds) == (None, 60, 90)
    assert cluster.now().stop_grace_seconds == 60
    with pytest.raises(UsageError, match="max_stop_grace_seconds 30"):
        cluster.change({"max_stop_grace_seconds": 30})


def test_record_that_is_wrong_is_refused_by_name_and_never_half_used() -> None:
    bench = Bench()
    bench.client.bucket.put(keys.CLUSTER, Cluster(max_restarts=5000))
    with pytest.raises(BadRecord, match=r"config/cluster.json: max_restarts must be between 0 and 1000, got 5000"):
        bench.restarts()


def test_worker_takes_the_graces_at_its_sweep_and_keeps_them_when_they_cannot_be_read() -> None:
    bench, said = Bench(), list[str]()
    graces = Graces(bench.client.bucket, None, None, said.append)
    graces.sweep()
    assert (graces.grace_s, graces.most_grace_s) == (30, 3600)
    bench.client.cluster.change({"stop_grace_seconds": 45, "max_stop_grace_seconds": 90})
    graces.sweep()
    assert (graces.grace_s, graces.most_grace_s) == (45, 90)
    bench.store.put(keys.CLUSTER, b"{")
    graces.sweep()
    graces.sweep()
    assert (graces.grace_s, graces.most_grace_s) == (45, 90)
    assert len(said) == 1 and "config/cluster.json" in said[0]
    told = Graces(bench.client.bucket, 5, None, said.append)
    assert told.grace_s == 5
