"""A real HTTP server on loopback that speaks each dialect, checks what it gets, and can fail."""

import atexit
import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.loopback import JsonHandler, run_server

Json = Any
Score = Callable[[str, list[str]], list[float]]


def plain_score(query: str, documents: list[str]) -> list[float]:
    """Numbers in [0, 1) that depend on query and document and on nothing else."""
    digests = (hashlib.sha256(f"{query}\n{d}".encode()).digest() for d in documents)
    return [int.from_bytes(digest[:4], "big") / 2**32 for digest in digests]


@dataclass(frozen=True)
class Shape:
    """One dialect as its documentation has it."""

    path: str
    required: Set[str]
    optional: Set[str] = frozenset()
    documents: str = "documents"
    top: str | None = None
    results: str | None = "results"
    score: str = "relevance_score"
    wants_key: bool = True


BASE = {"model", "query", "documents"}
TOP_N = {"top_n", "return_documents"}
MORE = {"max_chunks_per_doc", "rank_fields"}
SHAPES = {
    "cohere": Shape("/v2/rerank", BASE, {"top_n", "max_tokens_per_doc", "priority"}, top="top_n"),
    "cohere_v1": Shape("/v1/rerank", BASE - {"model"}, {"model"} | TOP_N | MORE, top="top_n"),
    "voyage": Shape(
        "/v1/rerank", BASE, {"top_k", "return_documents", "truncation"}, top="top_k", results="data"
    ),
    "jina": Shape("/v1/rerank", BASE, TOP_N, top="top_n"),
    "mixedbread": Shape(
        "/v1/reranking",
        {"model", "query", "input"},
        {"rank_fields", "top_k", "return_input", "rewrite_query"},
        documents="input",
        top="top_k",
        results="data",
        score="score",
    ),
    "tei": Shape(
        "/rerank",
        {"query", "texts"},
        {"raw_scores", "return_text", "truncate", "truncation_direction"},
        documents="texts",
        results=None,
        score="score",
        wants_key=False,
    ),
    "infinity": Shape("/rerank", BASE, TOP_N | {"raw_scores"}, top="top_n", wants_key=False),
    "vllm": Shape(
        *("/v1/rerank", BASE, {"top_n", "truncate_prompt_tokens", "use_activation"}),
        top="top_n",
        wants_key=False,
    ),
    "chat": Shape(
        "/chat/completions", {"model", "messages", "max_tokens"}, {"temperature"}, results="choices"
    ),
}


@dataclass
class Loopback:
    """What the server was told and what it has seen.

    Attributes:
        dialect: Which of :data:`SHAPES`.
        key: The bearer token that it wants; None = it wants none.
        most: Larger batches get 413.
        score: Makes the scores.
        fail: Called with the number of each request, 0-based; names how it fails, None = not.
        model: The model that it says it runs.
        say: What a language model answers for so many documents, instead of the scores.
        reply: The whole answer to every request, however many results it asks for.
        release: Requests that hang wait for this.
    """

    dialect: str
    key: str | None = field(default=None, repr=False)
    most: int = 10_000
    score: Score = plain_score
    fail: Callable[[int], str | None] = lambda _: None
    model: str = "resolved-model"
    say: Callable[[int], str] | None = None
    reply: Json = None
    requests: list[Json] = field(default_factory=list)
    paid: Counter[tuple[str, str]] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""

    @property
    def shape(self) -> Shape:
        return SHAPES[self.dialect]

    def problem(self, handler: JsonHandler, body: Json) -> tuple[int, str] | None:
        shape = self.shape
        if handler.path != shape.path:
            return 404, f"no such path: {handler.path}"
        if self.key is not None and handler.headers["Authorization"] != f"Bearer {self.key}":
            return 401, f"invalid api token: {handler.headers['Authorization']}"
        if missing := shape.required - set(body):
            return 422, f"missing: {sorted(missing)}"
        if unknown := set(body) - shape.required - shape.optional:
            return 422, f"unknown field: {sorted(unknown)}"
        if self.dialect == "chat":
            return None
        documents = body[shape.documents]
        if not documents or not all(isinstance(d, str) for d in documents):
            return 400, "documents must be strings"
        if len(documents) > self.most:
            return 413, "batch size > maximum allowed"
        if self.reply is None and shape.top and body.get(shape.top) != len(documents):
            return 400, f"{shape.top} must be all of them"
        return None

    def asked(self, body: Json) -> tuple[str, list[str]]:
        if self.dialect != "chat":
            return body["query"], body[self.shape.documents]
        prompt = body["messages"][0]["content"]
        query = prompt.split("Query: ", 1)[1].split("\n", 1)[0]
        numbered = prompt.split("Documents:\n", 1)[1].split("\n\nAnswer", 1)[0].split("\n\n")
        return query, [line.split("] ", 1)[1] for line in numbered]

    def answer(self, body: Json) -> Json:
        if self.reply is not None:
            return self.reply
        query, documents = self.asked(body)
        scores = self.score(query, documents)
        if self.dialect == "chat":
            numbers = ", ".join(f"{10 * score:.3f}" for score in scores)
            content = self.say(len(documents)) if self.say else numbers
            return {
                "model": self.model,
                "choices": [{"message": {"role": "assistant", "content": content}}],
                "usage": {"prompt_tokens": 7 * len(documents), "completion_tokens": len(documents)},
            }
        rows = [{"index": i, self.shape.score: score} for i, score in enumerate(scores)]
        rows.sort(key=lambda row: -row[self.shape.score])  # best first, as they all do
        if self.shape.results is None:
            return rows
        said: Json = {self.shape.results: rows, "usage": {"total_tokens": 5 * len(documents)}}
        if self.dialect.startswith("cohere"):
            return said | {"meta": {"billed_units": {"search_units": 1}}}
        return said | {"model": self.model}


