"""`task_template.resilience`: how a task is stopped, and how often it is started again.

Two vocabularies meet here. `max_restarts` and `max_retries_failure` are one budget under two names: either is taken,
both and unequal are refused, and only `max_restarts` is stored.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Flag, OneOf, Whole
from stado_like.job.spec.metadata import PART

Restarts = Annotated[int, Whole(limits.RESTARTS)]
Signal = Annotated[str, OneOf(limits.STOP_SIGNALS)]


class Stall(BaseModel):
    """When a task that shows no sign of progress counts as stalled, and what then."""

    model_config = PART

    after_seconds: Annotated[int, Whole(limits.STALL_AFTER_S, "seconds")] = Field(
        default=limits.DEFAULT_STALL_AFTER_S,
        description="Without a line in its log, a checkpoint or a progress report (STADO_PROGRESS) for this long it "
        "is stalled; 0: never.",
    )
    restart: Annotated[bool, Flag()] = Field(
        default=False,
        description="Whether a stalled task is stopped and restarted, which spends max_restarts; otherwise it is only "
        "marked.",
    )


class Straggler(BaseModel):
    """When a task counts as the one its gang waits for."""

    model_config = PART

    behind_steps: Annotated[int, Whole(limits.STRAGGLER_STEPS, "steps")] = Field(
        default=limits.DEFAULT_STRAGGLER_STEPS,
        description="How far the step it reports lags the median of its gang.",
    )
    after_seconds: Annotated[int, Whole(limits.STRAGGLER_AFTER_S, "seconds")] = Field(
        default=limits.DEFAULT_STRAGGLER_AFTER_S, description="For how long without a break."
    )


class SignalBeforeLimit(BaseModel):
    """A signal that warns of the time limit."""

    model_config = PART

    signal: Signal = Field(description="The signal, sent once to all processes of the task's group.")
    seconds: Annotated[int, Whole(limits.SIGNAL_BEFORE_LIMIT_S, "seconds")] = Field(
        default=limits.DEFAULT_SIGNAL_BEFORE_LIMIT_S,
        description="How long before time_limit_seconds; less than it.",
    )


class Resilience(BaseModel):
    """How a task is stopped, and how often it is started again."""

    model_config = PART

    stop_signal: Signal = Field(default="SIGTERM", description="Sent first on a stop.")
    max_restarts: Restarts = Field(
        default=limits.DEFAULT_MAX_RESTARTS, description="Restarts after its own failures and stalls."
    )
    max_machine_restarts: Restarts = Field(
        default=limits.DEFAULT_MAX_MACHINE_RESTARTS, description="Restarts after faults of its machine or GPUs."
    )
    max_preemptions: Restarts | None = Field(
        default=None,
        description="Preemptions and moves after which it is not preempted again; left out, there is no cap.",
    )
    preemptible_after_seconds: Annotated[int, Whole(limits.PREEMPTIBLE_AFTER_S, "seconds")] | None = Field(
        default=None,
        description="Not preempted before each attempt has run this long.",
    )
    backoff_seconds: Annotated[int, Whole(limits.BACKOFF_S, "seconds")] = Field(
        default=limits.DEFAULT_BACKOFF_S, description="The first wait before a restart, doubled each time."
    )
    max_backoff_seconds: Annotated[int, Whole(limits.BACKOFF_S, "seconds")] = Field(
        default=limits.DEFAULT_MAX_BACKOFF_S,
        description="The longest wait; at least backoff_seconds, which is its default where that is longer.",
    )
    max_retries_failure: Restarts | None = Field(
        default=None, description="Another name of max_restarts; stored under that name."
    )
    max_retries_preemption: Restarts = Field(
        default=limits.DEFAULT_MAX_RETRIES_PREEMPTION,
        description="Preemptions and machine losses after which the task ends Preempted.",
    )
    stop_after_disconnect_seconds: Annotated[int, Whole(limits.STOP_AFTER_DISCONNECT_S, "seconds")] | None = Field(
        default=None,
        description="A task cut off from the store this long stops by itself; left out, never.",
    )
    signal_before_limit: SignalBeforeLimit | None = Field(
        default=None, description="A signal that warns of the time limit."
    )
    stall: Stall | None = Field(
        default=None,
        description="When a task without progress is stalled, and what then; left out, tasks with GPUs are marked "
        "after 1800 seconds.",
    )
    straggler: Straggler | None = Field(
        default=None,
        description="When a task counts as the one its gang waits for; left out, gangs are watched by the defaults.",
    )
