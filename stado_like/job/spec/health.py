"""`health_check` and `metrics_endpoint`: what is asked of a running task from outside.

A readiness probe decides whether others may rely on the task (`depends_on` with Healthy, endpoints); a failing one
never restarts it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text, Whole
from stado_like.job.spec.metadata import PART

Port = Annotated[int, Whole(limits.PORT)]
UrlPath = Annotated[
    str, Text(max_bytes=2048, pattern=r"/[!-~]*", rule="a path beginning with /, of printable ASCII without spaces")
]


class HealthCheck(BaseModel):
    """A readiness probe."""

    model_config = PART

    type: Annotated[str, OneOf(("HTTP", "TCP", "Exec"))] = Field(
        description="HTTP: a GET answered with 200 to 399. TCP: a connection opens. Exec: a command exits 0.",
    )
    path: UrlPath | None = Field(default=None, description="What is asked for; required for HTTP, HTTP only.")
    port: Port | None = Field(default=None, description="The task's port; required for HTTP and TCP.")
    command: list[Annotated[str, Text(empty=True)]] | None = Field(
        default=None,
        max_length=limits.PROBE_ARGS_MAX,
        description="The program and its arguments; required for Exec, Exec only.",
    )
    interval_seconds: Annotated[int, Whole(limits.PROBE_INTERVAL_S, "seconds")] = Field(
        default=limits.DEFAULT_PROBE_INTERVAL_S, description="Between probes."
    )
    timeout_seconds: Annotated[int, Whole(limits.PROBE_TIMEOUT_S, "seconds")] = Field(
        default=limits.DEFAULT_PROBE_TIMEOUT_S,
        description="How long a probe may take; less than interval_seconds.",
    )
    failure_threshold: Annotated[int, Whole(limits.FAILURE_THRESHOLD)] = Field(
        default=3, description="Consecutive failures before the task is unhealthy."
    )
    initial_delay_seconds: Annotated[int, Whole(limits.INITIAL_DELAY_S, "seconds")] = Field(
        default=0, description="Before the first probe."
    )


class MetricsEndpoint(BaseModel):
    """A Prometheus endpoint of the task that its machine scrapes."""

    model_config = PART

    port: Port = Field(description="The task's port.")
    path: UrlPath = Field(default="/metrics", description="What is asked for.")
    interval_seconds: Annotated[int, Whole(limits.SCRAPE_S, "seconds")] = Field(
        default=15, description="Between scrapes."
    )
