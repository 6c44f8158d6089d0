"""Personalized PageRank over a weighted graph of entities: the graph runs of attack and referee.

A walker starts at a seed and, at every step, follows an edge with probability ``damping`` or
jumps back to a seed. How often it is at a node is that node's score: what is near the seeds over
many short ways scores high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.models.retrievers.lexical import tokenize_texts


class EntityLinker:
    """Matches texts with the names of entities, word by word.

    A word weighs its inverse document frequency among the names, ln(1 + E / names that hold it),
    so that "Discovery", which ends thirty names, says little and "Kerberoasting" all. An entity's
    coverage is the share of its name's weight that the text holds.

    Args:
        names: Entity → its name; columns of :meth:`seeds` follow its order.
        threshold: Share of a name that a text must hold.
        sharpness: The higher, the less half a name counts.
        language: Of the stemmer and the stopwords.

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
    ) -> None:
        self.entities = tuple(names)
        self._threshold, self._sharpness, self._language = threshold, sharpness, language
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
        words = tokenize_texts(texts, "stem", language=self._language)
        return [sorted(set(text)) for text in words]


def _incidence_matrix(
    words: Sequence[Sequence[str]], columns: Mapping[str, int]
) -> sparse.csr_array:
    """Which known words each text holds: 0 or 1, shape (texts, words)."""
    rows = [row for row, text in enumerate(words) for word in text if word in columns]
    cells = [columns[word] for text in words for word in text if word in columns]
    shape = (len(words), len(columns))
    return sparse.csr_array((np.ones(len(rows)), (rows, cells)), shape=shape)


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph as the walker sees it.

    Attributes:
        nodes: Names, shape (N,).
        transition: Shape (N, N): column j holds the chances of a step from node j; it sums to 1,
            or to 0 for a node without edges.
    """

    nodes: tuple[str, ...]
    transition: sparse.csr_array

    @classmethod
    def from_edges(cls, nodes: Sequence[str], edges: Iterable[tuple[str, str, float]]) -> Graph:
        """Build from undirected edges (one end, other end, weight); parallel ones add up.

        Raises:
            DataError: A node listed twice, an edge to an unknown node, a weight that is not a
                positive finite number.
        """
        index = {node: i for i, node in enumerate(nodes)}
        if len(index) != len(nodes):
            raise DataError(f"{len(nodes) - len(index)} of {len(nodes)} graph nodes are repeated")
        ends: list[tuple[int, int]] = []
        weights: list[float] = []
        for start, other, weight in edges:
            if start not in index or other not in index:
                raise DataError(f"edge {start!r}–{other!r}: both ends must be among the nodes")
            if not (math.isfinite(weight) and weight > 0):
                raise DataError(f"edge {start!r}–{other!r}: weight {weight} is not positive")
            ends += [(index[start], index[other]), (index[other], index[start])]
            weights += [weight, weight]
        return cls(tuple(nodes), _column_stochastic(len(nodes), ends, weights))


def personalized_pagerank(
    graph: Graph, seeds: FloatArray, *, damping: float = 0.85, tolerance: float = 1e-10
) -> FloatArray:
    """Stationary distribution of the walk, for many sets of seeds at once.

    Every step shrinks the error by ``damping``, so the tolerance fixes the number of steps
    beforehand and no query's result depends on which others are computed with it. A walker at a
    node without edges jumps back to the seeds.

    Args:
        graph: Where to walk.
        seeds: Shape (Q, N): weight of each node as a starting point, ≥ 0; scaled to sum 1.
        damping: Chance of following an edge rather than jumping back, in [0, 1).
        tolerance: Greatest sum of absolute errors of a row.

    Returns:
        Shape (Q, N): each row sums to 1, or is all 0 where there are no seeds.

    Raises:
        DataError: A seed weight is negative or not finite, or does not fit the graph; damping or
            tolerance is out of range.
    """
    _check_arguments(graph, seeds, damping, tolerance)
    total = seeds.sum(axis=1, keepdims=True)
    # Work in (N, Q): a sparse matrix multiplies columns.
    start = (seeds / np.where(total > 0, total, 1.0)).T
    # |x_t − x*|₁ ≤ damping^t · |x_0 − x*|₁, and two distributions are at most 2 apart.
    steps = math.ceil(math.log(tolerance / 2) / math.log(damping)) if damping > 0 else 0
    dangling = np.asarray(graph.transition.sum(axis=0)).ravel() == 0
    walk = start
    for _ in range(max(steps, 0)):
        lost = walk[dangling].sum(axis=0)
        walk = damping * (graph.transition @ walk + start * lost) + (1 - damping) * start
    return np.ascontiguousarray(walk.T)


def _check_arguments(graph: Graph, seeds: FloatArray, damping: float, tolerance: float) -> None:
    if seeds.ndim != 2 or seeds.shape[1] != len(graph.nodes):
        raise DataError(f"seeds of shape {seeds.shape} for {len(graph.nodes)} nodes: need (Q, N)")
    if not np.isfinite(seeds).all() or (seeds < 0).any():
        raise DataError("a seed weight is negative or not finite")
    if not 0 <= damping < 1:
        raise DataError(f"damping {damping}: allowed is 0 ≤ damping < 1")
    if not tolerance > 0:
        raise DataError(f"tolerance {tolerance}: must be greater than 0")


def _column_stochastic(
    size: int, ends: Sequence[tuple[int, int]], weights: Sequence[float]
) -> sparse.csr_array:
    """Adjacency scaled so that what leaves a node sums to 1."""
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    values = np.array(weights, dtype=np.float64)
    adjacency = sparse.csr_array((values, (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    out = np.asarray(adjacency.sum(axis=0), dtype=np.float64).ravel()
    scale = np.divide(1.0, out, out=np.zeros(size), where=out > 0)
    return sparse.csr_array(adjacency * scale)
