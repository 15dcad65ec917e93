"""What goes on while nothing happens, and what a job asks of its store: requests, and dollars at S3's list prices.

Counts are exact, whatever the load of the machine. The idle worker is the shipped agent under a stepped clock; jobs are
run by real processes with a counter between them and their store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.figures import Figure, Results
from bench.requests import per_job, per_rank
from stado_like.store.meter import PRICE_PER_1000
from tests.shell.test_requests_of_a_worker import Idle

IDLE_MINUTES = 10
MILLION = 1_000_000
KINDS = {
    "puts": ("create", "put", "replace"),
    "gets": ("get", "head", "304"),
    "lists": ("list",),
    "deletes": ("delete",),
}
TITLES = {"puts": "PUT", "gets": "GET and HEAD", "lists": "LIST", "deletes": "DELETE", "rings": "PUT of the bell"}
PRICES = {**PRICE_PER_1000, "304": PRICE_PER_1000["not_modified"]}
BELL = "state/doorbell.json"
BY_THE_MINUTE = {"capacity", "config", "workers", "queue", "queued/later", "inbox"}
"""Families that a process asks for when it starts, or by the minute, and never for a job; so are those of `state`."""


def idle_worker(results: Results, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    worker = Idle(place)
    worker.idle(3)
    spent = worker.idle(IDLE_MINUTES)
    minute = Figure("idle_minute", "idle worker, reaction within 1 s: requests a minute", "", digits=1)
    results.add(minute, spent.total / IDLE_MINUTES)
    dollars = spent.dollars * 24 * 60 / IDLE_MINUTES
    results.add(Figure("idle_day", "idle worker, reaction within 1 s: a day", "$", digits=4), dollars)


def jobs(results: Results, place: Path, n: int) -> None:
    """Requests of one more one-task job, one after the other, on a directory; the bell's writes are told apart."""
    url = "file://{}/store?durable=0&poll=50ms"
    few = per_job(place / "few", url.format(place / "few"), n)
    many = per_job(place / "many", url.format(place / "many"), 2 * n)
    results.requests.update(many)
    one = _sum(many), _sum(few)
    for what in one[0]:
        more = 2 * one[0][what] - one[1][what]  # what is asked once, by a process that starts, is in both
        results.add(Figure(f"job.{what}", f"one-task job without heartbeats: {TITLES[what]}", "", digits=2), more)
    results.add(Figure("job.dollars", "a million one-task jobs", "$", digits=2), _dollars(many) * MILLION)


def ranks(results: Results, place: Path, n: int) -> None:
    """Requests per rank of an array of `n`, the submit and the bell included."""
    counted = per_rank(place, f"file://{place}/store?durable=0&poll=50ms", n)
    for what, count in _sum(counted).items():
        results.add(Figure(f"rank.{what}", f"one rank of an array of {n}: {TITLES[what]}", "", digits=2), count)
    results.add(
        Figure("rank.dollars", f"a million ranks, in arrays of {n}", "$", digits=2), _dollars(counted) * MILLION
    )


def _dollars(counted: Mapping[str, Mapping[str, float]]) -> float:
    return sum(PRICES[kind] * count / 1000 for kind, _, count in _of_the_job(counted))


def _sum(counted: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Counts by what they are billed as, for one job or rank."""
    told = dict.fromkeys((*KINDS, "rings"), 0.0)
    for kind, family, count in _of_the_job(counted):
        what = next(what for what, kinds in KINDS.items() if kind in kinds)
        told["rings" if family == BELL and what == "puts" else what] += count
    return told


def _of_the_job(counted: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str, float]]:
    for counts in counted.values():
        for said, n in counts.items():
            kind, _, family = said.partition(" ")
            if family == BELL or not (family in BY_THE_MINUTE or family.startswith("state/")):
                yield kind, family, n
