"""`task_template.resilience`: how a task is stopped, and how often it is started again.

Two vocabularies meet here. `max_restarts` and `max_retries_failure` are one budget under two names: either is taken,
both and unequal are refused, and only `max_restarts` is stored.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Whole
from stado_like.job.spec.metadata import PART

Restarts = Annotated[int, Whole(limits.RESTARTS)]


class Resilience(BaseModel):
    """How a task is stopped, and how often it is started again."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset({"stall", "straggler", "signal_before_limit"})

    stop_signal: Annotated[str, OneOf(limits.STOP_SIGNALS)] = Field(
        default="SIGTERM", description="Signal name, default SIGTERM. Sent first on a stop."
    )
    max_restarts: Restarts = Field(
        default=limits.DEFAULT_MAX_RESTARTS,
        description="Integer, 0 to 1000, default 10. Restarts after its own failures and stalls.",
    )
    max_machine_restarts: Restarts = Field(
        default=limits.DEFAULT_MAX_MACHINE_RESTARTS,
        description="Integer, 0 to 1000, default 20. Restarts after faults of its machine or GPUs.",
    )
    max_preemptions: Restarts | None = Field(
        default=None,
        description="Integer, 0 to 1000, default no cap. Preemptions and moves after which it is not preempted again.",
    )
    preemptible_after_seconds: Annotated[int, Whole(limits.PREEMPTIBLE_AFTER_S, "seconds")] | None = Field(
        default=None,
        description="Integer, seconds, 0 to 604800, default none. Not preempted before each attempt has run this long.",
    )
    backoff_seconds: Annotated[int, Whole(limits.BACKOFF_S, "seconds")] = Field(
        default=limits.DEFAULT_BACKOFF_S,
        description="Integer, seconds, 1 to 86400, default 10. The first wait before a restart, doubled each time.",
    )
    max_backoff_seconds: Annotated[int, Whole(limits.BACKOFF_S, "seconds")] = Field(
        default=limits.DEFAULT_MAX_BACKOFF_S,
        description="Integer, seconds, 1 to 86400, at least backoff_seconds. The longest wait. Default 300, or "
        "backoff_seconds where that is longer.",
    )
    max_retries_failure: Restarts | None = Field(
        default=None, description="Integer, 0 to 1000. Another name of max_restarts; stored under that name."
    )
    max_retries_preemption: Restarts = Field(
        default=limits.DEFAULT_MAX_RETRIES_PREEMPTION,
        description="Integer, 0 to 1000, default 100. Preemptions and machine losses after which the task ends "
        "Preempted.",
    )
    stop_after_disconnect_seconds: Annotated[int, Whole(limits.STOP_AFTER_DISCONNECT_S, "seconds")] | None = Field(
        default=None,
        description="Integer, seconds, 1 to 31622400, default never. A task cut off from the store this long stops "
        "by itself.",
    )
