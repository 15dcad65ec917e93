"""The GPUs and network ports of a machine, as a person describes them to `worker start --gpus`.

A number of GPUs, `none`, or `file:PATH` with a JSON object:

    {"gpus": [{"id": "GPU-0", "model": "NVIDIA H100 80GB HBM3", "vendor": "nvidia", "memory_bytes": 85520809984,
               "health": "healthy", "trouble": "", "nvlink_domain": "nv-0"}],
     "ports": [{"kind": "infiniband", "gbps": 400, "active": true, "name": "mlx5_0"}]}

Everything but a port's `kind` may be left out. A GPU without an id has its place in the list for one; `health` is
healthy, at-risk or faulted, and `trouble` what such a GPU reported; `kind` is infiniband, roce or ethernet. Two GPUs of
one NVLink domain reach each other over NVLink, also from machine to machine.

What a person says is believed, and what is misspelt is refused: a field that is not known here would otherwise describe
a machine that is not there.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stado_like.errors import UsageError
from stado_like.job.hardware import HEALTH, PORT_KINDS, Device, Port

MOST_GPUS: Final = 1024


@dataclass(frozen=True, slots=True)
class Hardware:
    gpus: tuple[Device, ...] = ()
    ports: tuple[Port, ...] = ()


NO_HARDWARE: Final = Hardware()


def hardware_said(said: str) -> Hardware:
    """What `--gpus` says. Raises `UsageError`."""
    if said == "none":
        return NO_HARDWARE
    if said.startswith("file:"):
        return _in_file(Path(said.removeprefix("file:")).expanduser())
    if said.isascii() and said.isdecimal() and int(said) <= MOST_GPUS:
        return Hardware(tuple(Device(id=str(index), index=index) for index in range(int(said))))
    raise UsageError(
        f"--gpus {said}: a number up to {MOST_GPUS}, none, or file:PATH",
        "`--gpus 8` offers eight GPUs; `--gpus file:gpus.json` those that the file describes.",
    )


def _in_file(path: Path) -> Hardware:
    try:
        plain = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(
            f"--gpus file:{path}: it cannot be read ({error.strerror})", "Name a JSON file that describes GPUs."
        ) from None
    except ValueError as error:
        raise UsageError(
            f"--gpus file:{path}: it is not JSON ({error})", 'It looks like {"gpus": [{"model": "H100"}]}.'
        ) from None
    return described(plain, str(path))


def described(plain: Any, where: str) -> Hardware:
    """The hardware that a parsed file describes; `where` names it in an error. Raises `UsageError`."""
    parts = _fields(plain, {"gpus": list, "ports": list}, where)
    gpus = [_gpu(one, index, f"{where}: gpus[{index}]") for index, one in enumerate(parts.get("gpus", ()))]
    ports = [_port(one, f"{where}: ports[{index}]") for index, one in enumerate(parts.get("ports", ()))]
    if len(gpus) > MOST_GPUS:
        raise UsageError(f"{where}: {len(gpus)} GPUs, and a machine has {MOST_GPUS} at the most")
    seen: set[str] = set()
    for one in gpus:
        if one.id in seen:
            raise UsageError(f"{where}: two GPUs with the id {one.id}", "Give each its own.")
        seen.add(one.id)
    return Hardware(tuple(gpus), tuple(ports))


def _gpu(plain: Any, index: int, where: str) -> Device:
    names = ("id", "model", "vendor", "health", "trouble", "nvlink_domain")
    said = _fields(plain, {**dict.fromkeys(names, str), "memory_bytes": int}, where)
    _one_of(said, "health", HEALTH, where)
    return dataclasses.replace(Device(id=str(index), index=index), **said)


def _port(plain: Any, where: str) -> Port:
    said = _fields(plain, {"kind": str, "name": str, "gbps": int, "active": bool}, where)
    if "kind" not in said:
        raise UsageError(f"{where}: it has no kind", f"One of {', '.join(PORT_KINDS)}.")
    _one_of(said, "kind", PORT_KINDS, where)
    return Port(**said)


def _fields(plain: Any, known: Mapping[str, type], where: str) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise UsageError(f"{where}: should be an object, found {str(plain)[:60]}")
    for name, value in plain.items():
        kind = known.get(name)
        if kind is None:
            raise UsageError(f"{where}: no such field: {name}", f"Those that there are: {', '.join(known)}.")
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            wanted = {str: "a text", int: "a whole number from 0 on", bool: "true or false", list: "a list"}[kind]
            raise UsageError(f"{where}: {name} should be {wanted}, found {str(value)[:60]}")
    return plain


def _one_of(said: Mapping[str, Any], name: str, choices: tuple[str, ...], where: str) -> None:
    if name in said and said[name] not in choices:
        raise UsageError(f"{where}: {name} should be one of {', '.join(choices)}, found {said[name]}")
