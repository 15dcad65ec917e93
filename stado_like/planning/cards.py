"""Which GPUs of a machine a task gets, and why none.

Healthy ones first, and one at risk only where no healthy one is left. Then all within one NVLink domain where one has
enough of them, and of several such domains the one that is left with the fewest: large free groups are worth more than
small ones. Shares of a card go where the least is left that suffices, so that whole cards stay whole. What takes every
free one takes those at risk too, unless it asks for healthy ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.hardware import AT_RISK, FAULTED, HEALTHY, Device, GpuKind


def _is_free(device: Device, kind: GpuKind) -> bool:
    return device.usable and device.free_share >= kind.share_of(device)


def usable_cards(cards: Sequence[Device], kind: GpuKind) -> list[Device]:
    """Those that a task of this kind may be given, whoever holds them now."""
    return [d for d in cards if d.usable and kind.is_met_by(d) and not (kind.healthy_only and d.health != HEALTHY)]


def why_no_cards(cards: Sequence[Device], need: int, kind: GpuKind) -> list[str]:
    """Why the machine has no such `need` GPUs free; empty: it has."""
    matching = [one for one in cards if kind.is_met_by(one)]
    if not matching and not kind.is_any:
        return [_no_such(cards, need, kind)]
    free = [one for one in matching if _is_free(one, kind)]
    if kind.healthy_only:
        at_risk = sum(one.health == AT_RISK for one in free)
        free = [one for one in free if one.health == HEALTHY]
        if len(free) < need and at_risk:
            return [says.needs_healthy_gpus(need, len(free), at_risk), *_faults(matching)]
    if len(free) < need:
        return [reasons.insufficient_gpus(need, len(free)), *_faults(matching)]
    return []


def _faults(cards: Iterable[Device]) -> list[str]:
    return [says.gpu_fault(one.index, one.trouble or "faulted") for one in cards if one.health == FAULTED]


def _no_such(cards: Sequence[Device], need: int, kind: GpuKind) -> str:
    if kind.share_gb and not any(one.memory_bytes for one in cards):
        return says.no_shared_gpu(kind.share_gb)
    if kind.ids and not any(one.id in kind.ids for one in cards):
        return says.no_gpu_with_id(" or ".join(kind.ids))
    if not kind.vendor and not kind.models and kind.at_least_gb:
        return says.no_gpu_so_large(kind.at_least_gb)
    return says.no_such_gpu(str(kind)) if str(kind) else reasons.insufficient_gpus(need, 0)


def choose_cards(cards: Sequence[Device], need: int, kind: GpuKind) -> tuple[Device, ...]:
    """The `need` GPUs that a task gets, in the machine's order; fewer than that: it does not fit."""
    free = [one for one in cards if kind.is_met_by(one) and _is_free(one, kind)]
    healthy = [one for one in free if one.health == HEALTHY]
    chosen = _tightest(healthy, need)
    if len(chosen) < need and not kind.healthy_only:
        chosen = _tightest(free, need, healthy_first=True)
    return tuple(sorted(chosen, key=lambda one: one.index)) if len(chosen) >= need else ()


def free_cards(cards: Sequence[Device], kind: GpuKind) -> tuple[Device, ...]:
    """All that a task of this kind may be given now."""
    return tuple(one for one in usable_cards(cards, kind) if _is_free(one, kind))


def _tightest(free: Sequence[Device], need: int, *, healthy_first: bool = False) -> list[Device]:
    """Of the GPUs that may be given, the `need` that leave the least broken up."""

    def least_left(one: Device) -> tuple[bool, int, int]:
        return (healthy_first and one.health != HEALTHY, one.free_share, one.index)

    groups: dict[str, list[Device]] = {}
    for one in free:
        groups.setdefault(one.nvlink_domain, []).append(one)

    def at_risk(group: list[Device]) -> int:
        return sum(one.health != HEALTHY for one in sorted(group, key=least_left)[:need]) if healthy_first else 0

    enough = [name for name, group in groups.items() if len(group) >= need]
    if enough:
        name = min(enough, key=lambda one: (at_risk(groups[one]), not one, len(groups[one]), one))
        return sorted(groups[name], key=least_left)[:need]
    largest_first = sorted(groups, key=lambda one: (-len(groups[one]), one))
    spread = [one for name in largest_first for one in sorted(groups[name], key=least_left)]
    return sorted(spread, key=lambda one: healthy_first and one.health != HEALTHY)[:need]
