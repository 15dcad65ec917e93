"""One source of a credential -> the bytes that lie there, exactly, or one of two other answers.

    Missing        asked, and it is not there (yet)
    CouldNotTell   it could not be asked: no network, no permission, not a plain file

The two are kept apart because both make a task wait, and only the second has something to tell. Neither ever carries
content.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from stado_like.secret_sources import Source

MOST_BYTES = 1 << 20


class Missing(Exception):
    """Not there (yet)."""


class CouldNotTell(Exception):
    """The source gave no answer; the text says why, for people."""


def ask(source: Source, environ: Mapping[str, str]) -> bytes:
    """The content of a source. Raises `Missing`, `CouldNotTell`."""
    match source.kind:
        case "env":
            if source.name not in environ:
                raise Missing
            return os.fsencode(environ[source.name])
        case "file":
            return _file(os.path.expanduser(source.name))
        case _:
            from stado_worker.secrets import aws  # boto3: only where something of AWS is asked

            return aws.ask(source, environ)


def _file(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe without a writer must not hang us
    except (FileNotFoundError, NotADirectoryError):
        raise Missing from None
    except OSError as error:
        raise CouldNotTell(f"{path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CouldNotTell(f"{path} is not a plain file")
        with os.fdopen(fd, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CouldNotTell(f"{path}: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(content) > MOST_BYTES:
        raise CouldNotTell(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    return content