@dataclass
class ChatServer(Loopback):
    """A language model for other questions than scores; a subclass says what it is asked."""

    dialect: str = "chat"
    choice: Json = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        return Shape(
            "/chat/completions",
            {"model", "messages"},
            {"temperature", "max_tokens", "max_completion_tokens"},
        )

    def write_content(self, prompt: str) -> object:
        raise NotImplementedError

    def answer(self, body: Json) -> Json:
        said = self.write_content(body["messages"][0]["content"])
        content = said if isinstance(said, str) else json.dumps(said)
        return {
            "model": self.model,
            "choices": [{"message": {"role": "assistant", "content": content}, **self.choice}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }


class _Handler(JsonHandler):
    state: Loopback

    def answer_get(self) -> None:
        if self.path == "/info" and self.state.dialect == "tei":
            self.send_json(200, {"model_id": self.state.model, "model_sha": "abc"})
        else:
            self.send_json(404, {"error": "no such path"})

    def answer_post(self, body: Json) -> None:
        state = self.state
        with state.lock:
            number = len(state.requests)
            state.requests.append(body)
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
        try:
            self._react(state.fail(number), body)
        except (BrokenPipeError, ConnectionResetError):  # the client has gone
            self.close_connection = True
        finally:
            with state.lock:
                state.at_once -= 1

    def _react(self, failure: str | None, body: Json) -> None:
        problem = self.state.problem(self, body)
        if problem is not None:
            with self.state.lock:
                self.state.complaints.append(problem[1])
            self.send_json(problem[0], {"error": problem[1]})
        elif failure is None:
            said = self.state.answer(body)
            query, documents = self.state.asked(body)
            self.send_json(200, said)
            with self.state.lock:
                self.state.paid.update((query, document) for document in documents)
        else:
            self._misbehave(failure, body)

    def _misbehave(self, failure: str, body: Json) -> None:
        name, _, detail = failure.partition(" ")
        if name.isdigit():
            header, _, value = detail.partition("=")
            data = json.dumps({"error": "on purpose"}).encode()
            self.send_bytes(int(name), data, {header: value} if header else {})
        elif name == "filtered":  # as Azure's content filter refuses a prompt
            error = {"message": "The prompt was filtered. " * 20, "code": "content_filter"}
            self.send_json(400, {"error": error})
        elif name == "close":
            self.close_connection = True
            self.connection.close()
        elif name == "hang":
            self.state.release.wait(600)
            self.close_connection = True
        elif name == "text":
            self.send_bytes(200, (detail or "<html>").encode())
        elif name == "drop":  # one result is missing
            said = self.state.answer(body)
            rows = said if isinstance(said, list) else said[self.state.shape.results]
            rows.pop()
            self.send_json(200, said)
        else:
            raise AssertionError(failure)


@contextmanager
def serving(state: Loopback, port: int = 0) -> Iterator[Loopback]:
    with run_server(_Handler, state, port) as state.url:
        try:
            yield state
        finally:
            state.release.set()


class HangOnce:
    """Lets the first calls pass, and holds back the answer to the next one alone.

    Args:
        passed: How many calls pass.
    """

    def __init__(self, passed: int) -> None:
        self._passed, self.reached = passed, threading.Event()

    def __call__(self, number: int) -> str | None:
        if number < self._passed or self.reached.is_set():
            return None
        self.reached.set()
        return "hang"


@cache
def closed_port() -> str:
    """A URL where nobody listens, and where nobody else can: its socket stays bound.

    Only a server that asks for this very port gets it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    atexit.register(held.close)
    return f"http://127.0.0.1:{held.getsockname()[1]}"
