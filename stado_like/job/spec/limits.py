"""Every default and every bound of the run specification, once.

The models check against them, `stado_like.job.terms` falls back to them when it reads a document that an older
version stored without a field. A bound that the published run specification names is kept to the number; the others
are ours, because every number that reaches a record or a key must have an end.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

STORED_MAX_BYTES: Final = 8 * MIB
"""A specification as JSON: what any accepted one may come to when it is printed, so that it can be submitted again."""
DOCUMENT_MAX_BYTES: Final = 1 * MIB
"""A specification as text. What is larger is a mistake (data pasted into a variable) or an attack."""

NAME_MAX: Final = 57  # `<name>-<rank>` stays a DNS label
LABELS_MAX: Final = 64
LABEL_KEY_MAX: Final = 253
LABEL_VALUE_MAX: Final = 1024
RESERVED_LABEL_PREFIXES: Final = ("astraeus.io/", "job.astraeus.io/", "stado.io/")
RESERVED_ENV_PREFIXES: Final = ("STADO_", "ASTRAEUS_")
DEFAULT_WORKSPACE: Final = "default"

PRIORITY: Final = (-1000, 1000)
TASKS_MAX: Final = 10_000  # of one job, in all of its groups
GROUPS_MAX: Final = 100
GROUP_NAME_MAX: Final = NAME_MAX - 2  # `<name>-<group>-<rank>` stays a DNS label with a name of one letter
ARRAY_SIZE: Final = (1, TASKS_MAX)
ARRAY_INDEX: Final = (0, (1 << 31) - 1)
ENTRIES_MAX_BYTES: Final = 1 * MIB
AFTER_MAX: Final = 100
COLLECT_MAX: Final = 100
SHARED_VOLUMES_MAX: Final = 100
SCHEDULING_TIMEOUT_S: Final = (1, 31_622_400)
HEARTBEAT_RETRIES: Final = (0, 1_000)
IDLE_S: Final = (0, 31_622_400)
LANES_WITHOUT_A_CAP: Final = 64  # ranks of an array without `max_parallel` are released along this many lanes
ARRAY_BLOCK: Final = (1, 128)  # tasks that one claim may carry
DEFAULT_BLOCK_MOST: Final = 64
BLOCKS_LEAST: Final = 32  # an array has by default at least so many, so that many machines share it from the start
MAX_TASK_FAILURES: Final = (0, 10_000)

TIME_LIMIT_S: Final = (60, 31_622_400)
HEARTBEAT_TTL_S: Final = (10, 86_400)
DEFAULT_HEARTBEAT_TTL_S: Final = 60
STOP_GRACE_S: Final = (1, 3_600)

CORES_MAX: Final = 65_536
DEFAULT_CORES: Final = 1
MEMORY_BYTES: Final = (0, 1 << 60)
DEFAULT_MEMORY_BYTES: Final = 1 * GIB
GPUS: Final = (0, 65_536)

RESTARTS: Final = (0, 1_000)
DEFAULT_MAX_RESTARTS: Final = 10
DEFAULT_MAX_MACHINE_RESTARTS: Final = 20
DEFAULT_MAX_RETRIES_PREEMPTION: Final = 100
PREEMPTIBLE_AFTER_S: Final = (0, 604_800)
BACKOFF_S: Final = (1, 86_400)
DEFAULT_BACKOFF_S: Final = 10
DEFAULT_MAX_BACKOFF_S: Final = 300
STOP_AFTER_DISCONNECT_S: Final = (1, 31_622_400)
STOP_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2")
STARTS: Final = ("Gang", "MinAvailable", "Independent")
ON_FAILURES: Final = ("RestartJob", "RestartTask", "FailJob")
POLICIES: Final = ("Gang", "GangIndependent", "Independent")
JOB_STATES: Final = ("Completed", "Failed", "Ended")
JOB_STATE_NAMES: Final = {"afterok": "Completed", "afternotok": "Failed", "afterany": "Ended"}
RESTART_POLICIES: Final = ("OnFailure", "Always", "Never")

PATH_MAX_BYTES: Final = 4_095
ARGS_MAX: Final = 65_536
ENV_MAX: Final = 10_000
ONE_STRING_MAX_BYTES: Final = 120 * KIB
"""One argument, or one `NAME=value`. Linux refuses to start a program with one of 128 KiB (MAX_ARG_STRLEN)."""
ALL_STRINGS_MAX_BYTES: Final = 1 * MIB
"""Command, arguments and environment together. Linux refuses about 2 MiB (a quarter of the stack's limit)."""
BYTES_PER_STRING: Final = 9
"""What each string costs beside its bytes: its NUL and, since Linux counts them too, its pointer."""

MACHINES: Final = (0, TASKS_MAX)  # a task on each
GPU_MODELS_MAX: Final = 64
GPU_IDS_MAX: Final = 4_096
GPU_MEMORY_GB: Final = (1, 16_384)
GPU_VENDORS: Final = ("nvidia", "amd", "intel", "apple")
GPU_POLICIES: Final = ("BestEffort", "PerNode", "All")
KEEP_WITHIN: Final = ("node", "nvlink_domain", "fabric", "rack")
SPREAD: Final = ("node", "rack", "fabric")
PATIENCE_S: Final = (0, 604_800)
INTERCONNECTS: Final = ("auto", "rdma", "infiniband", "nvlink")
GBPS: Final = (0, 1_000_000)
SELECTION_MODES: Final = ("Exact", "Any", "All")
PLACEMENTS: Final = ("Any", "TightestNetwork", "SameRack", "SpreadRacks", "SpreadFabrics", "SameNvlinkDomain")

PULL_POLICIES: Final = ("IfNotPresent", "Always", "None")
VOLUME_KINDS: Final = ("EmptyDir", "Bind")
MOUNT_MODES: Final = ("ReadOnly", "ReadWrite")
MOUNTS_MAX: Final = 256  # volumes, drives, credentials, configs and the paths of one config: each
SECRET_VARIABLES_MAX: Final = 256
CONFIGS_MAX_BYTES: Final = DOCUMENT_MAX_BYTES
SOURCE_INDEX: Final = (0, 1_023)
ULIMIT: Final = (-1, (1 << 63) - 1)
ULIMITS: Final = (
    "as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
    "rttime", "sigpending", "stack",
)  # fmt: skip
CAPABILITIES: Final = (
    "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN", "DAC_OVERRIDE",
    "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN",
    "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE",
    "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
)  # fmt: skip
"""Of Linux 5.9 and later, without CAP_."""

PORT: Final = (1, 65_535)
PROBE_INTERVAL_S: Final = (2, 86_400)
PROBE_TIMEOUT_S: Final = (1, PROBE_INTERVAL_S[1] - 1)
DEFAULT_PROBE_INTERVAL_S: Final = 10
DEFAULT_PROBE_TIMEOUT_S: Final = 5
PROBE_ARGS_MAX: Final = 1_024
FAILURE_THRESHOLD: Final = (1, 1_000)
INITIAL_DELAY_S: Final = (0, 86_400)
SCRAPE_S: Final = (5, 86_400)
EGRESS_RULES_MAX: Final = 256
EGRESS_PORTS_MAX: Final = 256

CHECKPOINT_INTERVAL_S: Final = (30, 86_400)
DEFAULT_CHECKPOINT_INTERVAL_S: Final = 600
CHECKPOINT_FINAL_S: Final = (0, 86_400)
DEFAULT_CHECKPOINT_FINAL_S: Final = 600
CHECKPOINTS_KEPT: Final = (1, 100)
DEFAULT_CHECKPOINTS_KEPT: Final = 2
STALL_AFTER_S: Final = (0, 604_800)
DEFAULT_STALL_AFTER_S: Final = 1_800
STRAGGLER_STEPS: Final = (1, 1_000_000)
DEFAULT_STRAGGLER_STEPS: Final = 10
STRAGGLER_AFTER_S: Final = (0, 604_800)
DEFAULT_STRAGGLER_AFTER_S: Final = 300
SIGNAL_BEFORE_LIMIT_S: Final = (1, 86_400)
DEFAULT_SIGNAL_BEFORE_LIMIT_S: Final = 60
