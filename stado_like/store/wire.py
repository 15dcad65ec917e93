"""One request to an S3 server, sent once, whichever driver carries it: what the drivers share.

The SDK's own retries, or any other's, are switched off altogether. A conditional write that is sent twice is refused
by its own first sending, and the caller would be told that it lost what it won. What comes back is an `Answer`,
`Answered` (an error status), or `Silent` (no whole answer); what those mean for an object is `s3_store`'s question.

One connection serves a process, whatever the number of threads and stores: a client costs a quarter of a second and
30 MiB, and building several at once on the SDK's shared session is not safe. It is built from a session, never from
key strings, so that credentials which expire are fetched afresh by the SDK's own chain.

There are two drivers. `s3` is boto3's client, the reference; `lean` signs with the same signer and the same chain of
credentials, but speaks HTTP and reads answers itself, at a third of the time. What `lean` does not know (a proxy,
FIPS endpoints, …) it names by `NeedsPlain` before anything was sent, and the plain driver takes its place.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, NoReturn, TypeVar

from stado_like.ambient import Ambient
from stado_like.errors import CredentialsRefused, UsageError
from stado_like.store.clock import DateHeader, StoreClock
from stado_like.store.http_answer import REDIRECTS, Reply

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 8.0  # with the connection and Python's start, an endpoint that never answers is told within 10 s
FIRST_CONTACT_S = 6.5  # bound of the first request of a process: name servers and many dead addresses have no other
NEXT_CONTACT_S = 3.0
T = TypeVar("T")


class Answered(Exception):
    """The server answered with an error status."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.in_words)
        self.reply = reply


