"""Why a command could not be started, told apart.

Not obvious because the system answers "No such file or directory" for three things: the working directory is missing
(the machine or the job's `cwd` is wrong: there is no exit code), the command is missing (127, as shells say), and the
script's interpreter is missing (126).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from enum import StrEnum

from stado_like.errors import StadoError

NOT_FOUND = 127
NOT_EXECUTABLE = 126


class StartFault(StrEnum):
    DIRECTORY = "directory"
    NOT_FOUND = "not-found"
    NOT_EXECUTABLE = "not-executable"
    TOO_LONG = "too-long"
    MACHINE = "machine"


class CouldNotStart(StadoError):
    """The command never ran. `command_exit`: the exit code to record (127, 126), None where there is none.
    `fault` MACHINE: no process could be made at all (processes, memory, descriptors used up): not the command's doing.
    """

    code = "COULD_NOT_START"

    def __init__(self, message: str, next_step: str, *, fault: StartFault, command_exit: int | None) -> None:
        super().__init__(message, next_step)
        self.fault = fault
        self.command_exit = command_exit


def check_directory(cwd: str, host: str) -> None:
    """Raises CouldNotStart when `cwd` cannot be the working directory."""
    if not os.path.isdir(cwd):
        what = "is not a directory" if os.path.lexists(cwd) else "does not exist"
        raise CouldNotStart(
            f"Working directory {cwd} {what} on {host}",
            "Create it on that machine, or ship the directory with --workdir",
            fault=StartFault.DIRECTORY,
            command_exit=None,
        )
    if not os.access(cwd, os.X_OK):
        raise CouldNotStart(
            f"Working directory {cwd} cannot be entered on {host}: permission denied",
            "Let the worker's user enter it",
            fault=StartFault.DIRECTORY,
            command_exit=None,
        )


def explain(error: OSError, command: Sequence[str], cwd: str, env: Mapping[str, str], host: str) -> CouldNotStart:
    """From what the start answered to what a person should read."""
    try:
        check_directory(cwd, host)  # it may have gone between the first look and the start
    except CouldNotStart as missing:
        return missing
    name = command[0]
    if error.errno == errno.E2BIG:
        size = sum(len(os.fsencode(word)) + 1 for word in command)
        size += sum(len(os.fsencode(k)) + len(os.fsencode(v)) + 2 for k, v in env.items())
        return CouldNotStart(
            f"Arguments and environment of {name} are too long for {host}: {size} bytes together",
            "Pass large values in files; one argument or variable may hold 120 KiB, all together 1 MiB",
            fault=StartFault.TOO_LONG,
            command_exit=NOT_EXECUTABLE,
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return CouldNotStart(
            f"No process could be started on {host}: {error.strerror}",
            "The machine has run out of processes, memory or descriptors: see its limits",
            fault=StartFault.MACHINE,
            command_exit=None,
        )
    found = _resolved(name, cwd, env)
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and found is None:
        where = "" if "/" in name else f" in PATH={env.get('PATH', '')}"
        return CouldNotStart(
            f"Command not found: {name}{where} on {host}",
            "Install it there, give its whole path, or ship it with --workdir .",
            fault=StartFault.NOT_FOUND,
            command_exit=NOT_FOUND,
        )
    return CouldNotStart(
        f"Cannot execute {found or name} on {host}: {_why_not(error, found)}",
        "A script needs a first line such as #!/bin/sh and the right to be executed (chmod +x)",
        fault=StartFault.NOT_EXECUTABLE,
        command_exit=NOT_EXECUTABLE,
    )


def _resolved(name: str, cwd: str, env: Mapping[str, str]) -> str | None:
    """The file that `name` means, executable or not; None where there is none."""
    if "/" in name:
        path = os.path.join(cwd, name)
        return path if os.path.exists(path) else None
    return shutil.which(name, mode=os.F_OK, path=env.get("PATH", os.defpath))


def _why_not(error: OSError, found: str | None) -> str:
    if error.errno == errno.ENOEXEC:
        return "it has no interpreter line and is no program of this machine's kind"
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and found is not None:
        interpreter = _interpreter(found)
        return f"its interpreter {interpreter!r} does not exist" if interpreter else "its loader does not exist"
    if error.errno == errno.EACCES and found is not None and os.path.isdir(found):
        return "it is a directory"
    return error.strerror or str(error)


def _interpreter(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].rstrip(b"\n").split(b" ")
    return os.fsdecode(next((word for word in words if word), b""))
