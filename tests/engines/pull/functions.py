"""Functions that tests pull from; they count their calls."""

from collections import Counter
from collections.abc import Callable
from typing import Any

DOCUMENTS = {"a": "alpha one", "b": "beta one", "c": "gamma two", "d": "delta two"}
#: (leg, text) → calls.
CALLS: Counter[tuple[str, str]] = Counter()
#: Called before each answer; may raise.
HOOKS: list[Callable[[str, str], None]] = []


def _note(leg: str, text: str) -> None:
    CALLS[leg, text] += 1
    for hook in HOOKS:
        hook(leg, text)


def keyword(text: str, depth: int, texts: bool) -> list[Any]:
    _note("keyword", text)
    words = set(text.split())
    scores = {d: float(len(words & set(body.split()))) for d, body in DOCUMENTS.items()}
    best = sorted((d for d in scores if scores[d]), key=lambda d: (-scores[d], d))
    return [(d, scores[d], DOCUMENTS[d] if texts else None) for d in best[:depth]]


async def dense(text: str, depth: int, *, vector: tuple[float, ...], query_id: str) -> list[Any]:
    _note("dense", text)
    assert query_id.startswith("q")
    order = sorted(DOCUMENTS, key=lambda d: abs(ord(d) - vector[0]))
    return [{"id": d, "distance": abs(ord(d) - vector[0])} for d in order[:depth]]


def ids(text: str, depth: int) -> list[str]:
    _note("ids", text)
    return ["c", "a", "b"][:depth]


def fused(text: str, depth: int) -> list[Any]:
    _note("fused", text)
    return [("b", 0.5), ("a", 0.25)][:depth]


def unsorted(text: str, depth: int) -> list[Any]:
    _note("unsorted", text)
    return [("a", 1.0), ("b", 3.0), ("c", 2.0)][:depth]


def rising(text: str, depth: int) -> list[Any]:
    _note("rising", text)
    return [("a", 1.0), ("b", 2.0), ("c", 3.0)][:depth]


def embed(texts: list[str]) -> list[list[float]]:
    return [[98.0 if "two" not in text else 100.0] for text in texts]


STATE: dict[str, Any] = {"version": 1}


def state() -> dict[str, Any]:
    return dict(STATE)


def anything(text: str, depth: int) -> object:  # noqa: ARG001 - of the protocol
    return STATE["answer"]
