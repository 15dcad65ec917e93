"""One request to an S3 server, sent once: the only module that knows boto3, imported at the first request.

The SDK's own retries are switched off altogether. A conditional write that is sent twice is refused by its own first
sending, and the caller would be told that it lost what it won. What comes back is an answer, `Answered` (an error
status), or `Silent` (no whole answer); what those mean for an object is `s3_store`'s question.

One client serves a process, whatever the number of threads: a client costs a quarter of a second and 30 MiB, and
building several at once on the SDK's shared session is not safe. It is built from a session, never from key
strings, so that credentials which expire are fetched afresh by the SDK's own chain.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from typing import Any, NoReturn, TypeVar

from stado_like.ambient import Ambient
from stado_like.errors import CredentialsRefused, UsageError
from stado_like.store.clock import DateHeader, StoreClock
from stado_like.store.http_answer import REDIRECTS, Reply, reply_of

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


def _without_waiting(request: Any, **_: Any) -> None:
    """A record is small: to ask first (`Expect: 100-continue`) costs a tenth of each PUT and saves nothing."""
    request.headers.pop("Expect", None)


class _Connection:
    """The one client of this process for one endpoint and region."""

    def __init__(self, endpoint_url: str | None, region: str | None, addressing: str, concurrency: int) -> None:
        self.endpoint_url = endpoint_url
        self.region = region
        self.addressing = addressing
        self.concurrency = concurrency
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
                    self._client = self._build()
                client = self._client
        return client

    def _build(self) -> Any:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"total_max_attempts": 1, "mode": "standard"},  # guard: one attempt
            max_pool_connections=self.concurrency,
            signature_version="s3v4",
            request_checksum_calculation="when_required",  # servers without trailers store them inside the body
            response_checksum_validation="when_required",
            tcp_keepalive=True,
            s3={"addressing_style": self.addressing},
        )
        try:
            session = boto3.session.Session()
            region = self.region or session.region_name or "us-east-1"
            client = session.client("s3", endpoint_url=self.endpoint_url, region_name=region, config=config)
        except ValueError as wrong:
            raise UsageError(
                f"{self.endpoint_url!r} is not an endpoint: {wrong}", "Write it as http://host:port or https://host."
            ) from wrong
        except BotoCoreError as wrong:
            raise CredentialsRefused(
                f"the AWS configuration of this machine cannot be used: {wrong}",
                "Correct AWS_PROFILE and ~/.aws/config, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            ) from wrong
        client.meta.events.register("before-send.s3", _without_waiting)
        return client

    def after_fork(self) -> None:
        """In the child: sockets and locks of a used client belong to the parent. An unused one may be kept."""
        self._lock = Lock()
        if self.used:
            self._client, self.used = None, False


_connections: dict[tuple[str | None, str | None, str, int], _Connection] = {}
_connections_lock = Lock()


def _connection(endpoint_url: str | None, region: str | None, addressing: str, concurrency: int) -> _Connection:
    wanted = (endpoint_url, region, addressing, concurrency)
    with _connections_lock:
        if wanted not in _connections:
            _connections[wanted] = _Connection(*wanted)
        return _connections[wanted]


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
    """Requests about one bucket. `where` is its name for messages; `clock` is told every `Date`."""

    def __init__(
        self,
        bucket: str,
        endpoint_url: str | None,
        region: str | None,
        addressing: str,
        concurrency: int,
        ambient: Ambient,
    ) -> None:
        self._bucket = bucket
        self._ambient = ambient
        self._connection = _connection(endpoint_url, region, addressing, concurrency)
        self.where = f"bucket {bucket} at {endpoint_url or 'Amazon S3'}"
        self.clock = StoreClock(ambient)
        self.dates = DateHeader()

    def prepare(self) -> None:
        """Build the client without sending anything, so that children forked later need not."""
        self._connection.client()

    def send(self, operation: str, **arguments: Any) -> tuple[Mapping[str, Any], bytes]:
        """Send once; a server that names another region has done nothing, so that is followed, once."""
        try:
            return self._send_here(operation, arguments)
        except Answered as answered:
            reply, here = answered.reply, self._connection
            if reply.status not in REDIRECTS | {400} or not reply.region or reply.region == here.region:
                raise
            self._connection = _connection(here.endpoint_url, reply.region, here.addressing, here.concurrency)
        return self._send_here(operation, arguments)

    def _send_here(self, operation: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes]:
        connection = self._connection
        client = connection.client()
        connection.used = True

        def request() -> tuple[Mapping[str, Any], bytes]:
            if hasattr(arguments.get("Body"), "seek"):
                arguments["Body"].seek(0)  # a file that was sent to another region would be sent from its end
            answer = getattr(client, operation)(Bucket=self._bucket, **arguments)
            return answer, (answer["Body"].read() if operation == "get_object" else b"")

        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer, body = request() if connection.answered else self._first_contact(connection, request)
        except ClientError as error:
            reply = reply_of(error.response)
            connection.answered = True
            self._learn(reply.headers)
            raise Answered(reply) from error
        except BotoCoreError as error:
            self._judge(error)
        except RuntimeError as error:  # botocore says so when a provider hands out keys that have expired already
            raise CredentialsRefused(
                f"the credentials for {self.where} could not be refreshed: {error}",
                "Check the provider that AWS_PROFILE or ~/.aws/config names, and this machine's clock.",
            ) from error
        connection.answered = True
        self._learn(answer["ResponseMetadata"]["HTTPHeaders"])
        return answer, body

    def _first_contact(self, connection: _Connection, request: Callable[[], T]) -> T:
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

    def _learn(self, headers: Mapping[str, str]) -> None:
        told = self.dates.parse(headers.get("date"))
        if told is not None:
            self.clock.learn(told)
