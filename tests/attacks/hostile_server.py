"""An HTTP server on loopback that answers with whatever bytes it is given."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

#: Seconds after which a connection is given up; a client closes it long before.
LIMIT = 60.0


@dataclass(frozen=True)
class Request:
    """What a client sent.

    Attributes:
        path: Of the endpoint.
        key: The bearer token; empty if there is none.
        body: The JSON of the request; None of a GET.
    """

    path: str
    key: str
    body: Any


#: The pieces of an answer, the status line included; sent until the client closes.
Answer: TypeAlias = Callable[[Request], Iterable[bytes]]


@dataclass
class HostileServer:
    """A server, and what it has seen.

    Attributes:
        answer: Makes the bytes of each answer.
        url: Where it listens.
        requests: What was asked.
        sent: Bytes that it could send.
    """

    answer: Answer
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    sent: int = 0


@contextmanager
def serve_answers(answer: Answer) -> Iterator[HostileServer]:
    server = HostileServer(answer)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=_accept_connections, args=(listener, server))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # ends the accept that is under way
            thread.join()


def _accept_connections(listener: socket.socket, server: HostileServer) -> None:
    threads = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        threads.append(threading.Thread(target=_answer_once, args=(connection, server)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _answer_once(connection: socket.socket, server: HostileServer) -> None:
    connection.settimeout(LIMIT)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
    with connection, contextlib.suppress(OSError):  # the client has gone
        request = _read_request(connection)
        if request is None:
            return
        server.requests.append(request)
        for piece in server.answer(request):
            connection.sendall(piece)
            server.sent += len(piece)


def _read_request(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(2**16)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in lines[1:])
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(2**16)
    key = headers.get("authorization", "").removeprefix("Bearer ")
    return Request(lines[0].split()[1], key, json.loads(body) if body else None)


def respond(
    body: bytes | Iterable[bytes],
    *headers: str | bytes,
    status: str | bytes = "200 OK",
) -> Iterator[bytes]:
    """The bytes of a response; one without a known length ends with the connection."""
    lines = [b"HTTP/1.1 " + _encode(status), b"Connection: close", *map(_encode, headers)]
    pieces = [body] if isinstance(body, bytes) else body
    if isinstance(body, bytes):
        lines.append(f"Content-Length: {len(body)}".encode())
    yield b"\r\n".join([*lines, b"", b""])
    yield from pieces


def _encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")
