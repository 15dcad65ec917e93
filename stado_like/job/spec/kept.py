"""Parts that are checked and stored, and on which nothing acts: other systems' documents hold them.

`shared_volumes` and `output_volumes` create no drive; a drive is created by its own command and mounted with
`datavolume_refs`. `idle_auto_delete` deletes nothing. They are stored so that a document goes back to where it came
from whole.
"""

from __future__ import annotations

import re
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import MARKED, Flag, Number, Text, Whole, absolute_path
from stado_like.job.spec.metadata import PART

_HOURS = r"([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00) [A-Za-z][A-Za-z0-9_+/-]{0,63}"
Seconds = Annotated[int, Whole(limits.IDLE_S, "seconds")]


def _is_zone(name: str) -> bool | None:
    """None: this machine has no list of zones to tell."""
    for asked, answer in ((name, True), ("Europe/Berlin", False)):
        try:
            ZoneInfo(asked)
        except (KeyError, ValueError, OSError):
            continue
        return answer
    return None


def _names_a_zone(hours: str) -> str:
    zone = hours.rpartition(" ")[2]
    if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", zone) or _is_zone(zone) is False:
        return f"Must end with the name of an IANA time zone (Europe/Berlin, UTC), got {zone}"
    return ""


class SharedVolume(BaseModel):
    """A volume that the tasks of a job would share."""

    model_config = PART

    name: Annotated[str, Text(max_bytes=limits.LABEL_KEY_MAX)] = Field(
        json_schema_extra=MARKED, description="What the volume is called."
    )
    mount_path: Annotated[str, absolute_path()] | None = Field(
        default=None, json_schema_extra=MARKED, description="Where it would appear."
    )
    size_bytes: Annotated[int, Whole(limits.MEMORY_BYTES, "bytes")] | None = Field(
        default=None, json_schema_extra=MARKED, description="How large it would be."
    )
    retain: Annotated[bool, Flag()] = Field(
        default=False, json_schema_extra=MARKED, description="Whether it would outlive the job."
    )


class OutputVolume(SharedVolume):
    """A volume that would keep what the tasks of a job write."""

    retain: Annotated[bool, Flag()] = Field(
        default=True, json_schema_extra=MARKED, description="Whether it would outlive the job."
    )


class IdleAutoDelete(BaseModel):
    """When a job that does nothing would be deleted."""

    model_config = PART

    enabled: Annotated[bool, Flag()] = Field(
        default=False, json_schema_extra=MARKED, description="Whether it would be deleted at all."
    )
    idle_timeout: Seconds | None = Field(default=None, json_schema_extra=MARKED, description="How long it may be idle.")
    grace_period_at_start: Seconds | None = Field(
        default=None, json_schema_extra=MARKED, description="How long after its start nothing is counted."
    )
    warn_before_kill: Seconds | None = Field(
        default=None, json_schema_extra=MARKED, description="How long before the end it would be warned."
    )
    thresholds: dict[Annotated[str, Text(max_bytes=limits.LABEL_KEY_MAX)], Annotated[float, Number((0, 1e15))]] = Field(
        default_factory=dict,
        max_length=limits.LABELS_MAX,
        json_schema_extra=MARKED,
        description="Below which use of what (gpu_utilization: 5) it counts as idle.",
    )
    bypass_during_hours: (
        Annotated[
            str,
            Text(
                max_bytes=128,
                pattern=_HOURS,
                rule='hours and a time zone, "22:00-06:00 Europe/Berlin"',
                also=_names_a_zone,
            ),
        ]
        | None
    ) = Field(default=None, json_schema_extra=MARKED, description="Hours of the day in which it would not be deleted.")
