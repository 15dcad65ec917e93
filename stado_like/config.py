"""Settings: flag > STADO_* > file > default, looked at once, each value with the place it came from.

Not obvious because programs share one environment. A job that calls `stado` inherits the `STADO_*` names that tell a
process about itself (`STADO_JOB`, `STADO_ATTEMPT`, …), so unknown `STADO_*` names are not refused; unknown keys of the
file are, with the nearest known one, because a misspelt setting that is silently ignored is worse than an error.

The file is `~/.config/stado/config.toml` (`XDG_CONFIG_HOME` respected), or what `STADO_CONFIG` names:

    store = "s3://bucket/prefix?endpoint_url=http://127.0.0.1:8333"
    workspace = "default"

    [secrets]
    hf-token = "env:HF_TOKEN"

Durations are numbers of seconds. `[secrets]` says where a worker finds credentials (see `secret_sources`): sources,
never values, and never overridden by a flag or a variable. Scripts written for `ASTRAEUS_` names are understood:
they stand behind the `STADO_` name and before the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stado_like.errors import Refused
from stado_like.secret_sources import Credential, parse_table

DEFAULT_STORE = "file://~/.local/share/stado"
SECRETS = "secrets"
SCHEMES = ("file", "s3", "memory")

_WORKSPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: `kind` is flag | environment | file | default, `name` the flag, variable or path."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Settings:
    """What a process was told, once and for good. Graces in seconds, `bundle_*` and `collect_max` in bytes; `None`
    means: as the cluster's own record says."""

    store: str
    workspace: str
    state_dir: str
    json: bool
    stats: bool
    debug: bool
    no_color: bool
    cache: bool
    stop_grace_s: float | None
    max_stop_grace_s: float | None
    retry_max_attempts: int | None
    machine_restarts: int | None
    bundle_max: int
    bundle_cache: int
    collect_max: int
    config_file: str
    secrets: Mapping[str, Credential] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)

    @property
    def grace_s(self) -> int | None:
        return None if self.stop_grace_s is None else int(self.stop_grace_s)

    @property
    def most_grace_s(self) -> int | None:
        return None if self.max_stop_grace_s is None else int(self.max_stop_grace_s)


class _Wrong(Exception):
    """A value that cannot be understood; the text says what would be."""


def _text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise _Wrong("should be a text that is not empty")


def _store(value: object) -> str:
    url = _text(value)
    if url.partition("://")[0] not in SCHEMES or "://" not in url:
        raise _Wrong("should be file:///path, s3://bucket/prefix or memory://name")
    return url  # `store/url.py` looks at the rest; here it is only told from which source it came


def _workspace(value: object) -> str:
    name = _text(value)
    if not _WORKSPACE.match(name):
        raise _Wrong("should be lower-case letters, digits and '-', at most 63")
    return name


def _directory(value: object) -> str:
    return os.path.abspath(_at_home(_text(value)))


def _at_home(path: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise _Wrong("begins with '~', and no home directory is known here: give an absolute path")
    return expanded


def _yes_no(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise _Wrong("should be true or false")


def _number(low: float, high: float) -> Callable[[object], float]:
    def parse(value: object) -> float:
        try:
            number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise _Wrong(f"should be a number of seconds from {low:g} to {high:g}")
        return number

    return parse


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?B)?|B)?\Z", re.ASCII | re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


def _size(value: object) -> int:
    """Bytes. `2G` and `2GiB` are 2^31, `2GB` is 2 x 10^9, as in a job's own sizes."""
    found = _SIZE.match(str(value).strip()) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    if found is None:
        raise _Wrong("should be a size: 512MiB, 2GiB, 2G (= GiB), 1.5GB (= 10^9), or a number of bytes")
    letter, rest = (found[2] or "").upper(), (found[3] or "").upper()
    return int(float(found[1]) * (1000 if rest == "B" else 1024) ** _POWERS.get(letter, 0))


