"""A real HTTP server on loopback with endpoints for embeddings and chat, which counts and fails."""

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.loopback import JsonHandler, run_server

Json = Any
WIDTH = 16


def word_vector(text: str) -> list[float]:
    """A vector that texts with common words share parts of; 16 numbers, not of length one."""
    rows = [
        np.random.default_rng(
            int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        ).normal(size=WIDTH)
        for word in text.lower().split()
    ]
    return [float(number) for number in np.sum([np.zeros(WIDTH), *rows], axis=0)]


@dataclass
class ModelServer:
    """What the server is told and what it has seen.

    Attributes:
        key: The bearer token that it wants; None = it wants none.
        most: Larger batches get 413.
        fail: Called with the number of each request, 0-based; status, or ``hang up``; None = fine.
        change: Changes an answer before it is sent.
        passage: Writes the answer of a chat.
    """

    key: str | None = field(default=None, repr=False)
    most: int = 10_000
    fail: Callable[[int], int | None] = lambda _: None
    change: Callable[[Json], Json] = lambda said: said
    passage: Callable[[str], str] = lambda prompt: f" {prompt.split('Question: ')[-1][:-10]} \n"
    model: str = "embedder"
    requests: list[tuple[str, Json]] = field(default_factory=list)
    paid: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def answer(self, path: str, body: Json) -> tuple[list[str], Json]:
        if path == "/v1/embeddings":
            texts = body["input"]
            rows = [{"index": i, "embedding": word_vector(t)} for i, t in enumerate(texts)]
            usage = {"total_tokens": sum(len(t.split()) for t in texts)}
            return texts, {"data": rows[::-1], "model": body["model"], "usage": usage}
        if path == "/embed":
            return body["inputs"], [word_vector(text) for text in body["inputs"]]
        if path == "/v1/chat/completions":
            prompt = body["messages"][0]["content"]
            said = {"choices": [{"message": {"content": self.passage(prompt)}}]}
            return [prompt], {**said, "usage": {"total_tokens": 9}}
        raise KeyError(path)


class _Handler(JsonHandler):
    state: ModelServer

    def answer_get(self) -> None:
        self.send_json(200, {"model_id": self.state.model, "model_sha": "abc"})

    def answer_post(self, body: Json) -> None:
        state = self.state
        with state.lock:
            number = len(state.requests)
            state.requests.append((self.path, body))
        if state.key is not None and self.headers["Authorization"] != f"Bearer {state.key}":
            self.send_json(401, {"error": f"wrong key {self.headers['Authorization']}"})
            return
        texts, said = state.answer(self.path, body)
        failure = state.fail(number)
        if failure is None and len(texts) > state.most:
            failure = 413
        if failure is not None:
            self.send_json(failure, {"error": f"on purpose, {state.key}"})
            return
        self.send_json(200, state.change(said))
        with state.lock:
            state.paid.update(texts)


@contextmanager
def serving(state: ModelServer) -> Iterator[ModelServer]:
    with run_server(_Handler, state) as state.url:
        yield state
