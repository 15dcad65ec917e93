"""The `[secrets]` table of the settings file: where this machine finds the credentials that runs ask for by name.

    [secrets]
    hf-token = "env:HF_TOKEN"                        # one value, or a JSON object whose members are its keys
    login    = "secretsmanager:prod/login?region=eu-west-1"

    [secrets.database]                               # a source for each key; the whole content is the value
    password = "file:/run/keys/db?trim=1"
    user     = "ssm:/prod/db/user"
    region   = "eu-west-1"                           # for every source of this table

Not obvious because people paste the value itself where its source should stand. So nothing that was found there is ever
repeated in an error, and only sources, which hold no secret, are shown. Pure: nothing is asked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

KINDS = ("env", "file", "ssm", "secretsmanager")
REMOTE = ("ssm", "secretsmanager")
OPTIONS = ("trim", "region", "endpoint_url")
FORMS = "env:NAME, file:/path, ssm:NAME or secretsmanager:NAME"
NOT_SHOWN = "what stands there is not repeated, since it may be the value itself"
MOST_SOURCES = 1000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_YES_NO = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class WrongSource(Exception):
    """An entry that cannot be understood; the text says what would be, and nothing of what was there."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place that holds one content. `trim`: line ends after the value are cut off."""

    kind: str
    name: str
    trim: bool = False
    region: str = ""
    endpoint_url: str = ""

    @property
    def is_remote(self) -> bool:
        return self.kind in REMOTE

    def __str__(self) -> str:
        options = {"trim": "1" if self.trim else "", "region": self.region, "endpoint_url": self.endpoint_url}
        said = "&".join(f"{name}={value}" for name, value in options.items() if value)
        return f"{self.kind}:{self.name}" + (f"?{said}" if said else "")


@dataclass(frozen=True, slots=True)
class Credential:
    """What the table says of one name: `whole`, one source for all its keys, or `keys`, a source for each."""

    whole: Source | None = None
    keys: Mapping[str, Source] = field(default_factory=dict)


def parse_table(table: object) -> tuple[dict[str, Credential], dict[str, str]]:
    """The credentials by name, and what is wrong by the path of the entry, all at once."""
    if not isinstance(table, Mapping):
        return {}, {"secrets": f"should be a table of name = source; {NOT_SHOWN}"}
    found: dict[str, Credential] = {}
    wrong: dict[str, str] = {}
    if len(table) > MOST_SOURCES:
        return {}, {"secrets": f"names {len(table)} credentials, at most {MOST_SOURCES} are read"}
    for name, entry in table.items():
        where = f"secrets.{name}"
        if not _NAME.match(str(name)):
            wrong[where] = "the name should be letters, digits, '.', '-' and '_', beginning with a letter, digit or '_'"
        elif isinstance(entry, Mapping):
            found[name] = _of_keys(entry, where, wrong)
        else:
            try:
                found[name] = Credential(whole=parse_source(entry))
            except WrongSource as why:
                wrong[where] = str(why)
    return found, wrong


def _of_keys(entry: Mapping[str, object], where: str, wrong: dict[str, str]) -> Credential:
    """A table: sources by key, and options for all of them, which no source can be mistaken for."""
    options: dict[str, object] = {}
    keys: dict[str, Source] = {}
    for key, value in entry.items():
        try:
            if key in OPTIONS and not _begins_like_a_source(value):
                options[key] = _option(key, value)
            elif not is_file_name(key):
                raise WrongSource("the key should be usable as a file's name: no '/', at most 255 bytes, not '.'")
            else:
                keys[key] = parse_source(value)
        except WrongSource as why:
            wrong[f"{where}.{key}"] = str(why)
    if not keys and not any(path.startswith(f"{where}.") for path in wrong):
        wrong[where] = f'should have at least one key = source, such as token = "file:/path" ({FORMS})'
    return Credential(keys={key: _with_defaults(source, options) for key, source in keys.items()})


def _with_defaults(source: Source, options: Mapping[str, object]) -> Source:
    return replace(
        source,
        trim=source.trim or bool(options.get("trim", False)),
        region=source.region or str(options.get("region", "")),
        endpoint_url=source.endpoint_url or str(options.get("endpoint_url", "")),
    )


def parse_source(text: object) -> Source:
    """One source. Raises `WrongSource`."""
    if not _begins_like_a_source(text):
        raise WrongSource(f"should be {FORMS}; {NOT_SHOWN}")
    kind, _, rest = str(text).partition(":")
    name, mark, query = rest.rpartition("?")
    if not mark:
        name, query = rest, ""
    from urllib.parse import parse_qsl  # only where there is a source: 2 ms of every command

    options: dict[str, object] = {}
    for option, value in parse_qsl(query, keep_blank_values=True):
        if option not in OPTIONS:
            raise WrongSource(f"has an option after '?' that is not known; known are {', '.join(OPTIONS)}")
        options[option] = _option(option, value)
    if mark and not options:
        raise WrongSource(f"has a '?' that no option follows; known are {', '.join(OPTIONS)}")
    if not name or "\0" in name:
        raise WrongSource(f"names nothing after '{kind}:'; it should be {FORMS}")
    if kind == "env" and not _VARIABLE.match(name):
        raise WrongSource(f"should name an environment variable after 'env:'; {NOT_SHOWN}")
    if kind == "file" and not name.startswith(("/", "~/")):
        raise WrongSource("should name an absolute path after 'file:'")
    return _with_defaults(Source(kind, name), options)


def _begins_like_a_source(value: object) -> bool:
    return isinstance(value, str) and value.partition(":")[0] in KINDS and ":" in value


def _option(name: str, value: object) -> object:
    if name == "trim":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _YES_NO:
            return _YES_NO[value.lower()]
        raise WrongSource("trim should be true or false (trim=1 after a '?')")
    if not isinstance(value, str) or not value:
        raise WrongSource(f"{name} should be a text, or the entry one of {FORMS}; {NOT_SHOWN}")
    if name == "endpoint_url" and not value.startswith(("http://", "https://")):
        raise WrongSource("endpoint_url should be http://host:port or https://host")
    return value


def is_file_name(key: str) -> bool:
    """Whether a key can be the name of a file."""
    return (
        0 < len(key.encode(errors="surrogateescape")) <= 255
        and "/" not in key
        and "\0" not in key
        and key
        not in (
            ".",
            "..",
        )
    )


def shown(credentials: Mapping[str, Credential]) -> dict[str, str]:
    """Every entry as text, by its path below the file's top: sources, which hold no secret."""
    lines: dict[str, str] = {}
    for name, credential in credentials.items():
        if credential.whole is not None:
            lines[f"secrets.{name}"] = str(credential.whole)
        lines |= {f"secrets.{name}.{key}": str(source) for key, source in credential.keys.items()}
    return lines
