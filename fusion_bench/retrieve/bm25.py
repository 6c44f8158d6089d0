"""BM25 over stemmed words or bigrams (Robertson & Zaragoza 2009), computed by bm25s (Lù 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.retrieve.common import import_extra
from fusion_bench.retrieve.tokens import Tokens, tokenize_texts


class BM25Index:
    """An inverted index of a small collection, in memory.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are held back, 0 = not at all, 1 = in full proportion.
        method: The variant of the formula, as bm25s names it; ``lucene`` has no negative scores.
        language: Stemmer and stopword list.
        tokens: What a token is.

    Raises:
        DataError: There is no document, or none holds a word.
        MissingExtraError: bm25s or PyStemmer is not installed.
    """

    def __init__(
        self,
        documents: Mapping[str, str],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        method: str = "lucene",
        language: str = "english",
        tokens: Tokens = "stem",
    ) -> None:
        bm25s = import_extra("bm25s", purpose="BM25 retrieval")
        self.ids = tuple(documents)
        self._language = language
        self._tokens: Tokens = tokens
        words = self._tokenize(list(documents.values()))
        if not any(words):
            raise DataError(f"no word to index in {len(self.ids)} documents")
        # float64: with bm25s's float32 the last printed decimal would depend on the machine.
        self._index = bm25s.BM25(k1=k1, b=b, method=method, dtype="float64")
        self._index.index(words, show_progress=False)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """BM25 of every document for every query.

        Returns:
            Shape (Q, D): 0 where a document shares no word with the query.
        """
        result = np.zeros((len(queries), len(self.ids)))
        for row, tokens in zip(result, self._tokenize(queries), strict=True):
            known = self._index.get_tokens_ids(tokens)
            if known:
                row[:] = self._index.get_scores_from_ids(known)
        return result

    def _tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        return tokenize_texts(texts, self._tokens, language=self._language)
