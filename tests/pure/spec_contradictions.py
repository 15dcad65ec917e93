"""Templates that contradict themselves, each with the path and the sentence; and some that only look so."""

from __future__ import annotations

from typing import Any


def asked(**resources: Any) -> dict[str, Any]:
    return {"requested_resources": resources}


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return {"gpu_requests": {"count": count, **more}}


RES = "requested_resources"
ONE_FORM = "ask for CPU and memory per task, per GPU or as a share of a machine, in one of the three"
BOTH = {"cpu_cores": 1, "memory_bytes": 1}
BIND = {"kind": "Bind", "mount_path": "/x"}
NEEDS_GPUS = "Needs GPUs: give gpu_requests.count"
DENY = {"default": "deny"}

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"command": None}, "command", "Required without an image: there is nothing else to run"),
    ({"pull_policy": "Always"}, "pull_policy", "Needs an image: without one nothing is pulled"),
    (
        {"registry_secret_ref": {"external_secret_name": "r"}},
        "registry_secret_ref",
        "Needs an image: without one nothing is pulled",
    ),
    ({"volumes": [BIND]}, "volumes[0].host_path", "Required for Bind: the machine's path"),
    (
        {"volumes": [{"mount_path": "/x", "host_path": "/y"}]},
        "volumes[0].host_path",
        "Only for kind: Bind; an EmptyDir is an empty directory",
    ),
    (
        {"volumes": [{"mount_path": "/x"}], "configs": [{"mounts": ["/a", "//x/"], "value": ""}]},
        "configs[0].mounts[1]",
        "Is already the place of volumes[0].mount_path; only one thing can be mounted there",
    ),
    (
        {
            "datavolume_refs": [{"name": "d", "mount_path": "/x/./y"}],
            "secret_refs": [{"external_secret_name": "s", "mount_path": "/x/y"}],
        },
        "secret_refs[0].mount_path",
        "Is already the place of datavolume_refs[0].mount_path; only one thing can be mounted there",
    ),
    (
        {"datavolume_refs": [{"name": "d"}, {"name": "d"}]},
        "datavolume_refs[1].mount_path",
        "Required: the drive d is mounted at its own place already",
    ),
    (
        {"secret_refs": [{"external_secret_name": "s"}]},
        "secret_refs[0]",
        "Must have mount_path, env_vars or both, or its value arrives nowhere",
    ),
    (
        {
            "secret_refs": [
                {"external_secret_name": "s", "env_vars": {"a": "TOKEN"}},
                {"external_secret_name": "t", "env_vars": {"b": "TOKEN"}},
            ]
        },
        "secret_refs[1].env_vars.b",
        "The variable TOKEN is already set by secret_refs[0].env_vars.a",
    ),
    ({"configs": [{"mounts": [], "value": ""}]}, "configs[0].mounts", "Must have at least one path"),
    (
        {"configs": [{"mounts": [f"/{n}"], "value": "x" * 600_000} for n in range(2)]},
        "configs",
        "The values together must be at most 1 MiB, got 1.2 MB (1.14 MiB); ship the files with the job",
    ),
    (
        {"security_context": {"ulimits": [{"name": "nofile", "soft": 2, "hard": 1}]}},
        "security_context.ulimits[0].soft",
        "Must be at most hard (1), got 2",
    ),
    (
        {"security_context": {"ulimits": [{"name": "nofile", "soft": -1, "hard": 1}]}},
        "security_context.ulimits[0].soft",
        "Must be at most hard (1), got unlimited (-1)",
    ),
    (
        {"security_context": {"ulimits": [{"name": "nofile", "soft": 1, "hard": 1}] * 2}},
        "security_context.ulimits[1].name",
        "nofile stands twice; give each limit once",
    ),
    (
        {"security_context": {"cap_add": ["SYS_PTRACE"], "cap_drop": ["CAP_SYS_PTRACE"]}},
        "security_context.cap_drop[0]",
        "CAP_SYS_PTRACE is also in cap_add; give it once",
    ),
    ({"health_check": {"type": "HTTP", "port": 1}}, "health_check.path", "Required for HTTP"),
    ({"health_check": {"type": "HTTP", "path": "/"}}, "health_check.port", "Required for HTTP"),
    ({"health_check": {"type": "TCP"}}, "health_check.port", "Required for TCP"),
    ({"health_check": {"type": "Exec"}}, "health_check.command", "Required for Exec"),
    (
        {"health_check": {"type": "Exec", "command": []}},
        "health_check.command",
        "Must have at least one entry, the program",
    ),
    (
        {"health_check": {"type": "TCP", "port": 1, "path": "/"}},
        "health_check.path",
        "Only for HTTP, and the type is TCP",
    ),
    (
        {"health_check": {"type": "Exec", "command": ["a"], "port": 1}},
        "health_check.port",
        "Only for HTTP and TCP, and the type is Exec",
    ),
    (
        {"health_check": {"type": "TCP", "port": 1, "interval_seconds": 10, "timeout_seconds": 10}},
        "health_check.timeout_seconds",
        "Must be less than interval_seconds (10), got 10",
    ),
    (
        {"health_check": {"type": "TCP", "port": 1, "interval_seconds": 3}},
        "health_check.timeout_seconds",
        "Must be less than interval_seconds (3), got 5, its default",
    ),
    ({"isolation": "sandbox", **asked(**gpus(1))}, "isolation", "sandbox cannot be combined with GPUs"),
    (
        {"isolation": "sandbox", "security_context": {"privileged": True, "pid_mode": "host", "ipc_mode": "host"}},
        "isolation",
        "sandbox cannot be combined with security_context.privileged or security_context.pid_mode: host or "
        "security_context.ipc_mode: host",
    ),
    (
        {"network": {"egress": {"allow": [{"host": "a"}]}}},
        "network.egress.allow",
        "Has no effect under default: allow, which allows everything; write default: deny",
    ),
    (
        {"network": {"egress": {**DENY, "allow": [{"host": "a", "cidr": "10.0.0.0/8"}]}}},
        "network.egress.allow[0]",
        "Must have host or cidr, not both; write two entries",
    ),
    (
        {"network": {"egress": {**DENY, "cluster": "all"}}},
        "network.egress.cluster",
        "Must be none or namespace under default: deny; a job does not reach the tasks of other workspaces",
    ),
    (
        {"network": {"egress": DENY}, "security_context": {"privileged": True, "pid_mode": "host"}},
        "network.egress",
        "A policy that restricts cannot be combined with security_context.privileged or "
        "security_context.pid_mode: host",
    ),
    (
        {"network": {"egress": {"cluster": "none"}}, "security_context": {"cap_add": ["CAP_NET_ADMIN", "ALL"]}},
        "network.egress",
        "A policy that restricts cannot be combined with security_context.cap_add: [NET_ADMIN] or "
        "security_context.cap_add: [ALL]",
    ),
    (
        {"resilience": {"signal_before_limit": {"signal": "SIGUSR1"}}},
        "resilience.signal_before_limit",
        "Needs time_limit_seconds: without a limit there is nothing to warn of",
    ),
    (
        {"time_limit_seconds": 120, "resilience": {"signal_before_limit": {"signal": "SIGUSR1", "seconds": 120}}},
        "resilience.signal_before_limit.seconds",
        "Must be less than time_limit_seconds (120), got 120",
    ),
    (
        {"time_limit_seconds": 60, "resilience": {"signal_before_limit": {"signal": "SIGUSR1"}}},
        "resilience.signal_before_limit.seconds",
        "Must be less than time_limit_seconds (60), got 60, its default",
    ),
    (
        {"restart_policy": "Never", "resilience": {"stall": {"restart": True}}},
        "resilience.stall.restart",
        "Cannot be combined with restart_policy: Never, which restarts nothing; write OnFailure",
    ),
    (
        {"resilience": {"stall": {"restart": True, "after_seconds": 0}}},
        "resilience.stall.restart",
        "Has no effect with after_seconds: 0, which never calls a task stalled",
    ),
    (
        {"resilience": {"backoff_seconds": 400, "max_backoff_seconds": 300}},
        "resilience.max_backoff_seconds",
        "Must be at least backoff_seconds (400), got 300",
    ),
    (
        {"resilience": {"max_restarts": 1, "max_retries_failure": 2}},
        "resilience.max_retries_failure",
        "Is another name of max_restarts, and they differ: 2 and 1; give one of them",
    ),
    (
        {"args": ["x" * 122_881]},
        "args[0]",
        "Must be at most 120 KiB (122880 bytes), got 122881 bytes; put the data into a file",
    ),
    # What is asked of machines
    (asked(cpu_cores=1), f"{RES}.memory_bytes", "Must be given together with cpu_cores"),
    (asked(memory_bytes=1), f"{RES}.cpu_cores", "Must be given together with memory_bytes"),
    (
        asked(**gpus(1), per_gpu=BOTH, node_fraction=0.5),
        f"{RES}.node_fraction",
        f"Cannot be combined with per_gpu; {ONE_FORM}",
    ),
    (
        asked(**gpus(1), per_gpu=BOTH, **BOTH),
        f"{RES}.per_gpu",
        f"Cannot be combined with cpu_cores and memory_bytes; {ONE_FORM}",
    ),
    (asked(node_fraction=1, cpu_cores=1), f"{RES}.node_fraction", f"Cannot be combined with cpu_cores; {ONE_FORM}"),
    (asked(per_gpu=BOTH), f"{RES}.per_gpu", NEEDS_GPUS),
    (
        asked(**gpus(1), per_gpu={"cpu_cores": 0, "memory_bytes": 1}),
        f"{RES}.per_gpu.cpu_cores",
        "Must be greater than 0, got 0",
    ),
    (asked(cpu_burst=True), f"{RES}.cpu_burst", "Needs cpu_cores or per_gpu.cpu_cores: they are the weight"),
    (
        asked(cpu_burst=True, node_fraction=0.5),
        f"{RES}.cpu_burst",
        "Needs cpu_cores or per_gpu.cpu_cores: they are the weight",
    ),
    (asked(gpu_requests={"models": ["H100"]}), f"{RES}.gpu_requests.models", NEEDS_GPUS),
    (asked(gpu_requests={"memory_gb": 8}), f"{RES}.gpu_requests.memory_gb", NEEDS_GPUS),
    (asked(gpu_requests={"policy": "PerNode"}), f"{RES}.gpu_requests.policy", f"PerNode n{NEEDS_GPUS[1:]}"),
    (
        asked(**gpus(3, ids=["a", "b"])),
        f"{RES}.gpu_requests.ids",
        "Must name as many GPUs as count (3), got 2; leave out count",
    ),
    (asked(gpu_requests={"ids": ["a", "a"]}), f"{RES}.gpu_requests.ids", "a stands twice; give each GPU once"),
    (
        asked(gpu_requests={"ids": ["a"], "policy": "All"}),
        f"{RES}.gpu_requests.policy",
        "All takes every free GPU and cannot be combined with ids",
    ),
    (
        asked(**gpus(1, memory_gb=8, policy="All")),
        f"{RES}.gpu_requests.memory_gb",
        "A share of a card cannot be combined with policy: All, which takes them whole",
    ),
    (
        asked(**gpus(4, min_per_machine=8)),
        f"{RES}.gpu_requests.min_per_machine",
        "Must be at most the count of GPUs (4), got 8",
    ),
    (
        asked(**gpus(8, min_per_machine=8), machines=2),
        f"{RES}.gpu_requests.min_per_machine",
        "Must be at most the count of GPUs (8, which are 4 on each of 2 machines), got 8",
    ),
    (asked(**gpus(12), machines=5), f"{RES}.machines", "Must divide gpu_requests.count (12) evenly, got 5"),
    (asked(**gpus(1), machines=2), f"{RES}.machines", "Must divide gpu_requests.count (1) evenly, got 2"),
    (
        asked(gpu_requests={"ids": ["a", "b", "c"]}, machines=2),
        f"{RES}.machines",
        "Must divide gpu_requests.count (3) evenly, got 2",
    ),
    (
        asked(machines=2, node_selection={"count": "2"}),
        f"{RES}.machines",
        "Cannot be combined with node_selection.count: each says how many tasks there are",
    ),
    (
        asked(machines=2, topology={"min_nodes": 1}),
        f"{RES}.machines",
        "Cannot be combined with topology.min_nodes: each says how many tasks there are",
    ),
    (
        asked(machines=2, node_selection={"mode": "All"}),
        f"{RES}.machines",
        "Cannot be combined with node_selection.mode: All: each says how many tasks there are",
    ),
    (
        asked(node_selection={"mode": "All", "count": 2}),
        f"{RES}.node_selection.count",
        "Cannot be combined with mode: All, which is one task on every machine",
    ),
    (
        asked(node_selection={"names": ["a", "b"], "count": "3"}),
        f"{RES}.node_selection.names",
        "Must name at least 3 machines, one for each task, got 2",
    ),
    (
        asked(machines=2, node_selection={"mode": "Any", "names": ["a"]}),
        f"{RES}.node_selection.names",
        "Must name at least 2 machines, one for each task, got 1",
    ),
    (
        asked(node_selection={"names": ["a", "a"]}),
        f"{RES}.node_selection.names",
        "Names a machine twice; give each once",
    ),
    (
        asked(topology={"min_nodes": 3, "max_nodes": 2}),
        f"{RES}.topology.min_nodes",
        "Must be at most max_nodes (2), got 3",
    ),
    (
        asked(machines=3, topology={"max_nodes": 2}),
        f"{RES}.topology.max_nodes",
        "Must be at least 3, as many machines as the tasks are asked to be on, got 2",
    ),
    (
        asked(node_selection={"names": ["a", "b"]}, topology={"max_nodes": 1}),
        f"{RES}.topology.max_nodes",
        "Must be at least 2, as many machines as the tasks are asked to be on, got 1",
    ),
    (
        asked(topology={"keep_within": "node", "spread": "rack"}),
        f"{RES}.topology.spread",
        "Cannot be combined with keep_within: node, which is one machine, got rack",
    ),
    (
        asked(topology={"keep_within": "rack", "spread": "rack"}),
        f"{RES}.topology.spread",
        "Cannot be combined with keep_within: rack, which is one, got rack",
    ),
    (
        asked(machines=2, topology={"keep_within": "node"}),
        f"{RES}.topology.keep_within",
        "node is one machine, and the tasks are asked to be on 2",
    ),
    (
        asked(topology={"patience_seconds": 604_801}),
        f"{RES}.topology.patience_seconds",
        "Must be between 0 and 604800 seconds, got 604801",
    ),
    (
        asked(network={"interconnect": "nvlink"}),
        f"{RES}.network.interconnect",
        "nvlink needs GPUs: give gpu_requests.count",
    ),
    (
        asked(**gpus(2), network={"interconnect": "nvlink", "min_gbps": 200}),
        f"{RES}.network.min_gbps",
        "Is a speed of RDMA ports and cannot be combined with interconnect: nvlink",
    ),
]

