"""An HTTP proxy that does on request what networks and servers do at random.

It commits a request and then drops the answer, answers 409 or 503 by itself, delays, or sends a request twice.
Faults are scripted: each matches a method and a part of the target, and wears out after a number of times. Every
request seen is kept in `log`, so a test can also say what was never asked for. The Host header passes unchanged:
signatures stay valid.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "proxy-connection", "expect", "te", "upgrade"})


@dataclass(frozen=True)
class Seen:
    """A request as it came in. `path` is decoded; `query` holds lists of values."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


@dataclass
class Fault:
    """What to do with a request that matches, `times` times.

    `answer`: a status sent instead of forwarding. `drop_reply`: forward, then cut the connection. `duplicate`:
    forward twice, answering with the second. `delay_s`: wait before anything else. `headers`: added to the answer,
    or replacing its own.
    """

    method: str = ""
    match: str = ""
    times: int = 1
    answer: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    drop_reply: bool = False
    duplicate: bool = False
    delay_s: float = 0.0


class FaultProxy:
    """Faults are tried in the order they were added."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname is not None and parts.port is not None
        self.upstream = (parts.hostname, parts.port)
        self._faults: list[Fault] = []
        self._log: list[Seen] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self._log.clear()

    @property
    def log(self) -> list[Seen]:
        with self._lock:
            return list(self._log)

    def requests(self, method: str, match: str = "") -> list[Seen]:
        return [seen for seen in self.log if seen.method == method and match in seen.path]

    def take(self, seen: Seen, target: str) -> Fault | None:
        with self._lock:
            self._log.append(seen)
            for fault in self._faults:
                if fault.times > 0 and fault.method in ("", seen.method) and fault.match in unquote(target):
                    fault.times -= 1
                    return fault
        return None

    def forward(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> tuple[int, Any, bytes]:
        connection = http.client.HTTPConnection(*self.upstream, timeout=60)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() not in HOP:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: FaultProxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the log is kept as data."""

    def _pass(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        seen = Seen(
            self.command,
            unquote(parts.path),
            parse_qs(parts.query, keep_blank_values=True),
            {name.lower(): value for name, value in self.headers.items()},
        )
        fault = proxy.take(seen, self.path) or Fault()
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.answer:
            self._reply(fault.answer, list(fault.headers.items()), fault.body)
            return
        for _ in range(2 if fault.duplicate else 1):
            status, headers, content = proxy.forward(self.command, self.path, list(self.headers.items()), body)
        if fault.drop_reply:
            self.close_connection = True
            return
        replaced = {name.lower() for name in fault.headers}
        kept = [(name, value) for name, value in headers if name.lower() not in replaced]
        self._reply(status, [*kept, *fault.headers.items()], content)

    def _reply(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in HOP and (name.lower() != "content-length" or self.command == "HEAD"):
                self.send_header(name, value)
        if "date" not in names:
            self.send_header("Date", self.date_time_string())
        if status not in (204, 304) and (self.command != "HEAD" or "content-length" not in names):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass


@contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """A proxy in front of the server at `upstream`, on a free port of loopback."""
    proxy = FaultProxy(upstream)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
