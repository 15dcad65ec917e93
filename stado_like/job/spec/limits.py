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
ARRAY_SIZE: Final = (1, 10_000)
LANES_WITHOUT_A_CAP: Final = 64  # ranks of an array without `max_parallel` are released along this many lanes
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
