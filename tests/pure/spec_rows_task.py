"""The template's rows of the table that every field of the specification is tested against."""

from __future__ import annotations

from stado_like.job.spec import limits
from tests.pure.spec_rows import ABSENT, REQUIRED, As, Row, flag, part, text, whole
from tests.pure.spec_rows_asks import ASKS, RESTARTS
from tests.pure.spec_rows_kinds import (
    CLIMBING,
    INSIDE,
    JOB_PLACES,
    NO_JOB_PLACES,
    NOT_LISTS,
    OUTSIDE,
    TEMPLATE,
    listed,
    name,
    one_of,
    only,
    place,
)

SECURITY = f"{TEMPLATE}.security_context"
PROBE = f"{TEMPLATE}.health_check"
EGRESS = f"{TEMPLATE}.network.egress"


STORED_SECURITY = {
    "privileged": False, "ipc_mode": "private", "pid_mode": "private", "cap_add": [], "cap_drop": [],
    "security_opt": [], "ulimits": [],
}  # fmt: skip
STORED_PROBE = {"interval_seconds": 10, "timeout_seconds": 5, "failure_threshold": 3, "initial_delay_seconds": 0}

WITH_IMAGE = {f"{TEMPLATE}.image": "busybox"}
MANY = 300  # more entries than any of the lists below takes

WHAT_RUNS = [
    part(TEMPLATE, REQUIRED, ABSENT),
    text(
        f"{TEMPLATE}.image",
        ABSENT,
        (
            "busybox", "python:3.12", "nvcr.io/nvidia/pytorch:24.08-py3", "registry.example.com/nlp/train:2026-09",
            "localhost:5000/a/b__c.d-e", "a@sha256:" + "0" * 64, "R.example/x:T_1",
        ),
        ("", "Busybox", "a b", "a:", ":1", "a//b", "/a", "a/", "-a", "a@sha256:12", "http://a/b", "a\n", "a" * 1025),
    ),
    one_of(f"{TEMPLATE}.pull_policy", "IfNotPresent", "IfNotPresent", "Always", "None", beside=WITH_IMAGE),
    part(f"{TEMPLATE}.registry_secret_ref", ABSENT, {"external_secret_name": "r"}, beside=WITH_IMAGE),
    name(f"{TEMPLATE}.registry_secret_ref.external_secret_name", REQUIRED,
         beside={**WITH_IMAGE, f"{TEMPLATE}.registry_secret_ref": {}}),
    text(f"{TEMPLATE}.command", REQUIRED, ("python", "./a b", "é", "/bin/sh"), ("", " ", "\n")),
    Row(
        f"{TEMPLATE}.args",
        [],
        ([], [""], ["a", "\n\t", "é"], ["x" * limits.ONE_STRING_MAX_BYTES], ["a"] * 65_536),
        ("x", {}, 5, None, [1], [None], [True], ["a\0"], ["\ud800"], [["a"]], ("a",), ["x" * 122_881], ["a"] * 65_537),
    ),
    Row(
        f"{TEMPLATE}.env",
        {},
        ({}, {"A": ""}, {"_a1": "x\ny"}, {"RANK": "0"}, {"A": "x" * (limits.ONE_STRING_MAX_BYTES - 2)}),
        (
            {"": "x"},
            {"1A": "x"},
            {"A-B": "x"},
            {"A=B": "x"},
            {"A\n": "x"},
            {"É": "x"},
            {"STADO_X": "x"},
            {"ASTRAEUS_X": "x"},
            {"A": 1},
            {"A": None},
            {"A": "x\0"},
            {1: "x"},
            [],
            "A=1",
            None,
            {"A": "x" * (limits.ONE_STRING_MAX_BYTES - 1)},
            {f"A{n}": "" for n in range(10_001)},
        ),
    ),
    text(
        f"{TEMPLATE}.user",
        ABSENT,
        ("root", "_www-data", "a.b$", "0", "1000", "1000:1000", "4294967294:0"),
        ("", "a b", "-a", "a:b", "1000:", ":1", "1:2:3", "4294967295", "9" * 30, "é", "a" * 256),
    ),
    one_of(f"{TEMPLATE}.restart_policy", "OnFailure", "OnFailure", "Always", "Never"),
    whole(f"{TEMPLATE}.time_limit_seconds", ABSENT, 60, 31_622_400),
    whole(f"{TEMPLATE}.stop_grace_seconds", ABSENT, 1, 3_600),
    whole(f"{TEMPLATE}.heartbeat_ttl_seconds", 60, 10, 86_400),
    text(
        f"{TEMPLATE}.output_file",
        ABSENT,
        ("out.log", "logs/%x-%j_%A.%a.%t.%N", "/var/log/%%", "100%%", "%%j", "../%3a-%04t", "%u/%J%b%n%s", "a\\%q"),
        ("", "%", "a%", "%q", "%%%", "%3", "%-3t", "logs/", "/", "..", "a" * 4096),
    ),
]  # fmt: skip

