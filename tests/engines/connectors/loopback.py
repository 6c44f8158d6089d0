"""A real HTTP server on loopback that answers as an engine's documentation says it does."""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.loopback import JsonHandler, run_server

Json: TypeAlias = Any
#: Documents with their scores, best first.
Ranking: TypeAlias = list[tuple[str, float]]

#: Id → text and vector.
DOCUMENTS: dict[str, tuple[str, tuple[float, float]]] = {
    "d1": ("red apple pie", (1.0, 0.0)),
    "d2": ("green apple", (0.8, 0.6)),
    "d3": ("red brick wall red", (0.6, 0.8)),
    "d4": ("apple apple red tart", (0.0, 1.0)),
    "d5": ("blue sky", (-0.6, 0.8)),
    "d6": ("red apple red apple pie crust", (0.96, 0.28)),
    "d7": ("quiet river", (-1.0, 0.0)),
}


class BadRequestError(Exception):
    """What the real engine answers with status 400."""


def rank_by_words(text: str) -> Ranking:
    """Words in common, divided by the length; documents without any are not returned."""
    words = text.lower().split()
    scores = {
        name: sum(body.split().count(word) for word in words) / math.sqrt(len(body.split()))
        for name, (body, _) in DOCUMENTS.items()
    }
    return order({name: score for name, score in scores.items() if score > 0})


def rank_by_cosine(vector: Sequence[float]) -> Ranking:
    """Cosine similarity; all vectors have length 1."""
    return order({n: v[0] * vector[0] + v[1] * vector[1] for n, (_, v) in DOCUMENTS.items()})


def order(scores: Mapping[str, float]) -> Ranking:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def fuse_ranks(lists: Sequence[Ranking], term: Callable[[int, int], float]) -> Ranking:
    """Sum of ``term(list, position from 0)``."""
    total: dict[str, float] = {}
    for number, ranking in enumerate(lists):
        for position, (name, _) in enumerate(ranking):
            total[name] = total.get(name, 0.0) + term(number, position)
    return order(total)


def require_keys(data: Mapping[str, Json], required: str, optional: str = "") -> None:
    """Refuse a request that lacks a key, or has one that the engine does not know."""
    needed, known = set(required.split()), set(f"{required} {optional}".split())
    if missing := needed - set(data):
        raise BadRequestError(f"missing: {sorted(missing)}")
    if unknown := set(data) - known:
        raise BadRequestError(f"unknown: {sorted(unknown)}")


@dataclass
class FakeEngine(ABC):
    """An engine that ranks :data:`DOCUMENTS`.

    Attributes:
        key: The key that it wants; None = none.
        header: The header that holds it.
        prefix: Stands before the key there.
        change: Applied to each answer before it is sent; bytes are sent as they are.
        status: Sent in place of 200.
        requests: Path and body of what was asked; the body of GET is None.
    """

    key: str | None = field(default=None, repr=False)
    header: str = "Authorization"
    prefix: str = "Bearer "
    change: Callable[[Json], Json] = lambda answer: answer
    status: int = 200
    requests: list[tuple[str, Json]] = field(default_factory=list)
    url: str = ""

    @abstractmethod
    def answer(self, path: str, body: Json) -> Json:
        """The answer to a request; None = no such path."""


class _Handler(JsonHandler):
    state: FakeEngine

    def answer_get(self) -> None:
        self._reply(None)

    def answer_post(self, body: Json) -> None:
        self._reply(body)

    def _reply(self, body: Json) -> None:
        engine = self.state
        engine.requests.append((self.path, body))
        if engine.key is not None and self.headers[engine.header] != engine.prefix + engine.key:
            return self._send(401, {"error": "no such key"})
        try:
            answer = engine.answer(self.path, body)
        except BadRequestError as problem:
            return self._send(400, {"error": str(problem)})
        if answer is None:
            return self._send(404, {"error": f"no such path: {self.path}"})
        # Only searches are changed: what describes the index stays readable.
        return self._send(engine.status, engine.change(answer) if is_search(self.path) else answer)

    def _send(self, status: int, answer: Json) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_bytes(status, data, {"Content-Type": "application/json"})


def is_search(path: str) -> bool:
    return re.search(r"search|query|graphql", path.partition("?")[0]) is not None


@contextmanager
def serving(engine: FakeEngine) -> Iterator[FakeEngine]:
    with run_server(_Handler, engine) as engine.url:
        yield engine