class Silent(Exception):
    """No whole answer came: time-out, reset, refused connection, garbled answer."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class NeedsPlain(Exception):
    """The lean driver cannot do what this machine or bucket asks for, and says what that is."""


class Listed(NamedTuple):
    """One row of a listing as the server gave it: `key` is whole. A tuple, because pages hold a thousand."""

    key: str
    etag: str
    size_bytes: int
    last_modified: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A success. Fields that the operation has no use for keep their defaults."""

    status: int
    date: str | None
    etag: str = ""
    last_modified: float = 0.0
    size_bytes: int = 0
    body: bytes = b""
    rows: tuple[Listed, ...] = ()
    truncated: bool = False
    versioning: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a connection leads. Stores of one place share it."""

    driver: str
    endpoint_url: str | None
    region: str | None
    addressing: str
    concurrency: int


class Connection(ABC):
    """The one connection of this process to a place. Operations and their arguments have the names of S3's API."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.answered = False  # some answer came from there, of whatever status
        self.first_asked_at_s: float | None = None
        self.used = False
        self._client: Any = None
        self._lock = Lock()

    def client(self) -> Any:
        client = self._client
        if client is None:
            with self._lock:
                if self._client is None:
                    self._client = self._built()
                client = self._client
        return client

    def _built(self) -> Any:
        from botocore.exceptions import BotoCoreError, InvalidRegionError

        try:
            return self._build()
        except InvalidRegionError as wrong:
            raise UsageError(
                str(wrong), "Correct region= in the store's URL, AWS_DEFAULT_REGION or ~/.aws/config."
            ) from wrong
        except ValueError as wrong:
            raise UsageError(
                f"{self.place.endpoint_url!r} is not an endpoint: {wrong}",
                "Write it as http://host:port or https://host.",
            ) from wrong
        except BotoCoreError as wrong:
            raise CredentialsRefused(
                f"the AWS configuration of this machine cannot be used: {wrong}",
                "Correct AWS_PROFILE and ~/.aws/config, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            ) from wrong

    @abstractmethod
    def _build(self) -> Any:
        """What sends requests; made once, without sending any."""

    def make_ready(self, bucket: str) -> None:
        """Build without sending. Raises `NeedsPlain`."""
        self.client()

    @abstractmethod
    def ask(self, bucket: str, operation: str, arguments: Mapping[str, Any]) -> Answer:
        """Send once. Raises `Answered`, `Silent`, and what botocore raises when there are no credentials."""

    def after_fork(self) -> None:
        """In the child: sockets and locks of a used client belong to the parent. An unused one may be kept."""
        self._lock = Lock()
        if self.used:
            self._client, self.used = None, False


_connections: dict[Place, Connection] = {}
_connections_lock = Lock()


def _connection(place: Place) -> Connection:
    with _connections_lock:
        if place not in _connections:
            _connections[place] = _made(place)
        return _connections[place]


def _made(place: Place) -> Connection:
    if place.driver == "plain":
        from stado_like.store.s3 import PlainConnection  # neither driver loads the other's modules

        return PlainConnection(place)
    from stado_like.store.lean import LeanConnection

    return LeanConnection(place)


def _after_fork_in_child() -> None:
    global _connections_lock
    _connections_lock = Lock()
    for connection in _connections.values():
        connection.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def forget_clients() -> None:
    """The next store opened in this process builds a client of its own: after the environment's credentials changed."""
    with _connections_lock:
        _connections.clear()


class Wire:
    """Requests about one bucket. `where` is its name for messages; `clock` is told every `Date`.

    `insists`: the driver was named by a person, so what it cannot do is refused instead of done by the other one.
    """

    def __init__(self, bucket: str, place: Place, ambient: Ambient, *, insists: bool) -> None:
        self._bucket = bucket
        self._ambient = ambient
        self._insists = insists
        self._connection = _connection(place)
        self.where = f"bucket {bucket} at {place.endpoint_url or 'Amazon S3'}"
        self.clock = StoreClock(ambient)
        self.dates = DateHeader()

    def prepare(self) -> None:
        """Build the client without sending anything, so that children forked later need not."""
        self._ready()

    @property
    def driver(self) -> str:
        """The driver that carries the requests, known for certain once something was prepared or sent."""
        return self._connection.place.driver

    def _ready(self) -> Connection:
        try:
            self._connection.make_ready(self._bucket)
        except NeedsPlain as lacking:
            if self._insists:
                raise UsageError(
                    f"the lean driver cannot reach {self.where}: {lacking}",
                    "Say driver=plain in the store's URL, or name no driver.",
                ) from None
            self._connection = _connection(replace(self._connection.place, driver="plain"))
            self._connection.make_ready(self._bucket)
            import logging

            logging.getLogger(__name__).info("%s is reached by the plain driver: %s", self.where, lacking)
        return self._connection

    def send(self, operation: str, **arguments: Any) -> Answer:
        """Send once; a server that names another region has done nothing, so that is followed, once."""
        try:
            return self._send_here(operation, arguments)
        except Answered as answered:
            reply, here = answered.reply, self._connection.place
            if reply.status not in REDIRECTS | {400} or not reply.region or reply.region == here.region:
                raise
            self._connection = _connection(replace(here, region=reply.region))
        return self._send_here(operation, arguments)

    def _send_here(self, operation: str, arguments: Mapping[str, Any]) -> Answer:
        connection = self._ready()
        connection.used = True

        def request() -> Answer:
            if hasattr(arguments.get("Body"), "seek"):
                arguments["Body"].seek(0)  # a file that was sent to another region would be sent from its end
            return connection.ask(self._bucket, operation, arguments)

        from botocore.exceptions import BotoCoreError

        try:
            answer = request() if connection.answered else self._first_contact(connection, request)
        except Answered as answered:
            connection.answered = True
            self._learn(answered.reply.headers.get("date"))
            raise
        except BotoCoreError as error:
            self._judge(error)
        except RuntimeError as error:  # botocore says so when a provider hands out keys that have expired already
            raise CredentialsRefused(
                f"the credentials for {self.where} could not be refreshed: {error}",
                "Check the provider that AWS_PROFILE or ~/.aws/config names, and this machine's clock.",
            ) from error
        connection.answered = True
        self._learn(answer.date)
        return answer

    def _first_contact(self, connection: Connection, request: Callable[[], T]) -> T:
        """Bound a request to a place that never answered yet: time-outs count per address, and not for name servers."""
        asked_at_s = self._ambient.boot_s()
        if connection.first_asked_at_s is None:
            connection.first_asked_at_s = asked_at_s
        bound_s = max(NEXT_CONTACT_S, connection.first_asked_at_s + FIRST_CONTACT_S - asked_at_s)
        done = Event()
        outcome: list[T] = []
        failure: list[BaseException] = []

        def send() -> None:
            try:
                outcome.append(request())
            except BaseException as failed:  # handed to the waiting thread
                failure.append(failed)
            finally:
                done.set()

        Thread(target=send, name="store-first-contact", daemon=True).start()
        if not done.wait(bound_s):
            raise Silent(f"no answer within {bound_s:.1f} s")
        if failure:
            raise failure[0]
        return outcome[0]

    def _judge(self, error: Exception) -> NoReturn:
        """What it means that the SDK gave up without an answer."""
        from botocore import exceptions as boto

        without_keys = (
            boto.NoCredentialsError,
            boto.PartialCredentialsError,
            boto.CredentialRetrievalError,
            boto.ProfileNotFound,
            boto.TokenRetrievalError,
            boto.UnauthorizedSSOTokenError,
            boto.SSOTokenLoadError,
        )
        if isinstance(error, without_keys):
            raise CredentialsRefused(
                f"no usable credentials for {self.where}: {error}",
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run where a role is attached.",
            ) from error
        if isinstance(error, boto.ParamValidationError):
            raise UsageError(f"{self.where}: {error}", "Correct the name of the bucket in the store's URL.") from error
        raise Silent(f"{type(error).__name__}: {error}") from error

    def _learn(self, date: str | None) -> None:
        told = self.dates.parse(date)
        if told is not None:
            self.clock.learn(told)
