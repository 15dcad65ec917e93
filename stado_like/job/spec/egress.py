"""`network.egress`: what a task may reach outbound.

The default depends on itself: under `deny` a task reaches the tasks of its own workspace, under `allow` everything. So
`cluster` is filled in when the document is stored, and a policy that restricts nothing is one that nobody enforces.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text
from stado_like.job.spec.health import Port
from stado_like.job.spec.metadata import PART

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_V4 = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?")


def _is_an_address(host: str) -> str:
    return f"Must be a name; for an address write cidr: {host}" if _V4.fullmatch(host) else ""


def _is_no_network(text: str) -> str:
    said = "an IPv4 network or address, as 10.0.0.0/8 or 10.1.2.3"
    if not _V4.fullmatch(text):
        return f"Must be {said}"
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return f"Must be {said}; each number is 0 to 255, the mask 0 to 32"
    if "/" in text and str(network.network_address) != text.split("/")[0]:
        return f"Must be {said}: {text} is an address within a network; did you mean {network}?"
    return ""


class Allowed(BaseModel):
    """One destination: a name or a network, on any port or on some."""

    model_config = PART

    host: (
        Annotated[
            str,
            Text(
                max_bytes=253,
                pattern=rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*",
                rule="a host's name, or *. and one",
                also=_is_an_address,
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="A name that the task may resolve and reach. *.example.com is one label under it, not example.com "
        "itself.",
    )
    cidr: Annotated[str, Text(max_bytes=64, rule="as 10.0.0.0/8 or 10.1.2.3", also=_is_no_network)] | None = Field(
        default=None, description="An IPv4 network or address."
    )
    ports: list[Port] = Field(
        default_factory=list,
        max_length=limits.EGRESS_PORTS_MAX,
        description="TCP and UDP ports; none named is any.",
    )


class Egress(BaseModel):
    """What the tasks may reach outbound."""

    model_config = PART

    default: Annotated[str, OneOf(("allow", "deny"))] = Field(
        default="allow", description="deny: nothing outbound except what allow names."
    )
    allow: list[Allowed] = Field(
        default_factory=list,
        max_length=limits.EGRESS_RULES_MAX,
        description="What may be reached under deny.",
    )
    cluster: Annotated[str, OneOf(("none", "namespace", "all"))] | None = Field(
        default=None,
        description="Which other tasks it may reach: none, those of its workspace, or all. Default namespace under "
        "deny, where all is refused, and all under allow.",
    )

    @model_serializer(mode="wrap")
    def _with_its_cluster(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored: dict[str, Any] = plain(self)
        if self.cluster is None:
            stored["cluster"] = "namespace" if self.default == "deny" else "all"
        return stored


class TaskNetwork(BaseModel):
    """A task's network policy."""

    model_config = PART

    egress: Egress | None = Field(default=None, description="What the tasks may reach outbound.")
