"""Options that exclude each other, or that mean nothing without another, named as they were typed.

The specification would refuse most of these as well, but by paths of a document that the person never saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stado_like.errors import UsageError

if TYPE_CHECKING:
    from stado_like.jobspec import JobSpec


def exclusions(spec: JobSpec) -> None:
    """Raises `UsageError` that names both options."""
    for one, other, why in (
        (spec.array is not None and "--array", bool(spec.entries) and "--each-line", "each says how many tasks"),
        (spec.array is not None and "--array", spec.gang and "--gang", "an array's tasks start each by itself"),
        (bool(spec.entries) and "--each-line", spec.gang and "--gang", "an array's tasks start each by itself"),
        (spec.array is not None and "--array", _several(spec) and "--machines", "each says how many tasks"),
        (bool(spec.entries) and "--each-line", _several(spec) and "--machines", "each says how many tasks"),
        (
            isinstance(spec.gpus, str) and ":" in spec.gpus and f"--gpus {spec.gpus}",
            bool(spec.gpu_models) and "--gpu-model",
            "both name models",
        ),
    ):
        if one and other:
            raise UsageError(f"{one} and {other} exclude each other: {why}", "Give one of them.")
    template = _mapping(_mapping(spec.document.get("spec")).get("task_template"))
    gpus = _mapping(_mapping(template.get("requested_resources")).get("gpu_requests"))
    for flag, given, needs, present in (
        ("--gpu-model", spec.gpu_models, "--gpus", spec.gpus is not None or "count" in gpus),
        ("--gpu-memory", spec.gpu_memory is not None, "--gpus", spec.gpus is not None or "count" in gpus),
        ("--signal", spec.signal, "--time", spec.time_limit is not None or "time_limit_seconds" in template),
        ("--torchrun", spec.torchrun, "a command", bool(spec.command)),
    ):
        if given and not present:
            raise UsageError(f"{flag} means nothing without {needs}", f"Give {needs} as well, or leave {flag} out.")


def _several(spec: JobSpec) -> bool:
    return spec.machines is not None and spec.machines > 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
