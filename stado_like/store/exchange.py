"""HTTP/1.1, as much of it as requests to an S3 server need: sent once, read whole, over connections that are kept.

Not obvious because the libraries do it well, and at three times the price: a request costs 0.4 ms through urllib3 and
http.client (a parser for mail reads the headers), 0.15 ms here, a worker sends twenty for a job, and its two cores
serve the server too. What is delicate is little: a body ends where the server says so, and an answer that is not whole
is no answer; a kept connection may have been closed meanwhile, which shows in that something can be read from it; a
server that refuses a body answers without having read it. Certificates are Python's `ssl`'s to judge.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 500
READ_BYTES = 64 * 1024
SEND_BYTES = 128 * 1024
WITHOUT_BODY = frozenset({204, 304})


class NotWhole(OSError):
    """The server closed before its answer ended, or answered something that is not HTTP."""


@dataclass(frozen=True, slots=True)
class Response:
    """`headers` have lower-case names; of a repeated one the first counts."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """Connections to one host. Shared by threads: each request has one of its own. `context`: over TLS."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
        *,
        connect_s: float,
        read_s: float,
        keep: int,
    ) -> None:
        self._address = (host, port)
        self._context = context
        self._connect_s = connect_s
        self._read_s = read_s
        self._keep = keep
        self.idle: list[socket.socket] = []

    def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | BinaryIO | None = None
    ) -> Response:
        """Send once, over a connection that is kept or a new one. Raises OSError, `NotWhole` among them."""
        head = _head(method, target, headers)
        connection = self._connection()
        try:
            refused = _send(connection, head, body)
            response, reusable = _Reader(connection).response(method)
        except BaseException:
            connection.close()
            raise
        if reusable and not refused and len(self.idle) < self._keep:
            self.idle.append(connection)
        else:
            connection.close()
        return response

    def after_fork(self) -> None:
        """In a child: the connections are its parent's. Closed here only, they stay open there."""
        idle, self.idle = self.idle, []
        for connection in idle:
            connection.close()

    def _connection(self) -> socket.socket:
        while True:
            try:
                kept = self.idle.pop()
            except IndexError:
                return self._connect()
            if not _readable(kept):
                return kept
            kept.close()  # the server closed it, or said something that nobody asked for

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._address, self._connect_s)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_hostname=self._address[0])
            connection.settimeout(self._read_s)
        except BaseException:
            connection.close()
            raise
        return connection


def _readable(connection: socket.socket) -> bool:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(0))


def _head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError(f"a line end in a header of {method} {target!r}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(connection: socket.socket, head: bytes, body: bytes | BinaryIO | None) -> bool:
    """Whether the server would not take all of it: then it has closed, and perhaps has said why."""
    try:
        if body is None or isinstance(body, bytes):
            connection.sendall(head + (body or b""))
            return False
        connection.sendall(head)
        while piece := body.read(SEND_BYTES):
            connection.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


class _Reader:
    """One answer. What comes behind it makes its connection useless."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = b""

    def response(self, method: str) -> tuple[Response, bool]:
        """The answer, and whether another request may follow on this connection."""
        version, status, headers = self._status_and_headers()
        while 100 <= status < 200:  # "continue": the answer itself follows
            version, status, headers = self._status_and_headers()
        word = headers.get("connection", "").lower()
        reusable = "close" not in word and (version == "1.1" or "keep-alive" in word)
        if method == "HEAD" or status in WITHOUT_BODY:
            body = b""
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            body = self._chunked()
        elif "content-length" in headers:
            body = self._exactly(_number(headers["content-length"], 10))
        else:
            body, reusable = self._to_the_end(), False
        return Response(status, headers, body), reusable and not self._read

    def _more(self) -> None:
        piece = self._connection.recv(READ_BYTES)
        if not piece:
            raise NotWhole(f"the server closed the connection after {len(self._read)} bytes of what was to come")
        self._read += piece

    def _until(self, mark: bytes) -> bytes:
        while (at := self._read.find(mark, 0, MOST_HEAD_BYTES)) < 0:
            if len(self._read) >= MOST_HEAD_BYTES:
                raise NotWhole(f"a line of more than {MOST_HEAD_BYTES} bytes where there should be headers")
            self._more()
        found, self._read = self._read[:at], self._read[at + len(mark) :]
        return found

    def _status_and_headers(self) -> tuple[str, int, dict[str, str]]:
        head = self._until(b"\r\n")
        words = head.decode("latin-1").split(" ", 2)
        if len(words) < 2 or words[0] not in ("HTTP/1.1", "HTTP/1.0") or len(words[1]) != 3 or not words[1].isdigit():
            raise NotWhole(f"an answer that begins with {head[:80]!r}")
        headers: dict[str, str] = {}
        while line := self._until(b"\r\n"):
            name, colon, value = line.decode("latin-1").partition(":")
            if len(headers) >= MOST_HEADERS:
                raise NotWhole(f"more than {MOST_HEADERS} headers")
            if colon:
                headers.setdefault(name.strip().lower(), value.strip())
        return words[0][5:], int(words[1]), headers

    def _exactly(self, size_bytes: int) -> bytes:
        pieces, left = [self._read[:size_bytes]], size_bytes - len(self._read)
        self._read = self._read[size_bytes:]
        while left > 0:
            piece = self._connection.recv(min(left, 1 << 20))
            if not piece:
                raise NotWhole(f"the server closed the connection {left} bytes before the end of its answer")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _chunked(self) -> bytes:
        pieces = []
        while size_bytes := _number(self._until(b"\r\n").decode("latin-1").partition(";")[0], 16):
            pieces.append(self._exactly(size_bytes))
            if self._exactly(2) != b"\r\n":
                raise NotWhole("a piece of the answer that does not end where it said")
        while self._until(b"\r\n"):
            continue  # headers behind the body
        return b"".join(pieces)

    def _to_the_end(self) -> bytes:
        pieces = [self._read]
        self._read = b""
        while piece := self._connection.recv(READ_BYTES):
            pieces.append(piece)
        return b"".join(pieces)


def _number(text: str, digits: int) -> int:
    try:
        found = int(text.strip(), digits)
    except ValueError:
        found = -1
    if found < 0:
        raise NotWhole(f"a length of {text[:40]!r}")
    return found
