"""HTTP as servers really speak it: where a body ends, which connections may be used again, what is no answer."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from stado_like.store.exchange import Exchange, NotWhole

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
Talk = Callable[[socket.socket, int], None]


@contextmanager
def serving(talk: Talk) -> Iterator[Exchange]:
    """`talk` has each connection, with its number; it is closed after that."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            number = 0
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    talk(peer, number)
                number += 1

        Thread(target=serve, daemon=True).start()
        exchange = Exchange("127.0.0.1", server.getsockname()[1], connect_s=5.0, read_s=5.0, keep=4)
        yield exchange
        exchange.after_fork()


def heard(peer: socket.socket) -> bytes:
    """One request without a body; empty once the other side has closed."""
    read = b""
    while not read.endswith(b"\r\n\r\n"):
        piece = peer.recv(65536)
        if not piece:
            return b""
        read += piece
    return read


def saying(answer: bytes) -> Talk:
    def talk(peer: socket.socket, _number: int) -> None:
        while heard(peer):
            peer.sendall(answer)

    return talk


BODIES = {
    "by length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", b"abcde", True),
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
        b"abcde",
        True,
    ),
    "nothing": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True),
    "204 has none": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "304 has none, whatever its length says": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", b"", True),
    "continue first": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", True),
    "to be closed": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", b"a", False),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", False),
    "old, kept": (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", b"a", True),
    "more than was asked for": (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP", b"a", False),
}


@pytest.mark.parametrize(("answer", "body", "kept"), BODIES.values(), ids=BODIES)
def test_a_body_ends_where_the_server_says(answer: bytes, body: bytes, kept: bool) -> None:
    with serving(saying(answer)) as exchange:
        response = exchange.request("GET", "/", {"Host": "h"})
        assert response.body == body
        assert bool(exchange.idle) == kept


def test_without_a_length_it_ends_with_the_connection() -> None:
    def talk(peer: socket.socket, _number: int) -> None:
        heard(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\nabc")

    with serving(talk) as exchange:
        assert exchange.request("GET", "/", {}).body == b"abc"
        assert not exchange.idle


def test_the_answer_to_head_has_no_body() -> None:
    answer = b'HTTP/1.1 200 OK\r\nETag: "a"\r\netag: second\r\nX-Empty:\r\nContent-Length: 7\r\n\r\n'
    with serving(saying(answer)) as exchange:
        for _ in range(2):
            response = exchange.request("HEAD", "/", {})
            assert response.body == b""
            assert response.headers == {"etag": '"a"', "x-empty": "", "content-length": "7"}
        assert len(exchange.idle) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_an_answer_that_is_not_whole_is_none(answer: bytes) -> None:
    def talk(peer: socket.socket, _number: int) -> None:
        heard(peer)
        peer.sendall(answer)

    with serving(talk) as exchange:
        with pytest.raises(OSError) as lost:
            exchange.request("GET", "/", {})
        assert isinstance(lost.value, NotWhole | ConnectionResetError)  # it closes upon what it has not read
        assert not exchange.idle


def test_a_connection_is_used_again_and_one_that_was_closed_is_not() -> None:
    numbers: list[int] = []

    def talk(peer: socket.socket, number: int) -> None:
        for _ in range(2):  # the third finds it closed
            if heard(peer):
                numbers.append(number)
                peer.sendall(OK)

    with serving(talk) as exchange:
        for expected in ([0], [0, 0], [0, 0, 1]):
            assert exchange.request("GET", "/", {}).body == b"hi"
            assert numbers == expected
            if len(expected) == 2:
                exchange.idle[0].settimeout(5)
                assert exchange.idle[0].recv(1, socket.MSG_PEEK) == b"", "closed by now"


def test_a_body_that_was_refused_has_its_answer_all_the_same() -> None:
    def talk(peer: socket.socket, _number: int) -> None:
        peer.recv(1000)
        peer.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            continue

    with serving(talk) as exchange:
        assert exchange.request("PUT", "/", {"Content-Length": "3000000"}, io.BytesIO(b"x" * 3_000_000)).status == 403


def test_no_header_is_smuggled_in() -> None:
    with serving(saying(OK)) as exchange, pytest.raises(ValueError, match="line end"):
        exchange.request("GET", "/", {"If-Match": "a\r\nX-More: b"})
    with serving(saying(OK)) as exchange, pytest.raises(ValueError, match="line end"):
        exchange.request("GET", "/a\r\nb", {})


def test_more_connections_than_are_kept_are_closed() -> None:
    with serving(saying(OK)) as exchange:
        exchange._keep = 0
        assert exchange.request("GET", "/", {}).body == b"hi"
        assert not exchange.idle