VOLUME = {f"{TEMPLATE}.volumes[].mount_path": "/x"}
DRIVE = {f"{TEMPLATE}.datavolume_refs[].name": "d"}
SECRET = {f"{TEMPLATE}.secret_refs[].external_secret_name": "s", f"{TEMPLATE}.secret_refs[].mount_path": "/s"}

MOUNTS = [
    listed(
        f"{TEMPLATE}.volumes",
        (
            As([{"mount_path": "/x"}], [{"kind": "EmptyDir", "mount_path": "/x", "mode": "ReadOnly"}]),
            [{"kind": "Bind", "mount_path": "/x", "host_path": "/y", "mode": "ReadWrite"}],
        ),
        ([{"mount_path": f"/{n}"} for n in range(MANY)], [{}]),
    ),
    Row(f"{TEMPLATE}.volumes[].kind", "EmptyDir", ("EmptyDir",), ("emptyDir", "HostPath", "", 1, None, []), VOLUME),
    place(f"{TEMPLATE}.volumes[].mount_path", REQUIRED, beside={f"{TEMPLATE}.volumes": [{}]}),
    text(
        f"{TEMPLATE}.volumes[].host_path",
        REQUIRED,
        ("/", "/dev/shm", "/a..b"),
        ("", "data", *CLIMBING),
        beside={**VOLUME, f"{TEMPLATE}.volumes[].kind": "Bind"},
    ),
    one_of(f"{TEMPLATE}.volumes[].mode", "ReadOnly", "ReadOnly", "ReadWrite", beside=VOLUME),
    listed(
        f"{TEMPLATE}.datavolume_refs",
        ([{"name": "d"}], [{"name": "d", "mount_path": "/d", "sub_path": "s", "mode": "ReadOnly", "source_index": 0}]),
        ([{"name": f"{n}"} for n in range(MANY)], [{}]),
    ),
    name(f"{TEMPLATE}.datavolume_refs[].name", REQUIRED, beside={f"{TEMPLATE}.datavolume_refs": [{}]}),
    place(f"{TEMPLATE}.datavolume_refs[].mount_path", ABSENT, beside=DRIVE),
    text(f"{TEMPLATE}.datavolume_refs[].sub_path", ABSENT, INSIDE, OUTSIDE, beside=DRIVE),
    one_of(f"{TEMPLATE}.datavolume_refs[].mode", ABSENT, "ReadOnly", "ReadWrite", beside=DRIVE),
    whole(f"{TEMPLATE}.datavolume_refs[].source_index", ABSENT, 0, 1_023, beside=DRIVE),
    listed(
        f"{TEMPLATE}.secret_refs",
        ([{"external_secret_name": "s", "env_vars": {"token": "HF_TOKEN"}}],),
        ([{"external_secret_name": "s", "env_vars": {"k": f"A{n}"}} for n in range(MANY)], [{"env_vars": {"k": "A"}}]),
    ),
    name(
        f"{TEMPLATE}.secret_refs[].external_secret_name",
        REQUIRED,
        beside={f"{TEMPLATE}.secret_refs[].mount_path": "/s"},
    ),
    place(
        f"{TEMPLATE}.secret_refs[].mount_path",
        ABSENT,
        beside={**SECRET, f"{TEMPLATE}.secret_refs[].env_vars": {"k": "A"}},
    ),
    Row(
        f"{TEMPLATE}.secret_refs[].env_vars",
        {},
        ({}, {"token": "HF_TOKEN"}, {"a.b-c_1": "_x"}, {f"k{n}": f"A{n}" for n in range(256)}),
        (
            {"": "A"}, {".": "A"}, {"..": "A"}, {"a/b": "A"}, {"k": ""}, {"k": "1A"}, {"k": "A-B"}, {"k": "STADO_X"},
            {"k": "ASTRAEUS_X"}, {"k": 1}, {"k": None}, {1: "A"}, {"a": "A", "b": "A"}, {"k" * 254: "A"}, [], "x", None,
            {f"k{n}": f"A{n}" for n in range(257)},
        ),
        SECRET,
    ),
    listed(
        f"{TEMPLATE}.configs",
        ([{"mounts": ["/a"], "value": "x"}],),
        (
            [{"mounts": [f"/{n}"], "value": ""} for n in range(MANY)],
            [{"mounts": [f"/{n}"], "value": "x" * (1 << 19)} for n in range(3)],
        ),
    ),
    Row(
        f"{TEMPLATE}.configs[].mounts",
        REQUIRED,
        (["/etc/a"], ["/a", "b/c.yaml"], [f"/{n}" for n in range(256)]),
        ([], ["/a", "/a"], ["/a", "/a/"], [""], ["/"], ["../a"], ["/a/../b"], *NOT_LISTS,
         [f"/{n}" for n in range(257)]),
        {f"{TEMPLATE}.configs[].value": ""},
    ),
    text(
        f"{TEMPLATE}.configs[].value",
        REQUIRED,
        ("", "a\nb", "é", "x" * 1_000_000),
        (),
        beside={f"{TEMPLATE}.configs[].mounts": ["/a"]},
    ),
]  # fmt: skip

