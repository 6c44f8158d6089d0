"""BM25, by bm25s or as rank-bm25 computes it, over tokens of texts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from scipy import sparse

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.models import retrieval
from fusion_bench.models.options import LexicalOptions, Tokens

#: Scripts without blanks between words: kana, Han, Hangul, their compatibility forms and marks.
_WIDE: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WIDE_RUN: Final = re.compile(rf"[{_WIDE}]+")


def tokenize_texts(
    texts: Sequence[str], tokens: Tokens = "stem", *, language: str = "english"
) -> list[list[str]]:
    """Tokens of each text.

    Args:
        texts: One string a text.
        tokens: What a token is, see :data:`Tokens`.
        language: Snowball stemmer and stopword list, as PyStemmer and bm25s name them.

    Raises:
        ConfigError: There is no stemmer for the language.
        MissingExtraError: bm25s or PyStemmer is not installed, and words are stemmed.
    """
    if tokens == "whitespace":
        return [text.lower().split() for text in texts]
    if tokens == "stem":
        return stem_texts(texts, language=language)
    plain = [unicodedata.normalize("NFKC", text) for text in texts]
    words = stem_texts([_WIDE_RUN.sub(" ", text) for text in plain], language=language)
    return [[*pairs, *rest] for pairs, rest in zip(map(list_bigrams, plain), words, strict=True)]


def stem_texts(texts: Sequence[str], *, language: str = "english") -> list[list[str]]:
    """Tokens of each text: lower case, words of two letters or more, stopwords out, stemmed.

    Arguments and errors as for :func:`tokenize_texts`.
    """
    bm25s = retrieval.import_extra("bm25s", purpose="tokenizing for BM25")
    library = retrieval.import_extra("Stemmer", purpose="stemming")
    try:
        stemmer = library.Stemmer(language)
        tokens: list[list[str]] = bm25s.tokenize(
            list(texts), stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False
        )
    except (KeyError, ValueError):
        raise ConfigError(
            f"language {language!r}: no stemmer and stopword list of that name, such as english, "
            "french or german"
        ) from None
    return tokens


def list_bigrams(text: str) -> list[str]:
    """Pairs of neighboring characters in every run of Chinese, Japanese or Korean.

    A run of one character is a token itself, as in Lucene's CJKBigramFilter.
    """
    return [run[i : i + 2] for run in _WIDE_RUN.findall(text) for i in range(max(1, len(run) - 1))]


class BM25Index:
    """An inverted index of a small collection, in memory.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are held back, 0 = not at all, 1 = in full proportion.
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
        language: str = "english",
        tokens: Tokens = "stem",
    ) -> None:
        bm25s = retrieval.import_extra("bm25s", purpose="BM25 retrieval")
        self.ids = tuple(documents)
        self._tokenize = partial(tokenize_texts, tokens=tokens, language=language)
        words = self._tokenize(list(documents.values()))
        if not any(words):
            raise DataError(f"no word to index in {len(self.ids)} documents")
        # The variant "lucene" has no negative scores. With bm25s's float32 the last printed decimal
        # would depend on the machine.
        self._index = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64")
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


#: Share of the mean weight that a word of negative weight has.
EPSILON: Final = 0.25


class OkapiIndex:
    """An inverted index of a small collection, in memory.

    A word's weight is ln((N − n + ½) / (n + ½)) for n of N documents that hold it. Where that is
    negative, it is :data:`EPSILON` times the mean of all words' weights.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        tokens: What a token is; semche's are lower-case words between blanks.
        language: Of the stemmer.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are held back, 0 = not at all, 1 = in full proportion.

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
    ) -> None:
        self.ids = tuple(documents)
        self._tokenize = partial(tokenize_texts, tokens=tokens, language=language)
        texts = self._tokenize(list(documents.values()))
        self._columns = {w: i for i, w in enumerate(dict.fromkeys(w for t in texts for w in t))}
        if not self._columns:
            raise DataError(f"no word to index in {len(self.ids)} documents")
        counts = self._count_words(texts)
        holders = np.bincount(counts.indices, minlength=len(self._columns))
        weights = np.log(len(texts) - holders + 0.5) - np.log(holders + 0.5)
        weights = np.where(weights < 0, EPSILON * weights.mean(), weights)
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
        asked = self._count_words(self._tokenize(queries))
        return np.asarray((asked @ self._terms).toarray(), dtype=np.float64)

    def _count_words(self, texts: Sequence[Sequence[str]]) -> sparse.csr_array:
        """How often each text holds each known word; shape (texts, words)."""
        counts = [Counter(word for word in text if word in self._columns) for text in texts]
        rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        cells = np.array([self._columns[w] for count in counts for w in count], dtype=np.int64)
        values = np.array([n for count in counts for n in count.values()], dtype=np.float64)
        shape = (len(counts), len(self._columns))
        return sparse.csr_array((values, (rows, cells)), shape=shape)


class LexicalRetriever(LexicalOptions):
    """BM25; with ``whitespace``, that of semche: rank-bm25's formula, padded with score 0."""

    name: ClassVar[str] = "bm25"
    roles: ClassVar[tuple[str, ...]] = ("keyword",)

    @property
    def has_padding(self) -> bool:
        """Whether documents of score 0 are in the lists."""
        return self.tokens == "whitespace" if self.padding is None else self.padding

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        return {"method": "bm25", **asdict(self), "padding": self.has_padding}

    def search(
        self, texts: retrieval.SearchTexts, depth: int, context: retrieval.SearchContext
    ) -> Mapping[str, retrieval.Ranking]:
        """At most ``depth`` documents for each query."""
        context.on_progress("indexing", 0, 1)
        kind: type[OkapiIndex | BM25Index] = (
            OkapiIndex if self.tokens == "whitespace" else BM25Index
        )
        index = kind(
            texts.documents, tokens=self.tokens, language=self.language, k1=self.k1, b=self.b
        )
        asked, size = [*texts.queries.values()], retrieval.CHUNK
        chunks = (index.scores(asked[start : start + size]) for start in range(0, len(asked), size))
        above = None if self.has_padding else 0.0
        return context.rank_queries(texts, index.ids, chunks, depth, above)
