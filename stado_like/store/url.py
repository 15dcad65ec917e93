"""A store's URL and the store it names.

What a URL may say is listed here once; a word that is not understood is refused by name, because a misspelt `durable`
or `endpoint_url` that is ignored would put jobs somewhere else, or less safely, than was asked.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from stado_like.ambient import REAL, Ambient
from stado_like.errors import UsageError
from stado_like.store.local import LocalStore
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import ObjectStore

ACCEPTED = "file:///path[?durable=0], s3://bucket/prefix[?endpoint_url=…&region=…&addressing=…&driver=…&poll=1s], memory://name"
OPTIONS = {
    "file": ("durable", "poll"),
    "s3": ("endpoint_url", "region", "addressing", "driver", "poll"),
    "memory": ("poll",),
}
ADDRESSINGS = ("path", "virtual", "auto")
DRIVERS = ("lean", "plain")
NEAR_POLL_S = 0.01
LOOPBACK_POLL_S = 0.02
FAR_POLL_S = 1.0
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|)").fullmatch
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}").fullmatch


@dataclass(frozen=True, slots=True)
class _Named:
    """A URL taken apart: `place` is a directory, a bucket or a name."""

    scheme: str
    place: str
    prefix: str = ""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The same store, said in one way."""
        path = quote(self.place, safe="/._-~+@:,=") if self.scheme == "file" else self.place
        text = f"{self.scheme}://{path}" + (f"/{self.prefix}" if self.prefix else "")
        query = "&".join(f"{name}={quote(value, safe=':/._-[]')}" for name, value in self.options.items())
        return f"{text}?{query}" if query else text


def open_store(url: str, *, ambient: Ambient = REAL, meter: Meter | None = None) -> ObjectStore:
    """The store that `url` names, counted by `meter` when one is given. Sends nothing yet, and makes nothing.

    Raises `UsageError` naming what is accepted, `BucketMissing` when a directory store names a file.
    """
    named = _read(url)
    options = named.options
    store: ObjectStore
    if named.scheme == "file":
        store = LocalStore(named.place, _is_durable(options), ambient, url=named.url)
    elif named.scheme == "memory":
        store = MemoryStore(named.place, ambient, url=named.url)
    else:
        from stado_like.store.s3_store import S3Store  # a command on a directory need not load its modules

        store = S3Store(
            named.place,
            named.prefix,
            endpoint_url=options.get("endpoint_url"),
            region=options.get("region"),
            addressing=options.get("addressing", "auto"),
            driver=options.get("driver"),
            near=_is_loopback(options.get("endpoint_url", "")),
            ambient=ambient,
            url=named.url,
        )
    return store if meter is None else MeteredStore(store, meter)


def poll_s(url: str) -> float:
    """How often a waiting process should look, seconds: `poll=` when given, else by how far the store is."""
    named = _read(url)
    if "poll" in named.options:
        return _duration_s(named.options["poll"])
    if named.scheme != "s3":
        return NEAR_POLL_S
    return LOOPBACK_POLL_S if _is_loopback(named.options.get("endpoint_url", "")) else FAR_POLL_S


def _read(url: str) -> _Named:
    try:
        parts = urlsplit(url)
    except ValueError as wrong:
        raise UsageError(f"{url!r} is not a store's URL: {wrong}", f"Accepted are {ACCEPTED}.") from wrong
    if parts.scheme not in OPTIONS:
        raise UsageError(
            f"{url!r} names no store: its scheme is {parts.scheme!r}" if parts.scheme else f"{url!r} has no scheme",
            f"Accepted are {ACCEPTED}.",
        )
    if parts.fragment or url.endswith("#"):
        raise UsageError(f"{url!r} has a '#'", "Write a '#' inside a path as %23.")
    options = _options(parts, url)
    if parts.scheme == "file":
        return _Named("file", _directory(parts, url), options=options)
    if parts.scheme == "memory":
        name = parts.netloc + parts.path.rstrip("/")
        if not name:
            raise UsageError(f"{url!r} has no name", "Write memory://name.")
        return _Named("memory", name, options=options)
    prefix = parts.path.strip("/")
    if not _BUCKET(parts.netloc):
        raise UsageError(f"{url!r} names no bucket: {parts.netloc!r}", "Write s3://bucket/prefix.")
    if prefix and not re.fullmatch(r"(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+(/(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+)*", prefix):
        raise UsageError(
            f"the prefix {prefix!r} cannot be used",
            "A prefix is segments of letters, digits, '_', '.' and '-' joined by '/'.",
        )
    return _Named("s3", parts.netloc, prefix, options)


def _directory(parts: SplitResult, url: str) -> str:
    path = unquote(parts.path)
    if parts.netloc.startswith("~"):
        path = os.path.expanduser(parts.netloc + path)
    elif parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{url!r} names a host, {parts.netloc!r}", "A directory has three slashes: file:///path, or file://~/path."
        )
    if not path or "\x00" in path or not path.startswith("/"):
        raise UsageError(f"{url!r} names no directory", "Write file:///path or file://~/path.")
    return os.path.normpath(path)


def _options(parts: SplitResult, url: str) -> dict[str, str]:
    accepted = OPTIONS[parts.scheme]
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in accepted:
            raise UsageError(
                f"{name!r} is not an option of a {parts.scheme}:// store",
                f"Its options are {', '.join(accepted)}; for others of a value write '&' as %26.",
            )
        if name in options or not value:
            raise UsageError(f"{name!r} is given {'twice' if value else 'no value'} in {url!r}", "Give it one value.")
        options[name] = value
    _check(options)
    return options


def _check(options: dict[str, str]) -> None:
    _is_durable(options)
    if "poll" in options:
        _duration_s(options["poll"])
    if options.get("addressing", "auto") not in ADDRESSINGS:
        raise UsageError(f"addressing={options['addressing']!r} is unknown", f"It is one of {', '.join(ADDRESSINGS)}.")
    if options.get("driver", "lean") not in DRIVERS:
        raise UsageError(f"driver={options['driver']!r} is unknown", f"It is one of {', '.join(DRIVERS)}.")
    if "endpoint_url" in options:
        endpoint = options["endpoint_url"]
        try:
            parts = urlsplit(endpoint)
            sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            sound = False
        if not sound:
            raise UsageError(f"endpoint_url={endpoint!r} is no endpoint", "Write http://host:port or https://host.")
        if parts.username or parts.password:
            raise UsageError(
                "endpoint_url holds a user name or password",
                "URLs are shown and stored: give credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or by AWS_PROFILE.",
            )


def _is_durable(options: dict[str, str]) -> bool:
    said = options.get("durable", "1")
    if said not in ("0", "1"):
        raise UsageError(f"durable={said!r} is unknown", "Write durable=0 to drop fsync, or durable=1.")
    return said == "1"


def _duration_s(text: str) -> float:
    match = _DURATION(text)
    seconds = float(match[1]) * _UNITS_S[match[2]] if match else 0.0
    if not 0.001 <= seconds <= 600:
        raise UsageError(f"poll={text!r} is no duration from 1ms to 10m", "Write 50ms, 1s, 2m or bare seconds.")
    return seconds


def _is_loopback(endpoint_url: str) -> bool:
    host = urlsplit(endpoint_url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
