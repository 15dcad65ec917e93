"""May this task run on this machine, and if not, why: every sentence, with its numbers, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stado_like.job.terms import Ask
from stado_like.planning.fit import Machine, why_not

GIB = 1 << 30
MACHINE = Machine(
    worker="w1", host="h1", free_cpu_millis=4000, free_memory_bytes=8 * GIB, free_gpus=2, running=1,
    labels={"pool": "a"}, apart=frozenset({"default.run/"}), abilities=frozenset({"container"}),
)  # fmt: skip
ASK = Ask(1000, GIB, 0)


def test_what_fits_has_no_reason() -> None:
    asked = replace(
        ASK, cpu_millis=4000, memory_bytes=8 * GIB, gpus=2, pinned_host="h1", names=("x", "w1"), labels={"pool": "a"},
        apart="default.other/", needs={"container": "machine runs no containers"},
    )  # fmt: skip
    assert why_not(MACHINE, asked) == ()


@pytest.mark.parametrize(
    ("machine", "ask", "sentence"),
    [
        ({"closed": "under pressure: disk"}, {}, "under pressure: disk"),
        ({}, {"pinned_host": "h2"}, "machine is not among the selected names"),
        ({}, {"names": ("h2", "w2")}, "machine is not among the selected names"),
        ({}, {"labels": {"pool": "b"}}, "machine lacks label pool=b"),
        ({}, {"labels": {"site": "s"}}, "machine lacks label site=s"),
        ({}, {"apart": "default.run/"}, "another worker of this run is already on the machine"),
        ({}, {"needs": {"sandbox": "machine cannot run sandboxed workers (no gVisor)"}},
         "machine cannot run sandboxed workers (no gVisor)"),
        ({"taken_whole": True}, {}, "an exclusive run has the whole machine"),
        ({"taken_whole": True}, {"exclusive": True}, "an exclusive run has the whole machine"),
        ({}, {"exclusive": True}, "the run asks for the whole machine, and other work runs on it"),
        ({}, {"cpu_millis": 4001}, "insufficient cpu: need 4.001 cores, 4 free"),
        ({}, {"memory_bytes": 8 * GIB + 1}, f"insufficient memory: need {8 * GIB + 1} bytes, {8 * GIB} free"),
        ({}, {"gpus": 3}, "insufficient gpus: need 3, 2 free and usable"),
    ],
)  # fmt: skip
def test_each_reason_in_its_words(machine: dict[str, Any], ask: dict[str, Any], sentence: str) -> None:
    assert why_not(replace(MACHINE, **machine), replace(ASK, **ask)) == (sentence,)


def test_every_reason_is_told_at_once() -> None:
    asked = replace(ASK, cpu_millis=9000, gpus=8, labels={"pool": "b", "site": "s"}, apart="default.run/")
    assert why_not(MACHINE, asked) == (
        "machine lacks label pool=b",
        "machine lacks label site=s",
        "another worker of this run is already on the machine",
        "insufficient cpu: need 9 cores, 4 free",
        "insufficient gpus: need 8, 2 free and usable",
    )


def test_exclusive_run_fits_where_nothing_runs() -> None:
    assert why_not(replace(MACHINE, running=0), replace(ASK, exclusive=True)) == ()
