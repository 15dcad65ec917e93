"""The rows of what a task asks of its machine, and of how it is stopped and restarted."""

from __future__ import annotations

import math

from stado_like.job.spec import limits
from tests.pure.spec_rows import ABSENT, NOT_INTEGERS, REQUIRED, As, Row, flag, part, text, whole
from tests.pure.spec_rows_kinds import JOB_PLACES, NO_JOB_PLACES, TEMPLATE, listed, one_of

RESOURCES = f"{TEMPLATE}.requested_resources"
RESILIENCE = f"{TEMPLATE}.resilience"
GPUS = f"{RESOURCES}.gpu_requests"
TOPOLOGY = f"{RESOURCES}.topology"
LINKS = f"{RESOURCES}.network"
CHOSEN = f"{RESOURCES}.node_selection"

BOTH = {"cpu_cores": 1, "memory_bytes": 1 << 30}
STORED_GPUS = {
    "count": 0, "models": [], "healthy_only": False, "min_per_machine": 0, "policy": "BestEffort", "ids": [],
}  # fmt: skip
STORED_RESOURCES = {
    **BOTH, "node_fraction": 0, "cpu_burst": False, "gpu_requests": STORED_GPUS, "machines": 0, "placement": "Any",
}  # fmt: skip
STORED_RESILIENCE = {
    "stop_signal": "SIGTERM", "max_restarts": 10, "max_machine_restarts": 20, "backoff_seconds": 10,
    "max_backoff_seconds": 300, "max_retries_preemption": 100,
}  # fmt: skip
STORED_TOPOLOGY = {"max_nodes": 0, "min_nodes": 0, "patience_seconds": 0}
WITH_GPUS = {f"{GPUS}.count": 65_536}

