"""A real HTTP server on loopback, for the fake providers and engines of the tests."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = Any


class JsonHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer_get()

    def do_POST(self) -> None:
        self.answer_post(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer_get(self) -> None:
        self.send_json(404, {"error": "no such path"})

    def answer_post(self, body: Json) -> None:
        raise NotImplementedError

    def send_json(self, status: int, answer: Json) -> None:
        self.send_bytes(status, json.dumps(answer).encode())

    def send_bytes(
        self, status: int, data: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_head(status, len(data), headers)
        self.wfile.write(data)

    def send_head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()


class LoopbackServer(ThreadingHTTPServer):
    """One thread a connection; a client that goes away is no error."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def run_server(handler: type[JsonHandler], state: object, port: int = 0) -> Iterator[str]:
    """A running server; yields its URL.

    Args:
        handler: Answers the requests.
        state: Becomes the handler's ``state``.
        port: 0 = a free one.
    """
    bound = type("Handler", (handler,), {"state": state})
    server = LoopbackServer(("127.0.0.1", port), bound)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
