"""semche's hybrid retriever over an embedded Chroma in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.retrieve.common import Ranking
from fusion_bench.retrieve.hybrid import ChromaDBManager, HybridRetriever
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.methods.dense import VectorSource
from fusion_bench.retrieve.texts import SearchTexts
from fusion_bench.retrieve.tokens import Tokens


@dataclass(frozen=True)
class HybridSettings:
    """Settings of :class:`HybridRetriever`.

    Attributes:
        dense_weight: Weight of the vector search.
        sparse_weight: Weight of BM25.
        rrf_constant: c of Σ weight / (c + rank).
        tokens: What a token of BM25 is.
        zero_padding: Whether documents of score 0 fill the sparse list.
    """

    dense_weight: float = 0.5
    sparse_weight: float = 0.5
    rrf_constant: int = 60
    tokens: Tokens = "whitespace"
    zero_padding: bool = True


@dataclass(frozen=True)
class HybridMethod:
    """The fused list of :class:`HybridRetriever`; each of its searches fetches twice the depth.

    Attributes:
        source: Where the vectors come from.
        settings: Of the retriever.
    """

    name: ClassVar[str] = "hybrid"
    roles: ClassVar[tuple[str, ...]] = ()

    source: VectorSource
    settings: HybridSettings

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        return {"method": "hybrid", **self.source.describe(), **asdict(self.settings)}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query."""
        stored = self.source.read_stored()
        documents = self.source.find_vectors(texts.documents, stored.documents, "document", context)
        queries = self.source.find_vectors(texts.queries, stored.queries, "query", context)
        known = _KnownVectors(dict(zip(texts.queries.values(), queries, strict=True)))
        with closing(ChromaDBManager(known)) as manager:
            context.on_progress("indexing", 0, 1)
            names = [*texts.documents]
            manager.add(names, [*texts.documents.values()], embeddings=documents.tolist())
            retriever = HybridRetriever(
                manager,
                self.settings.dense_weight,
                self.settings.sparse_weight,
                tokens=self.settings.tokens,
                zero_padding=self.settings.zero_padding,
            )
            results = retriever.search_all(
                [*texts.queries.values()],
                depth,
                rrf_constant=self.settings.rrf_constant,
                on_progress=context.report_queries(len(texts.queries)),
            )
        return {
            query: [(item["id"], item["score"]) for item in items]
            for query, items in zip(texts.queries, results, strict=True)
        }


class _KnownVectors:
    """An embedding function of texts whose vectors are known.

    Args:
        vectors: Text → vector, shape (H,).
    """

    def __init__(self, vectors: Mapping[str, FloatArray]) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text.

        Raises:
            DataError: It is not known.
        """
        if text not in self._vectors:
            raise DataError(f"no vector of the text {text[:60]!r}")
        return [float(number) for number in self._vectors[text]]