ASKS = [
    part(RESOURCES, STORED_RESOURCES, STORED_RESOURCES),
    Row(
        f"{RESOURCES}.cpu_cores",
        1,
        (0.001, 0.5, 1, 2.125, 65_536),
        (0, 0.0, -1, 0.0001, 1.0005, 65_537, "1", True, None, [], math.nan, math.inf, -math.inf, 10**400),
        {f"{RESOURCES}.memory_bytes": 1},
    ),
    Row(
        f"{RESOURCES}.memory_bytes",
        1 << 30,
        (1, 1 << 30, 1 << 60),
        (0, -1, (1 << 60) + 1, "16GiB", *NOT_INTEGERS),
        {f"{RESOURCES}.cpu_cores": 1},
    ),
    part(f"{RESOURCES}.per_gpu", ABSENT, BOTH, beside=WITH_GPUS),
    Row(
        f"{RESOURCES}.per_gpu.cpu_cores",
        REQUIRED,
        (0.001, 12, 65_536),
        (0, 0.0, -1, 0.0001, 65_537, "1", True, None, []),
        {**WITH_GPUS, f"{RESOURCES}.per_gpu.memory_bytes": 1},
    ),
    Row(
        f"{RESOURCES}.per_gpu.memory_bytes",
        REQUIRED,
        (1, 1 << 60),
        (0, -1, (1 << 60) + 1, "1GiB", *NOT_INTEGERS),
        {**WITH_GPUS, f"{RESOURCES}.per_gpu.cpu_cores": 1},
    ),
    Row(
        f"{RESOURCES}.node_fraction",
        0,
        (0, 0.0, 0.001, 0.5, 1, As(1.0, 1)),
        (-0.1, 1.001, 2, "0.5", True, None, [], math.nan, math.inf, -math.inf, 10**400),
    ),
    flag(f"{RESOURCES}.cpu_burst", beside={f"{RESOURCES}.cpu_cores": 1, f"{RESOURCES}.memory_bytes": 1}),
    whole(f"{RESOURCES}.machines", 0, 0, 10_000),
    one_of(
        f"{RESOURCES}.placement", "Any", "Any", "TightestNetwork", "SameRack", "SpreadRacks", "SpreadFabrics",
        "SameNvlinkDomain",
    ),
    part(GPUS, STORED_GPUS, As({"count": 1}, {**STORED_GPUS, "count": 1})),
    whole(f"{GPUS}.count", 0, 0, 65_536),
    listed(
        f"{GPUS}.models",
        (["H100", "H200"], ["MI300X"], ["RTX 6000 Ada"], ["a"] * 64),
        ([""], [" "], ["a\n"], ["a" * 256], ["a"] * 65),
        beside=WITH_GPUS,
    ),
    whole(f"{GPUS}.min_memory_gb", ABSENT, 1, 16_384, beside=WITH_GPUS),
    one_of(f"{GPUS}.vendor", ABSENT, "nvidia", "amd", "intel", "apple", beside=WITH_GPUS),
    flag(f"{GPUS}.healthy_only"),
    whole(f"{GPUS}.min_per_machine", 0, 0, 65_536, beside=WITH_GPUS),
    one_of(f"{GPUS}.policy", "BestEffort", "BestEffort", "PerNode", "All", beside=WITH_GPUS),
    listed(
        f"{GPUS}.ids",
        (["GPU-1b2c"], ["0", "1"], [f"{n}" for n in range(4_096)]),
        ([""], [" "], ["a\n"], ["a" * 256], ["a", "a"], [f"{n}" for n in range(4_097)]),
    ),
    whole(f"{GPUS}.memory_gb", ABSENT, 1, 16_384, beside=WITH_GPUS),
    part(TOPOLOGY, ABSENT, As({}, STORED_TOPOLOGY)),
    one_of(f"{TOPOLOGY}.keep_within", ABSENT, "node", "nvlink_domain", "fabric", "rack", refuses=("site",)),
    one_of(f"{TOPOLOGY}.spread", ABSENT, "node", "rack", "fabric", refuses=("nvlink_domain",)),
    whole(f"{TOPOLOGY}.max_nodes", 0, 0, 10_000),
    whole(f"{TOPOLOGY}.min_nodes", 0, 0, 10_000),
    whole(f"{TOPOLOGY}.patience_seconds", 0, 0, 604_800),
    part(LINKS, ABSENT, As({}, {"interconnect": "auto", "min_gbps": 0})),
    one_of(f"{LINKS}.interconnect", "auto", "auto", "rdma", "infiniband", "nvlink", beside=WITH_GPUS),
    whole(f"{LINKS}.min_gbps", 0, 0, 1_000_000),
    part(CHOSEN, ABSENT, As({}, {"mode": "Exact", "names": [], "count": 0, "match_labels": {}})),
    one_of(f"{CHOSEN}.mode", "Exact", "Exact", "Any", "All"),
    listed(
        f"{CHOSEN}.names",
        (["gpu-1"], ["a", "b.example.org"]),
        ([""], ["a b"], ["a/b"], ["-a"], ["a", "a"], ["a" * 254]),
    ),
    Row(
        f"{CHOSEN}.count",
        0,
        (0, 1, 10_000, As("4", 4), As("007", 7)),
        (-1, 10_001, "10001", "", "x", "4.0", "-4", "+4", " 4", "\u0664", True, 4.0, None, [], {}, math.nan, 10**40,
         "9" * 30),
    ),
    Row(
        f"{CHOSEN}.match_labels",
        {},
        ({}, {"pool": "h100"}, {"topology.astraeus.io/site": "x", "stado.io/a": ""}, {f"k{n}": "" for n in range(64)}),
        ({"": "x"}, {"a=b": "x"}, {"k": 1}, {"k": None}, {"k": "\n"}, {"k": "v" * 1025}, {1: "x"}, [], "x", None, 5,
         {f"k{n}": "" for n in range(65)}),
    ),
]  # fmt: skip