def _count(high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        try:
            number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not 0 <= number <= high:
            raise _Wrong(f"should be a whole number from 0 to {high}")
        return number

    return parse


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    parse: Callable[[object], Any]
    default: object
    variables: tuple[str, ...]


SETTINGS: tuple[_Setting, ...] = (
    _Setting("store", _store, DEFAULT_STORE, ("STADO_STORE",)),
    _Setting("workspace", _workspace, "default", ("STADO_WORKSPACE",)),
    _Setting("state_dir", _directory, "~/.local/state/stado", ("STADO_STATE",)),
    _Setting("json", _yes_no, False, ("STADO_JSON",)),
    _Setting("stats", _yes_no, False, ("STADO_STATS",)),
    _Setting("debug", _yes_no, False, ("STADO_DEBUG",)),
    _Setting("no_color", _yes_no, False, ("STADO_NO_COLOR",)),
    _Setting("cache", _yes_no, True, ("STADO_CACHE",)),
    _Setting("stop_grace_s", _number(1, 3600), None, ("STADO_STOP_GRACE", "ASTRAEUS_STOP_GRACE")),
    _Setting("max_stop_grace_s", _number(1, 86_400), None, ("STADO_MAX_STOP_GRACE", "ASTRAEUS_MAX_STOP_GRACE")),
    _Setting("retry_max_attempts", _count(10_000), None, ("STADO_RETRY_MAX_ATTEMPTS", "ASTRAEUS_RETRY_MAX_ATTEMPTS")),
    _Setting("machine_restarts", _count(10_000), None, ("STADO_MACHINE_RESTARTS", "ASTRAEUS_MACHINE_RESTARTS")),
    _Setting("bundle_max", _size, 512 << 20, ("STADO_BUNDLE_MAX",)),
    _Setting("bundle_cache", _size, 4 << 30, ("STADO_BUNDLE_CACHE",)),
    _Setting("collect_max", _size, 1 << 30, ("STADO_COLLECT_MAX",)),
)


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settle every setting. `flags` holds only those that were given. Raises `Refused`, all wrong values at once."""
    environ = os.environ if environ is None else environ
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    path, path_origin, from_file = _read_file(environ)
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {"config_file": path_origin}
    secrets, wrong = parse_table(from_file.get(SECRETS, {}))
    origins[SECRETS] = Origin("file", str(path)) if secrets else Origin("default")
    for setting in SETTINGS:
        raw, origin = _first(setting, given, environ, from_file, path)
        origins[setting.name] = origin
        try:
            values[setting.name] = None if raw is None else setting.parse(raw)
        except _Wrong as why:
            wrong[setting.name] = f"{why}, found {raw!r} in {origin}"
    grace, ceiling = values.get("stop_grace_s"), values.get("max_stop_grace_s")
    if not wrong and grace is not None and ceiling is not None and grace > ceiling:
        wrong["stop_grace_s"] = f"{grace:g} is above its ceiling, max_stop_grace_s {ceiling:g}"
    if wrong:
        raise Refused(
            f"{len(wrong)} {'setting is' if len(wrong) == 1 else 'settings are'} wrong",
            "Correct it where it says; `stado config show` lists every setting and its source.",
            detail=wrong,
            code="CONFIG_INVALID",
        )
    return Settings(**values, config_file=str(path), secrets=secrets, origins=origins)


def ticks_kept_in(settings: Settings) -> Path | None:
    """Where ticks of this machine keep for the next one what never changes; None where the settings say no."""
    return Path(settings.state_dir).expanduser() / ".ticks" if settings.cache else None


def settings_file(environ: Mapping[str, str]) -> Path:
    """Where the settings file is, or would be."""
    if environ.get("STADO_CONFIG"):
        return Path(environ["STADO_CONFIG"]).expanduser()
    return Path(environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "stado" / "config.toml"


def read_secrets(path: Path) -> Mapping[str, Credential]:
    """The `[secrets]` table alone, for whoever looks again while it runs: other keys are not judged. Raises
    `Refused`."""
    secrets, wrong = parse_table((_read_toml(path) or {}).get(SECRETS, {}))
    if wrong:
        raise _bad_file(path, "; ".join(f"{where} {why}" for where, why in wrong.items()), "Correct it.")
    return secrets


def _first(
    setting: _Setting, flags: Mapping[str, object], environ: Mapping[str, str], file: Mapping[str, object], path: Path
) -> tuple[object, Origin]:
    if setting.name in flags:
        return flags[setting.name], Origin("flag", "--" + setting.name.replace("_", "-"))
    for variable in setting.variables:
        if environ.get(variable):  # an empty variable is how a shell unsets one for a single command
            return environ[variable], Origin("environment", variable)
    if setting.name == "no_color" and environ.get("NO_COLOR"):
        return True, Origin("environment", "NO_COLOR")  # no-color.org: present and not empty, whatever its value
    if setting.name in file:
        return file[setting.name], Origin("file", str(path))
    return setting.default, Origin("default")


def _read_file(environ: Mapping[str, str]) -> tuple[Path, Origin, Mapping[str, object]]:
    named = environ.get("STADO_CONFIG")
    path = settings_file(environ)
    origin = Origin("environment", "STADO_CONFIG") if named else Origin("default")
    table = _read_toml(path)
    if table is None:
        if named:
            raise _bad_file(path, "it does not exist", "Create it, or unset STADO_CONFIG.")
        return path, origin, {}
    known = [*(setting.name for setting in SETTINGS), SECRETS]
    unknown = {key: _nearest(key, known) for key in table if key not in known}
    if unknown:
        raise Refused(
            f"{path} has {len(unknown)} unknown {'key' if len(unknown) == 1 else 'keys'}: {', '.join(unknown)}",
            "Remove or correct it; `stado config show` lists every setting.",
            detail=unknown,
            code="CONFIG_INVALID",
        )
    return path, origin, table


def _read_toml(path: Path) -> Mapping[str, object] | None:
    """None where there is no file. Raises `Refused`."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _bad_file(path, error.strerror or str(error), "Make it readable.") from None
    import tomllib  # only when there is a file: 4 ms of every command

    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad_file(path, f"it is not TOML: {error}", "Correct that place.") from None


def _bad_file(path: Path, why: str, next_step: str) -> Refused:
    return Refused(f"the settings file {path} cannot be used: {why}", next_step, code="CONFIG_INVALID")


def _nearest(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1, cutoff=0.5)
    return f"unknown; did you mean {near[0]}?" if near else f"unknown; known are {', '.join(known)}"
