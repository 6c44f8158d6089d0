"""BM25."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from fusion_bench.retrieve.bm25 import BM25Index
from fusion_bench.retrieve.common import Index, Ranking, rank_chunks, score_chunks
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.okapi import OkapiIndex
from fusion_bench.retrieve.texts import SearchTexts
from fusion_bench.retrieve.tokens import Tokens


@dataclass(frozen=True)
class LexicalRetriever:
    """BM25; with ``whitespace``, that of semche: rank-bm25's formula, padded with score 0.

    Attributes:
        tokens: What a token is.
        language: Of the stemmer.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are held back.
        padding: Whether documents of score 0 fill the list up to its depth; None = where semche
            does, with ``whitespace``.
    """

    name: ClassVar[str] = "bm25"
    roles: ClassVar[tuple[str, ...]] = ("keyword",)

    tokens: Tokens = "stem"
    language: str = "english"
    k1: float = 1.5
    b: float = 0.75
    padding: bool | None = None

    @property
    def has_padding(self) -> bool:
        """Whether documents of score 0 are in the lists."""
        return self.tokens == "whitespace" if self.padding is None else self.padding

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        return {"method": "bm25", **asdict(self), "padding": self.has_padding}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query."""
        context.on_progress("indexing", 0, 1)
        kind = OkapiIndex if self.tokens == "whitespace" else BM25Index
        index: Index = kind(
            texts.documents, tokens=self.tokens, language=self.language, k1=self.k1, b=self.b
        )
        rankings = rank_chunks(
            index.ids,
            score_chunks(index, [*texts.queries.values()]),
            depth=depth,
            above=None if self.has_padding else 0.0,
            on_progress=context.report_queries(len(texts.queries)),
        )
        return dict(zip(texts.queries, rankings, strict=True))
