"""BM25 as rank-bm25's ``BM25Okapi`` computes it, with documents of score 0 in the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.retrieve.tokens import Tokens, tokenize_texts


class OkapiIndex:
    """An inverted index of a small collection, in memory.

    A word's weight is ln((N − n + ½) / (n + ½)) for n of N documents that hold it. Where that is
    negative, it is ``epsilon`` times the mean of all words' weights.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        tokens: What a token is; semche's are lower-case words between blanks.
        language: Of the stemmer.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are held back, 0 = not at all, 1 = in full proportion.
        epsilon: See above.

    Raises:
        DataError: There is no document, or none holds a word.
    """

    def __init__(
        self,
        documents: Mapping[str, str],
        *,
        tokens: Tokens = "whitespace",
        language: str = "english",
        k1: float = 1.5,
        b: float = 0.75,
        epsilon: float = 0.25,
    ) -> None:
        self.ids = tuple(documents)
        self._tokens: Tokens = tokens
        self._language = language
        texts = tokenize_texts(list(documents.values()), tokens, language=language)
        self._columns = {w: i for i, w in enumerate(dict.fromkeys(w for t in texts for w in t))}
        if not self._columns:
            raise DataError(f"no word to index in {len(self.ids)} documents")
        counts = self._count_words(texts)
        holders = np.bincount(counts.indices, minlength=len(self._columns))
        weights = np.log(len(texts) - holders + 0.5) - np.log(holders + 0.5)
        weights = np.where(weights < 0, epsilon * weights.mean(), weights)
        lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        penalty = k1 * (1 - b + b * lengths / lengths.mean())
        rows = np.repeat(np.arange(len(texts)), np.diff(counts.indptr))
        values = counts.data * (k1 + 1) / (counts.data + penalty[rows])
        shape = (len(texts), len(self._columns))
        terms = sparse.csr_array((values * weights[counts.indices], (rows, counts.indices)), shape)
        self._terms = sparse.csr_array(terms.T)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """BM25 of every document for every query; a word counts as often as the query holds it.

        Returns:
            Shape (Q, D): 0 where a document shares no word with the query.
        """
        words = tokenize_texts(queries, self._tokens, language=self._language)
        asked = self._count_words(words)
        return np.asarray((asked @ self._terms).toarray(), dtype=np.float64)

    def _count_words(self, texts: Sequence[Sequence[str]]) -> sparse.csr_array:
        """How often each text holds each known word; shape (texts, words)."""
        counts = [Counter(word for word in text if word in self._columns) for text in texts]
        rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        cells = np.array([self._columns[w] for count in counts for w in count], dtype=np.int64)
        values = np.array([n for count in counts for n in count.values()], dtype=np.float64)
        shape = (len(counts), len(self._columns))
        return sparse.csr_array((values, (rows, cells)), shape=shape)