LIMIT = {f"{SECURITY}.ulimits[].{each}": value for each, value in (("name", "stack"), ("soft", -1), ("hard", -1))}
OF_HTTP = {f"{PROBE}.type": "HTTP", f"{PROBE}.port": 80, f"{PROBE}.path": "/"}
OF_EXEC = {f"{PROBE}.type": "Exec", f"{PROBE}.command": ["true"]}
OF_TCP = {f"{PROBE}.type": "TCP", f"{PROBE}.port": 80}
SCRAPED = {f"{TEMPLATE}.metrics_endpoint.port": 80}
OPEN = {f"{EGRESS}.default": "deny"}
RULE = {**OPEN, f"{EGRESS}.allow[].cidr": "10.0.0.0/8"}
URLS_REFUSED = ("", "metrics", "/a b", "/é", "/\n", "/" + "a" * 2048)

AROUND_IT = [
    part(SECURITY, ABSENT, As({}, STORED_SECURITY)),
    flag(f"{SECURITY}.privileged"),
    one_of(f"{SECURITY}.ipc_mode", "private", "private", "host"),
    one_of(f"{SECURITY}.pid_mode", "private", "private", "host"),
    listed(f"{SECURITY}.cap_add", (["NET_ADMIN", "CAP_BPF"], ["ALL"]), (["net_admin"], [""], ["FLY"], ["ALL"] * 65)),
    listed(f"{SECURITY}.cap_drop", (["ALL"], ["CAP_CHOWN"]), (["chown"], [""], ["CAP_"], ["ALL"] * 65)),
    listed(f"{SECURITY}.security_opt", (["no-new-privileges", "seccomp=unconfined"],), ([""], ["a\0"], ["a"] * 65)),
    listed(
        f"{SECURITY}.ulimits",
        ([{"name": "stack", "soft": 1, "hard": -1}], [{"name": each, "soft": 0, "hard": 0} for each in limits.ULIMITS]),
        ([{"name": "stack", "soft": 1, "hard": 1}] * 2, [{"soft": 1, "hard": 1}]),
    ),
    Row(f"{SECURITY}.ulimits[].name", REQUIRED, limits.ULIMITS, ("", "RLIMIT_STACK", "STACK", "x", 1, None, []), LIMIT),
    whole(f"{SECURITY}.ulimits[].soft", REQUIRED, -1, (1 << 63) - 1, beside=LIMIT),
    whole(f"{SECURITY}.ulimits[].hard", REQUIRED, -1, (1 << 63) - 1, beside={**LIMIT, f"{SECURITY}.ulimits[].soft": 0}),
    part(PROBE, ABSENT, As({"type": "TCP", "port": 1}, {"type": "TCP", "port": 1, **STORED_PROBE})),
    Row(f"{PROBE}.type", REQUIRED, ("TCP",), ("tcp", "GRPC", "", 1, None, []), {f"{PROBE}.port": 80}),
    text(f"{PROBE}.path", REQUIRED, ("/", "/healthz?a=b"), URLS_REFUSED, beside=OF_HTTP),
    whole(f"{PROBE}.port", REQUIRED, 1, 65_535, beside=OF_HTTP),
    Row(
        f"{PROBE}.command",
        REQUIRED,
        (["true"], ["sh", "-c", ""], ["a"] * 1_024),
        ([], ["a\0"], ["a"] * 1_025, *NOT_LISTS),
        OF_EXEC,
    ),
    whole(f"{PROBE}.interval_seconds", 10, 2, 86_400, beside={**OF_TCP, f"{PROBE}.timeout_seconds": 1}),
    whole(f"{PROBE}.timeout_seconds", 5, 1, 86_399, beside={**OF_TCP, f"{PROBE}.interval_seconds": 86_400}),
    whole(f"{PROBE}.failure_threshold", 3, 1, 1_000, beside=OF_TCP),
    whole(f"{PROBE}.initial_delay_seconds", 0, 0, 86_400, beside=OF_TCP),
    part(
        f"{TEMPLATE}.metrics_endpoint",
        ABSENT,
        As({"port": 9090}, {"port": 9090, "path": "/metrics", "interval_seconds": 15}),
    ),
    whole(f"{TEMPLATE}.metrics_endpoint.port", REQUIRED, 1, 65_535, beside={f"{TEMPLATE}.metrics_endpoint": {}}),
    text(f"{TEMPLATE}.metrics_endpoint.path", "/metrics", ("/", "/a/b"), URLS_REFUSED, beside=SCRAPED),
    whole(f"{TEMPLATE}.metrics_endpoint.interval_seconds", 15, 5, 86_400, beside=SCRAPED),
    only(f"{TEMPLATE}.external_accesses", [], [{"port": 80}], [1], {}, "x", None),
    part(f"{TEMPLATE}.network", ABSENT, {}),
    part(EGRESS, ABSENT, As({}, {"default": "allow", "allow": [], "cluster": "all"})),
    one_of(f"{EGRESS}.default", "allow", "allow", "deny"),
    listed(
        f"{EGRESS}.allow",
        (As([{"host": "a.b"}], [{"host": "a.b", "ports": []}]), [{"cidr": "10.0.0.0/8", "ports": [1]}]),
        ([{"host": "a", "cidr": "10.0.0.0/8"}], [{"host": "a"}] * 257),
        beside=OPEN,
    ),
    Row(
        f"{EGRESS}.allow[].host",
        REQUIRED,
        ("localhost", "example.com", "*.example.com", "a-b.c_d", "a" * 63),
        ("", "*", "*.", "*example.com", "a.*.b", "a b", "a.", ".a", "-a", "é", "10.0.0.1", "a" * 64, "a:80", "http://a",
         5, True, [], {}, "a\0"),
        OPEN,
    ),
    Row(
        f"{EGRESS}.allow[].cidr",
        REQUIRED,
        ("10.0.0.0/8", "0.0.0.0/0", "10.1.2.3", "10.1.2.3/32"),
        ("", "10.0.0.1/8", "10.0.0.0/33", "256.0.0.1", "10.0.0", "::/0", "a", "10.0.0.0/255.0.0.0", "10.0.0.0/",
         "\u0660.0.0.0", 5, True, [], {}, "a\0"),
        OPEN,
    ),
    Row(
        f"{EGRESS}.allow[].ports",
        [],
        ([], [1, 65_535]),
        ([0], [65_536], ["80"], [80.0], [True], [None], [1] * 257, "x", 5, None, {}),
        RULE,
    ),
    Row(
        f"{EGRESS}.cluster",
        "all",
        ("none", "namespace", "all", As(None, "all")),
        ("", "All", "x", 1, True, []),
        {EGRESS: {}},
    ),
    one_of(f"{TEMPLATE}.isolation", "standard", "standard", "sandbox", refuses=("gvisor",)),
    only(f"{TEMPLATE}.identity", False, True, 0, "false", None),
    part(f"{TEMPLATE}.outputs", ABSENT, {}),
    text(f"{TEMPLATE}.outputs.answer_path", ABSENT, JOB_PLACES, NO_JOB_PLACES),
    only(f"{TEMPLATE}.tools", None, {}, [], True, "x"),
    only(f"{TEMPLATE}.agent_sandbox", None, {}, [], True, "x"),
    only(f"{TEMPLATE}.interactive", None, {}, [], True, "x"),
]  # fmt: skip

