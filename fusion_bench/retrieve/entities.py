"""Finding the entities that a text names: where a walk over a graph of them starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from fusion_bench.data.ordering import FloatArray
from fusion_bench.retrieve.tokens import Tokens, tokenize_texts


class EntityLinker:
    """Matches texts with the names of entities, word by word.

    A word weighs its inverse document frequency among the names, ln(1 + E / names that hold it),
    so that "Discovery", which ends thirty names, says little and "Kerberoasting" all. An entity's
    coverage is the share of its name's weight that the text holds.

    Args:
        names: Entity → its name; columns of :meth:`seeds` follow its order.
        threshold: Smallest coverage that counts as named, in (0, 1].
        sharpness: Power of the coverage in the seed: the higher, the less half a name counts.
        language: Stemmer and stopword list.
        tokens: What a word is; ``bigrams`` finds names in Japanese texts.

    Raises:
        MissingExtraError: bm25s or PyStemmer is not installed.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        *,
        threshold: float = 0.5,
        sharpness: float = 2.0,
        language: str = "english",
        tokens: Tokens = "stem",
    ) -> None:
        self.entities = tuple(names)
        self._threshold, self._sharpness = threshold, sharpness
        self._language = language
        self._tokens: Tokens = tokens
        words = self._list_words(list(names.values()))
        self._columns = {w: i for i, w in enumerate(sorted({w for name in words for w in name}))}
        holds = _incidence_matrix(words, self._columns)
        frequency = np.asarray(holds.sum(axis=0), dtype=np.float64).ravel()
        weights = np.log1p(len(words) / np.maximum(frequency, 1))
        self._weighted = sparse.csr_array(holds * weights)
        self._total = np.asarray(self._weighted.sum(axis=1), dtype=np.float64).ravel()

    def coverage(self, texts: Sequence[str]) -> FloatArray:
        """Share of each entity's name that each text holds, by weight; shape (Q, E), in [0, 1]."""
        words = self._list_words(texts)
        matched = (_incidence_matrix(words, self._columns) @ self._weighted.T).toarray()
        return np.asarray(matched / np.where(self._total > 0, self._total, 1.0), dtype=np.float64)

    def seeds(self, texts: Sequence[str]) -> FloatArray:
        """How strongly each text names each entity.

        Returns:
            Shape (Q, E): coverage^sharpness times the name's whole weight, 0 below the
            threshold. A row of zeros is a text that names none.
        """
        coverage = self.coverage(texts)
        strength = coverage**self._sharpness * self._total
        # The tolerance keeps a name of exactly half its weight in, whatever the sum's rounding.
        return np.where(coverage >= self._threshold - 1e-12, strength, 0.0)

    def _list_words(self, texts: Sequence[str]) -> list[list[str]]:
        """The different words of each text, sorted."""
        words = tokenize_texts(texts, self._tokens, language=self._language)
        return [sorted(set(text)) for text in words]


def _incidence_matrix(
    words: Sequence[Sequence[str]], columns: Mapping[str, int]
) -> sparse.csr_array:
    """Which known words each text holds: 0 or 1, shape (texts, words)."""
    rows = [row for row, text in enumerate(words) for word in text if word in columns]
    cells = [columns[word] for text in words for word in text if word in columns]
    shape = (len(words), len(columns))
    return sparse.csr_array((np.ones(len(rows)), (rows, cells)), shape=shape)