TAKEN: list[dict[str, Any]] = [
    {"command": None, "image": "busybox", "args": ["a"]},
    {"image": "busybox", "pull_policy": "None", "registry_secret_ref": {"external_secret_name": "r"}},
    {"datavolume_refs": [{"name": "d"}, {"name": "d", "mount_path": "/x"}, {"name": "e"}]},
    {"volumes": [{"mount_path": "/x"}, {"mount_path": "/x/y"}], "configs": [{"mounts": ["x"], "value": ""}]},
    {"env": {"A": "x"}, "secret_refs": [{"external_secret_name": "s", "env_vars": {"k": "A"}}]},
    {"security_context": {"cap_add": ["NET_ADMIN"], "cap_drop": ["ALL"]}},
    {"isolation": "sandbox", "network": {"egress": DENY}, "security_context": {"cap_drop": ["NET_ADMIN"]}},
    {"network": {"egress": {"cluster": "all"}}, "security_context": {"privileged": True}},
    {"network": {"egress": {**DENY, "allow": [{"cidr": "0.0.0.0/0", "ports": [443]}], "cluster": "none"}}},
    {"health_check": {"type": "TCP", "port": 1, "interval_seconds": 6}},
    {"restart_policy": "Never", "resilience": {"stall": {"restart": False}}},
    asked(gpu_requests={"policy": "All", "models": ["H100"]}, per_gpu=BOTH),
    asked(gpu_requests={"policy": "All"}, machines=3, network={"interconnect": "nvlink"}),
    asked(**gpus(16), machines=2, cpu_burst=True, per_gpu=BOTH),
    asked(**gpus(16), node_selection={"count": 5}),
    asked(machines=2, node_selection={"names": ["a", "b", "c"], "count": 0}, topology={"spread": "node"}),
    asked(node_selection={"mode": "Any", "names": ["a"], "count": 9}, topology={"max_nodes": 1}),
    asked(topology={"min_nodes": 2, "max_nodes": 2}),
    asked(topology={"keep_within": "rack", "spread": "node"}, placement="SameNvlinkDomain"),
    asked(network={"min_gbps": 100}),
    asked(node_fraction=0.5, cpu_cores=0, memory_bytes=0),
]
