"""semche's ``HybridRetriever`` (0.4.0): vectors and BM25, fused by weighted reciprocal ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.retrieve.common import rank_by_score
from fusion_bench.retrieve.hybrid.chroma import ChromaDBError, VectorStore
from fusion_bench.retrieve.okapi import OkapiIndex
from fusion_bench.retrieve.tokens import Tokens

#: ``id``, ``document``, ``metadata`` and ``score``.
Result: TypeAlias = dict[str, Any]
#: Key of the metadata that is a document's id in results.
FILEPATH = "filepath"


class HybridRetrieverError(FusionBenchError):
    """A hybrid search is not possible, or failed."""


class DocumentSource(Protocol):
    """What the retriever asks of a manager of a collection.

    Attributes:
        vectorstore: Searches by text; None = not initialized.
    """

    @property
    def vectorstore(self) -> VectorStore | None:
        """Searches by text; None = not initialized."""
        ...

    def get_all_documents(
        self, where: Mapping[str, Any] | None = None, *, include_documents: bool = True
    ) -> list[dict[str, Any]]:
        """Every document that a filter lets through: ``id``, ``document`` and ``metadata``."""
        ...


class HybridRetriever:
    """Dense and sparse search of one collection, fused.

    The score of a document is dense_weight / (c + dense rank) + sparse_weight / (c + sparse rank);
    a list that lacks it adds 0. Equal scores keep the order of the dense list, then of the sparse.

    Args:
        chroma_manager: The collection.
        dense_weight: Weight of the vector search, at least 0.
        sparse_weight: Weight of BM25, at least 0.
        tokens: What a token of BM25 is.
        zero_padding: Whether documents of score 0 fill the sparse list, as in 0.4.0.

    Raises:
        HybridRetrieverError: The vector store is not initialized, or a weight is not allowed.
    """

    def __init__(
        self,
        chroma_manager: DocumentSource,
        dense_weight: float = 0.5,
        sparse_weight: float = 0.5,
        *,
        tokens: Tokens = "whitespace",
        zero_padding: bool = True,
    ) -> None:
        if getattr(chroma_manager, "vectorstore", None) is None:
            raise HybridRetrieverError(
                "the vector store is not initialized: give ChromaDBManager an embedding_function"
            )
        for name, weight in (("dense_weight", dense_weight), ("sparse_weight", sparse_weight)):
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not (is_number and 0 <= weight < math.inf):
                raise HybridRetrieverError(
                    f"{name} {weight!r}: a finite number of at least 0 is needed"
                )
        self._manager = chroma_manager
        self._weights = dense_weight, sparse_weight
        self._tokens: Tokens = tokens
        self._zero_padding = zero_padding

    def search(
        self,
        query: str,
        top_k: int = 5,
        where: dict[str, Any] | None = None,
        rrf_constant: int = 60,
    ) -> list[Result]:
        """The best documents for a query.

        Args:
            query: Its text.
            top_k: Most documents; each search fetches twice as many.
            where: Filter over the metadata, for both searches; None = all documents.
            rrf_constant: c, which flattens the difference between neighboring ranks.

        Returns:
            ``{"id", "document", "metadata", "score"}`` each, best first. ``id`` is the metadata's
            ``filepath``, or else Chroma's id.

        Raises:
            ChromaDBError: Chroma failed.
            HybridRetrieverError: Anything else did.
        """
        return self.search_all([query], top_k, where, rrf_constant)[0]

    def search_all(
        self,
        queries: Sequence[str],
        top_k: int = 5,
        where: dict[str, Any] | None = None,
        rrf_constant: int = 60,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[list[Result]]:
        """:meth:`search` for many queries, whose BM25 index is built once.

        Arguments and errors as there; ``on_progress`` is called with the number of queries done.
        """
        try:
            depth = 2 * _check_number("top_k", top_k, 1)
            _check_number("rrf_constant", rrf_constant, 0)
            items = self._manager.get_all_documents(where=where or None, include_documents=True)
            index = self._index_texts(items)
            results: list[list[Result]] = []
            for query in queries:
                dense = self._search_densely(query, where, depth, items)
                sparse = [] if index is None else self._sparse_scores(query, index, items, depth)
                results.append(self._fuse(dense, sparse, rrf_constant)[:top_k])
                on_progress(len(results))
        except (ChromaDBError, HybridRetrieverError):
            raise
        except Exception as error:
            raise HybridRetrieverError(f"the hybrid search failed: {error}") from error
        return results

    def _search_densely(
        self, query: str, where: dict[str, Any] | None, depth: int, items: Sequence[Result]
    ) -> list[Result]:
        """The nearest documents, best first; one without an id is the item of the same text."""
        store = self._manager.vectorstore
        if store is None:
            raise HybridRetrieverError("the vector store is not initialized any more")
        pairs = store.similarity_search_with_relevance_scores(query, k=depth, filter=where or None)
        ids = {item["document"]: item["id"] for item in reversed(items)}
        return [
            {
                "id": _find_id(
                    document.metadata or {}, document.id or ids.get(document.page_content)
                ),
                "document": document.page_content,
                "metadata": dict(document.metadata or {}),
                "score": relevance,
            }
            for document, relevance in pairs
        ]

    def _index_texts(self, items: Sequence[Result]) -> OkapiIndex | None:
        """BM25 over the texts that a filter lets through; None where no text holds a word."""
        texts = {str(row): item["document"] or "" for row, item in enumerate(items)}
        try:
            return OkapiIndex(texts, tokens=self._tokens)
        except DataError:
            return None

    def _sparse_scores(
        self, query: str, index: OkapiIndex, items: Sequence[Result], depth: int
    ) -> list[Result]:
        """The best documents by BM25, best first."""
        scores = index.scores([query])[0]
        rows = rank_by_score(scores, depth=depth, above=None if self._zero_padding else 0.0)
        return [
            {
                "id": _find_id(items[row]["metadata"], items[row]["id"]),
                "document": items[row]["document"],
                "metadata": items[row]["metadata"],
                "score": float(scores[row]),
            }
            for row in rows
        ]

    def _fuse(
        self, dense: Sequence[Result], sparse: Sequence[Result], constant: int
    ) -> list[Result]:
        """Weighted reciprocal ranks; a document that stands twice in a list has its best rank."""
        fused: dict[str, Result] = {}
        for weight, items in zip(self._weights, (dense, sparse), strict=True):
            counted: set[str] = set()
            for rank, item in enumerate(items, start=1):
                if item["id"] not in counted:
                    counted.add(item["id"])
                    fused.setdefault(item["id"], {**item, "score": 0.0})
                    fused[item["id"]]["score"] += weight / (constant + rank)
        return sorted(fused.values(), key=lambda item: -item["score"])


def _find_id(metadata: Mapping[str, Any], chroma_id: str | None) -> str:
    """``filepath`` of the metadata, or else Chroma's id.

    Raises:
        HybridRetrieverError: It has neither.
    """
    name = metadata.get(FILEPATH) or chroma_id
    if not name:
        raise HybridRetrieverError("a document has neither an id nor 'filepath': give it one")
    return str(name)


def _check_number(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise HybridRetrieverError(
            f"{name} {value!r}: a whole number of at least {least} is needed"
        )
    return value
