"""Every way this software refuses, in one small tree.

    StadoError                      code, message, next_step, detail, exit_code
    ├── Refused              (2)    nothing was written: the input is wrong
    │   ├── InvalidSpecification    VALIDATION_ERROR | UNKNOWN_FIELD, one `detail` entry per field
    │   └── UsageError              a command line that cannot be understood
    ├── NotFound             (3)    no such job, task, worker, object
    ├── Conflict             (4)    it exists already, or is in the wrong state
    │   └── TickHeld                another tick holds the store
    ├── StoreError           (5)    the store cannot be reached, refuses us, or cannot be trusted
    │   ├── StoreUnavailable        no definite answer within the budget: never read as "no"
    │   ├── CredentialsRefused
    │   ├── BucketMissing
    │   └── StoreUntrusted          a probe showed a broken promise
    ├── TimedOut           (124)    what was waited for did not happen in the time given; it goes on
    ├── PartlyDone           (6)    the rest was done, something was set aside
    └── BadRecord            (6)    one stored record cannot be read; set aside, never fatal to a loop
        └── NewerRecord             written by a newer major version: upgrade before touching it

Classes come from types and status codes, never from words in a text. A message says what was seen, with
the numbers; `next_step` says what to do about it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """Exit codes of every command. Added to, never changed."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORE = 5
    PARTLY = 6
    TIMED_OUT = 124
    INTERRUPTED = 130


class StadoError(Exception):
    """Something a person should read. `detail` maps a field's path, or a name, to its own sentence."""

    code = "ERROR"
    exit_code = Exit.FAILED

    def __init__(
        self,
        message: str,
        next_step: str = "",
        *,
        detail: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.detail: dict[str, str] = detail or {}
        if code is not None:
            self.code = code

    def as_json(self) -> dict[str, Any]:
        """The one shape in which errors leave the system: `{"code", "message", "detail"}` and the next step."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message, "detail": self.detail}
        if self.next_step:
            shown["next_step"] = self.next_step
        return shown


class Refused(StadoError):
    code = "REFUSED"
    exit_code = Exit.REFUSED


class InvalidSpecification(Refused):
    """`detail` has one sentence per wrong field; an unknown field makes the code UNKNOWN_FIELD."""

    code = "VALIDATION_ERROR"


class UsageError(Refused):
    code = "USAGE"


class NotFound(StadoError):
    code = "NOT_FOUND"
    exit_code = Exit.NOT_FOUND


class Conflict(StadoError):
    code = "CONFLICT"
    exit_code = Exit.CONFLICT


class TickHeld(Conflict):
    code = "TICK_HELD"


class StoreError(StadoError):
    code = "STORE_ERROR"
    exit_code = Exit.STORE


class StoreUnavailable(StoreError):
    """No definite answer: the request may or may not have been carried out."""

    code = "STORE_UNAVAILABLE"


class CredentialsRefused(StoreError):
    code = "STORE_CREDENTIALS_REFUSED"


class BucketMissing(StoreError):
    code = "STORE_BUCKET_MISSING"


class StoreUntrusted(StoreError):
    code = "STORE_UNTRUSTED"


class TimedOut(StadoError):
    code = "TIMED_OUT"
    exit_code = Exit.TIMED_OUT


class PartlyDone(StadoError):
    code = "PARTLY_DONE"
    exit_code = Exit.PARTLY


class BadRecord(StadoError):
    code = "BAD_RECORD"
    exit_code = Exit.PARTLY


class NewerRecord(BadRecord):
    code = "NEWER_RECORD"