KEPT = {f"{TEMPLATE}.checkpoint.dir": "ckpt"}
STORED_CHECKPOINT = {"dir": "/c", "interval_seconds": 600, "keep": 2, "final_seconds": 600}
LIMITED = {f"{TEMPLATE}.time_limit_seconds": 31_622_400}
WARNED = {**LIMITED, f"{RESILIENCE}.signal_before_limit.signal": "SIGUSR1"}

RESTARTS = [
    part(f"{TEMPLATE}.checkpoint", ABSENT, As({"dir": "/c"}, STORED_CHECKPOINT)),
    text(f"{TEMPLATE}.checkpoint.dir", REQUIRED, JOB_PLACES, NO_JOB_PLACES, beside={f"{TEMPLATE}.checkpoint": {}}),
    whole(f"{TEMPLATE}.checkpoint.interval_seconds", 600, 30, 86_400, beside=KEPT),
    whole(f"{TEMPLATE}.checkpoint.keep", 2, 1, 100, beside=KEPT),
    whole(f"{TEMPLATE}.checkpoint.final_seconds", 600, 0, 86_400, beside=KEPT),
    text(
        f"{TEMPLATE}.checkpoint.prefix",
        ABSENT,
        ("a", "run-7/b.c", "_/_"),
        ("", "/a", "a/", "a//b", "..", "a/..", ".a", "a b", "é", "a" * 256),
        beside=KEPT,
    ),
    part(RESILIENCE, STORED_RESILIENCE, STORED_RESILIENCE),
    Row(f"{RESILIENCE}.stop_signal", "SIGTERM", limits.STOP_SIGNALS, ("SIGKILL", "TERM", "sigterm", "", 15, None)),
    whole(f"{RESILIENCE}.max_restarts", 10, 0, 1_000),
    whole(f"{RESILIENCE}.max_machine_restarts", 20, 0, 1_000),
    whole(f"{RESILIENCE}.max_preemptions", ABSENT, 0, 1_000),
    whole(f"{RESILIENCE}.preemptible_after_seconds", ABSENT, 0, 604_800),
    whole(f"{RESILIENCE}.backoff_seconds", 10, 1, 86_400),
    whole(f"{RESILIENCE}.max_backoff_seconds", 300, 1, 86_400, beside={f"{RESILIENCE}.backoff_seconds": 1}),
    whole(f"{RESILIENCE}.max_retries_failure", ABSENT, 0, 1_000, stored_as=f"{RESILIENCE}.max_restarts"),
    whole(f"{RESILIENCE}.max_retries_preemption", 100, 0, 1_000),
    whole(f"{RESILIENCE}.stop_after_disconnect_seconds", ABSENT, 1, 31_622_400),
    part(
        f"{RESILIENCE}.signal_before_limit",
        ABSENT,
        {"signal": "SIGINT", "seconds": 60},
        beside=LIMITED,
    ),
    Row(
        f"{RESILIENCE}.signal_before_limit.signal",
        REQUIRED,
        limits.STOP_SIGNALS,
        ("SIGKILL", "USR1", "", 10, None),
        {**LIMITED, f"{RESILIENCE}.signal_before_limit": {}},
    ),
    whole(f"{RESILIENCE}.signal_before_limit.seconds", 60, 1, 86_400, beside=WARNED),
    part(f"{RESILIENCE}.stall", ABSENT, As({}, {"after_seconds": 1_800, "restart": False})),
    whole(f"{RESILIENCE}.stall.after_seconds", 1_800, 0, 604_800),
    flag(f"{RESILIENCE}.stall.restart"),
    part(f"{RESILIENCE}.straggler", ABSENT, As({}, {"behind_steps": 10, "after_seconds": 300})),
    whole(f"{RESILIENCE}.straggler.behind_steps", 10, 1, 1_000_000),
    whole(f"{RESILIENCE}.straggler.after_seconds", 300, 0, 604_800),
]
