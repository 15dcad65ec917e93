"""Paths, names of other things, and variables as a template writes them.

A path that climbs (`..`) means another place on every machine it is written to, so none may; the same holds for a
place in a container, a file that is written beside the job, and a prefix in the bucket.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Text, shown

PLACEHOLDERS: Final = "%x, %j, %J, %A, %a, %b, %t, %n, %N, %s, %u and %%, numbers also with a width (%4t)"
_PLACEHOLDER: Final = re.compile(r"%[0-9]*[AabJjntxNsu%]")
_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?")
_ID_MAX: Final = (1 << 32) - 2  # the last one means "unchanged"


def climbs(path: str) -> bool:
    return ".." in path.split("/")


def _no_place(path: str) -> str:
    if climbs(path):
        return "Must not contain .."
    return "Must be a path below /, got the root itself" if not path.strip("/.") else ""


def _climbs_out(path: str) -> str:
    return "Must not contain .." if climbs(path) else ""


def _leaves_the_job(path: str) -> str:
    if climbs(path):
        return "Must be an absolute path, or one relative to the working directory, without .."
    return "" if path.strip("/.") else "Must name something below its folder"


def _is_inside(path: str) -> str:
    if path.startswith("/") or climbs(path):
        return "Must be a relative path without .."
    return ""


def _reserved_variable(name: str) -> str:
    for prefix in limits.RESERVED_ENV_PREFIXES:
        if name.startswith(prefix):
            return f"Variables beginning with {prefix} are set by the worker and cannot be given"
    return ""


def output_file_fault(path: str) -> str:
    """What is wrong with a log's path; empty when nothing is. As with sbatch, `..` is no mistake, and a backslash
    anywhere switches the letters off."""
    stray = "" if "\\" in path else _PLACEHOLDER.sub("", path)
    if "%" in stray:
        at = stray.index("%")
        return f"Must use % only as {PLACEHOLDERS}, has {shown(stray[at : at + 2])}"
    return "Must name a file, not a folder" if path.endswith("/") or path in (".", "..") else ""


def user_fault(user: str) -> str:
    """What is wrong with who shall run a task; empty when nothing is."""
    numbers = user.split(":")
    if len(numbers) <= 2 and all(re.fullmatch(r"[0-9]{1,20}", each) for each in numbers):
        over = next((each for each in numbers if int(each) > _ID_MAX), None)
        return f"Must have ids up to {_ID_MAX}, has {over}" if over else ""
    return "" if _USER.fullmatch(user) else f"Must be a user's name, a uid or uid:gid, got {shown(user)}"


MountPath = Annotated[
    str, Text(max_bytes=limits.PATH_MAX_BYTES, pattern=r"/[\s\S]*", rule="an absolute path without ..", also=_no_place)
]
"""Where something appears to the task."""

HostPath = Annotated[
    str,
    Text(max_bytes=limits.PATH_MAX_BYTES, pattern=r"/[\s\S]*", rule="an absolute path without ..", also=_climbs_out),
]
"""A path of the machine; `/` is one."""

JobPath = Annotated[
    str,
    Text(
        max_bytes=limits.PATH_MAX_BYTES,
        rule="a path, absolute or relative to the working directory, without ..",
        also=_leaves_the_job,
    ),
]
"""Absolute, or relative to the working directory."""

InnerPath = Annotated[str, Text(max_bytes=limits.PATH_MAX_BYTES, rule="a relative path without ..", also=_is_inside)]
"""Relative to something that is named beside it."""

ResourceName = Annotated[
    str,
    Text(
        max_bytes=253,
        pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
        rule="letters, digits, _ . and -, beginning with a letter, digit or _",
    ),
]
"""The name of a credential, a drive, a machine."""

VariableName = Annotated[
    str,
    Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        rule="a variable's name: letters, digits and _, not beginning with a digit",
        also=_reserved_variable,
    ),
]
