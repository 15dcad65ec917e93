"""The lean driver: botocore's signer and chain of credentials, urllib3's pool of connections, and our own reading.

boto3 spends most of a small request on building and parsing what its models describe: 0.7 ms of CPU, 49 ms for a
page of a listing, a quarter of a second and 30 MiB for a client. Seven operations need none of that. What is
delicate stays with those who keep it right: credentials are found and refreshed by botocore's session, signatures
are made by its `S3SigV4Auth`, certificates are checked against its bundle by urllib3.

A socket belongs to one process: after a fork the child begins with empty pools, and keeps what costs time to make (the
session, the trusted certificates, keys that do not expire). Nothing is sent twice: urllib3 neither retries nor
follows redirects.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import responses
from queue import LifoQueue
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from botocore.auth import UNSIGNED_PAYLOAD, S3SigV4Auth
from botocore.credentials import Credentials
from botocore.exceptions import InvalidRegionError, NoCredentialsError
from botocore.httpsession import get_cert_path
from botocore.session import Session
from botocore.utils import get_environ_proxies
from urllib3.util.ssl_ import create_urllib3_context

from stado_like.store.clock import DateHeader
from stado_like.store.http_answer import Reply
from stado_like.store.s3_xml import Malformed, read_error, read_listing, read_versioning
from stado_like.store.wire import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    Answer,
    Answered,
    Connection,
    NeedsPlain,
    Place,
    Silent,
)

METHODS = {
    "put_object": "PUT",
    "get_object": "GET",
    "head_object": "HEAD",
    "delete_object": "DELETE",
    "list_objects_v2": "GET",
    "head_bucket": "HEAD",
    "get_bucket_versioning": "GET",
}
HEADERS = {"IfNoneMatch": "If-None-Match", "IfMatch": "If-Match", "Range": "Range"}
SEND_BYTES = 128 * 1024
USER_AGENT = "stado (urllib3, botocore signer)"
SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
_REGION = re.compile(r"(?!us-iso)[a-z]{2}(-gov)?-[a-z]+-\d").fullmatch  # of partitions whose host names are known here
_HOST_PART = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]").fullmatch
_HOST_PARTS = re.compile(r"(?=.{3,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+").fullmatch
_OTHER_KINDS = ("--x-s3", "--xa-s3", "--op-s3", "--ol-s3", "-s3alias")  # directory buckets, access points, Outposts


@dataclass(slots=True)
class _Signed:
    """As much of botocore's request as its signer looks at."""

    method: str
    url: str
    headers: dict[str, str]
    body: Any
    params: Mapping[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


class _Signer(S3SigV4Auth):  # type: ignore[misc]
    """S3's signature; a large file is not read twice where TLS already guards it."""

    def payload(self, request: _Signed) -> str:
        if request.url.startswith("https:") and hasattr(request.body, "seek"):
            return str(UNSIGNED_PAYLOAD)
        return str(super().payload(request))


@dataclass(frozen=True, slots=True)
class _Target:
    """Where the objects of one bucket are: `origin` and `base` make their URL, `host` is signed and sent."""

    pool: urllib3.HTTPConnectionPool
    origin: str
    host: str
    base: str


class _Client:
    """What a process needs to send: who signs, and a pool for each host."""

    def __init__(self, session: Session, region: str) -> None:
        self.session = session
        self.region = region
        self.credentials: Any = session.get_credentials()
        self.targets: dict[str, _Target] = {}

    def sign(self, request: _Signed) -> None:
        if self.credentials is None:
            raise NoCredentialsError()
        _Signer(self.credentials.get_frozen_credentials(), "s3", self.region).add_auth(request)

    @property
    def outlives_a_fork(self) -> bool:
        """Keys that are refreshed sit behind a lock, which another thread may have held."""
        return type(self.credentials) is Credentials


class LeanConnection(Connection):
    """Seven operations of S3 over urllib3."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._modified = DateHeader()

    def _build(self) -> _Client:
        session = Session()
        region = self.place.region or session.get_config_variable("region") or "us-east-1"
        self._check(session, region)
        return _Client(session, region)

    def _check(self, session: Session, region: str) -> None:
        """What boto3 would do otherwise than is done here, before anything is sent."""
        for name in ("use_fips_endpoint", "use_dualstack_endpoint", "s3"):
            if session.get_config_variable(name):
                raise NeedsPlain(f"the AWS configuration of this machine sets {name}")
        if not re.fullmatch(r"(?![0-9]+$)(?!-)[a-zA-Z0-9-]{1,63}(?<!-)", region):
            raise InvalidRegionError(region_name=region)
        if self.place.endpoint_url is not None:
            return
        configured = session.get_scoped_config().keys() & {"endpoint_url", "services"}
        if configured or os.environ.keys() & {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}:
            raise NeedsPlain("the AWS configuration of this machine names an endpoint")
        if not _REGION(region):
            raise NeedsPlain(f"the region {region} is not one whose host name is known")

    def make_ready(self, bucket: str) -> None:
        self._target(bucket)

    def after_fork(self) -> None:
        kept, was_used = self._client, self.used
        super().after_fork()
        if was_used and kept is not None and kept.outlives_a_fork:
            for target in kept.targets.values():
                _without_sockets(target.pool)
            self._client = kept

    # --- where ------------------------------------------------------------------------------------------------------

    def _target(self, bucket: str) -> _Target:
        client: _Client = self.client()
        target = client.targets.get(bucket)
        if target is None:
            with self._lock:
                if bucket not in client.targets:
                    client.targets[bucket] = self._found(client, bucket)
                target = client.targets[bucket]
        return target

    def _found(self, client: _Client, bucket: str) -> _Target:
        if bucket.endswith(_OTHER_KINDS):
            raise NeedsPlain(f"{bucket} is no ordinary bucket")
        endpoint = urlsplit(self.place.endpoint_url or aws_endpoint(client.region))
        host, base = endpoint.hostname or "", endpoint.path.rstrip("/")
        if self._is_virtual(bucket, host, endpoint.scheme):
            host = f"{bucket}.{host}"
        else:
            base += f"/{bucket}"
        named = f"[{host}]" if ":" in host else host
        port = endpoint.port or (443 if endpoint.scheme == "https" else 80)
        if endpoint.port and endpoint.port != (443 if endpoint.scheme == "https" else 80):
            named += f":{endpoint.port}"
        origin = f"{endpoint.scheme}://{named}"
        if get_environ_proxies(origin):
            raise NeedsPlain(f"a proxy is set for {origin}")
        return _Target(self._pool(client, endpoint.scheme, host, port), origin, named, base)

    def _is_virtual(self, bucket: str, host: str, scheme: str) -> bool:
        """Whether the bucket's name becomes part of the host's, decided as botocore decides it."""
        style = self.place.addressing
        if style == "path" or (style == "auto" and self.place.endpoint_url is not None) or _is_address(host):
            return False
        return bool(_HOST_PART(bucket) or (scheme == "http" and _HOST_PARTS(bucket)))

    def _pool(self, client: _Client, scheme: str, host: str, port: int) -> urllib3.HTTPConnectionPool:
        settings: dict[str, Any] = {
            "port": port,
            "timeout": urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
            "maxsize": self.place.concurrency,
            "block": False,
            "blocksize": SEND_BYTES,
            "socket_options": SOCKET_OPTIONS,
        }
        if scheme == "http":
            return urllib3.HTTPConnectionPool(host, **settings)
        trust = create_urllib3_context()
        trust.load_verify_locations(get_cert_path(client.session.get_config_variable("ca_bundle") or True))
        return urllib3.HTTPSConnectionPool(host, ssl_context=trust, **settings)

    # --- asking -----------------------------------------------------------------------------------------------------

    def ask(self, bucket: str, operation: str, arguments: Mapping[str, Any]) -> Answer:
        client: _Client = self.client()
        target = self._target(bucket)
        path, query = _path_and_query(target.base, operation, arguments)
        body = arguments.get("Body")
        headers = {HEADERS[name]: value for name, value in arguments.items() if name in HEADERS}
        headers["Host"] = target.host
        request = _Signed(METHODS[operation], f"{target.origin}{path}{query}", headers, body)
        client.sign(request)
        headers["User-Agent"] = USER_AGENT
        if body is not None and hasattr(body, "seek"):
            headers["Content-Length"] = str(body.seek(0, 2))
            body.seek(0)
        try:
            answer = target.pool.urlopen(
                request.method,
                path + query,
                body=body,
                headers=headers,
                redirect=False,
                retries=False,  # guard: one attempt
                assert_same_host=False,
                decode_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as lost:
            raise Silent(f"{type(lost).__name__}: {lost}") from lost
        if answer.status >= 300 or answer.status < 200:
            raise Answered(_reply(answer))
        try:
            return self._read(operation, answer)
        except (Malformed, ValueError) as wrong:
            raise Silent(f"HTTP {answer.status} that cannot be read: {wrong}") from wrong

    def _read(self, operation: str, answer: urllib3.BaseHTTPResponse) -> Answer:
        headers = answer.headers
        date, etag = headers.get("date"), headers.get("etag") or ""
        if operation == "list_objects_v2":
            rows, truncated = read_listing(answer.data)
            return Answer(answer.status, date, rows=rows, truncated=truncated)
        if operation == "get_bucket_versioning":
            return Answer(answer.status, date, versioning=read_versioning(answer.data))
        if operation not in ("get_object", "head_object"):
            return Answer(answer.status, date, etag)
        modified = self._modified.parse(headers.get("last-modified"))
        if modified is None:
            raise Malformed(f"Last-Modified is {headers.get('last-modified')!r}")
        size = headers.get("content-length")
        body = answer.data
        return Answer(answer.status, date, etag, modified, len(body) if size is None else int(size), body)


def _without_sockets(pool: urllib3.HTTPConnectionPool) -> None:
    """In a child: the sockets are its parent's, and the lock of the queue may have been held by a thread it has not."""
    queue = pool.pool
    if queue is not None:
        for connection in queue.queue:
            if connection is not None:
                connection.close()  # here only: the parent's stay open
        LifoQueue.__init__(queue, queue.maxsize)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def aws_endpoint(region: str) -> str:
    """Amazon's own endpoint as botocore resolves it; us-east-1 has the oldest name."""
    if region == "us-east-1":
        return "https://s3.amazonaws.com"
    return f"https://s3.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")


def _path_and_query(base: str, operation: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    if "Key" in arguments:
        return f"{base}/{quote(arguments['Key'], safe='/~')}", ""
    path = base or "/"
    if operation == "head_bucket":
        return path, ""
    if operation == "get_bucket_versioning":
        return path, "?versioning="
    asked = {
        "list-type": "2",
        "prefix": arguments["Prefix"],
        "max-keys": str(arguments["MaxKeys"]),
        "encoding-type": "url",  # a key may hold what XML cannot
    }
    if "StartAfter" in arguments:
        asked["start-after"] = arguments["StartAfter"]
    return path, "?" + urlencode(asked, quote_via=quote, safe="-_.~")


def _reply(answer: urllib3.BaseHTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    said = read_error(answer.data)
    code = said.child("Code")
    return Reply(
        status=answer.status,
        headers=headers,
        code=code,
        message=said.child("Message") or ("" if code else responses.get(answer.status, "")),  # a HEAD has no words
        region=headers.get("x-amz-bucket-region") or said.child("Region"),
    )