INIT = {f"{TEMPLATE}.init_containers[].image": "busybox"}
CONTEXT = {f"{TEMPLATE}.context_bindings[].name": "c"}

NEVER_ACTED_UPON = [
    listed(
        f"{TEMPLATE}.init_containers",
        (As([{"image": "a"}], [{"image": "a", "args": [], "env": {}}]),),
        ([{"image": "a"}] * MANY, [{}]),
    ),
    name(f"{TEMPLATE}.init_containers[].name", ABSENT, beside=INIT),
    text(f"{TEMPLATE}.init_containers[].image", REQUIRED, ("a/b:c",), ("", "A B"),
         beside={f"{TEMPLATE}.init_containers": [{}]}),
    text(f"{TEMPLATE}.init_containers[].command", ABSENT, ("sh",), beside=INIT),
    listed(f"{TEMPLATE}.init_containers[].args", (["", "a"],), (["a\0"],), beside=INIT),
    Row(f"{TEMPLATE}.init_containers[].env", {}, ({"A": "x"},), ({"1": ""}, {"STADO_X": ""}, {"A": 1}, [], None), INIT),
    listed(
        f"{TEMPLATE}.context_bindings",
        (As([{"name": "c"}], [{"name": "c", "mode": "ReadOnly"}]),),
        ([{"name": "c"}] * MANY, [{}]),
    ),
    name(f"{TEMPLATE}.context_bindings[].name", REQUIRED, beside={f"{TEMPLATE}.context_bindings": [{}]}),
    place(f"{TEMPLATE}.context_bindings[].mount_path", ABSENT, beside=CONTEXT),
    one_of(f"{TEMPLATE}.context_bindings[].mode", "ReadOnly", "ReadOnly", "ReadWrite", beside=CONTEXT),
]  # fmt: skip

TASK_ROWS: list[Row] = [*WHAT_RUNS, *ASKS, *MOUNTS, *AROUND_IT, *NEVER_ACTED_UPON, *RESTARTS]
