"""A real HTTP server on loopback that answers searches, and can answer badly."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Json, JsonHandler, run_server

HITS = [{"id": "a", "score": 2.0, "text": "x"}, {"id": "b", "score": 1.0, "text": "y"}]
#: Seconds between the bytes of a server that drips.
DRIP = 0.05


@dataclass(frozen=True)
class Reply:
    """What the server sends."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False


@dataclass
class SearchServer:
    """What the server was asked, and how it answers."""

    answer: Callable[[int, Any], Reply] = lambda _, __: found(HITS)
    key: tuple[str, str] | None = field(default=None, repr=False)
    state: str = "1"
    requests: list[Any] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    release: threading.Event = field(default_factory=threading.Event)


def found(hits: object) -> Reply:
    return Reply(json.dumps({"result": {"hits": hits}}).encode())


class _Handler(JsonHandler):
    state: SearchServer

    def answer_get(self) -> None:
        self._send(Reply(json.dumps({"state": self.state.state}).encode()))

    def answer_post(self, body: Json) -> None:
        state = self.state
        with state.lock:
            number = len(state.requests)
            state.requests.append(body)
            state.paths[self.path] += 1
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
        try:
            if state.key is not None and self.headers[state.key[0]] != state.key[1]:
                self._send(Reply(f'"no such key: {self.headers[state.key[0]]}"'.encode(), 401))
            else:
                self._send(state.answer(number, body))
        except (BrokenPipeError, ConnectionResetError):  # the client has gone
            self.close_connection = True
        finally:
            with state.lock:
                state.at_once -= 1

    def _send(self, reply: Reply) -> None:
        self.send_head(reply.status, len(reply.body), reply.headers)
        if not reply.drips:
            self.wfile.write(reply.body)
            return
        for byte in reply.body[:-1]:
            self.wfile.write(bytes([byte]))
            if self.state.release.wait(DRIP):
                return
            time.sleep(0)


@contextmanager
def serving(state: SearchServer) -> Iterator[SearchServer]:
    with run_server(_Handler, state) as state.url:
        try:
            yield state
        finally:
            state.release.set()
