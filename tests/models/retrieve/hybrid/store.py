"""A real embedded Chroma with documents whose vectors are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from fusion_bench.models.retrievers.hybrid import ChromaDBManager
from tests.models.retrieve.server import word_vector

TEXTS = {
    "c1": "the storm moves every ship one sea away",
    "c2": "a ship in harbor draws two cards",
    "c3": "the lighthouse keeper ignores the storm",
    "c4": "cards are drawn at dusk",
    "c5": "the game ends when the last lantern is lit",
    "c6": "storm storm storm",
}
#: ``c4`` and ``c5`` have no ``filepath``; ``c5`` has no metadata at all.
METADATA: Mapping[str, Mapping[str, Any]] = {
    "c1": {"filepath": "/rules/storm.md", "kind": "rule"},
    "c2": {"filepath": "/rules/harbor.md", "kind": "rule"},
    "c3": {"filepath": "/faq/keeper.md", "kind": "faq"},
    "c4": {"kind": "faq"},
    "c5": {},
    "c6": {"filepath": "/faq/storm.md", "kind": "faq"},
}


class WordVectors:
    """An embedding function: texts with common words are near."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [word_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return word_vector(text)


@contextmanager
def filled_manager(**options: Any) -> Iterator[ChromaDBManager]:  # noqa: ANN401 - the manager's own
    with closing(ChromaDBManager(WordVectors(), **options)) as manager:
        manager.add([*TEXTS], [*TEXTS.values()], metadatas=[*METADATA.values()])
        yield manager
