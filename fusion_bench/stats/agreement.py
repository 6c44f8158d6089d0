"""Agreement of judges: pairs of grades, Cohen's kappa, the correlation of two orders.

κ = 1 − Σ w_ij o_ij / Σ w_ij e_ij with observed shares o_ij, shares e_ij = o_i. o_.j expected of
independent judges, and disagreements w_ij: 0 on the diagonal, else 1 (Cohen 1960, "A coefficient of
agreement for nominal scales"), |g_i − g_j| or its square (Cohen 1968, "Weighted kappa").

The interval is the delete-one-query jackknife's (Efron & Tibshirani 1993, "An Introduction to the
Bootstrap", chapter 11) with Student's t on Q − 1 degrees of freedom. The pairs of one query depend
on each other: one reading of the query decides many of its grades. The large-sample formula of
Fleiss, Cohen & Everitt 1969 counts pairs as independent, so its intervals are too narrow;
``benchmarks/studies/agreement_table.py`` measures by how much.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.grouped_rows import query_slices
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.stats.intervals import t_quantile


@dataclass(frozen=True, eq=False)
class GradePairs:
    """Double-judged pairs, counted by query and by the two grades.

    Attributes:
        queries: The Q queries with at least one such pair, sorted.
        grades: The K grades that either judge gave to such a pair, ascending.
        counts: Shape (Q, K, K): pairs of a query with the first judge's grade (second axis) and
            the second judge's (last axis).
    """

    queries: tuple[str, ...]
    grades: tuple[int, ...]
    counts: IntArray

    @property
    def total(self) -> IntArray:
        """(K, K): counts over all queries."""
        return np.asarray(self.counts.sum(axis=0))

    def binary_counts(self, relevance: int) -> IntArray:
        """(Q, 2, 2): the same with each grade below ``relevance`` as 0, the others as 1."""
        groups = (np.array(self.grades) >= relevance).astype(np.int64)
        members = np.stack([groups == 0, groups == 1]).astype(np.int64)
        return np.asarray(np.einsum("ai,qij,bj->qab", members, self.counts, members))


def pair_grades(first: Qrels, second: Qrels) -> GradePairs:
    """What two judges gave to the pairs that both graded; none is possible."""
    rows: list[tuple[int, int, int]] = []
    queries: list[str] = []
    common = set(first.queries) & set(second.queries)
    for (query, left), (_, right) in zip(
        _grades_by_query(first, common), _grades_by_query(second, common), strict=True
    ):
        shared = left.keys() & right.keys()
        rows += [(len(queries), left[document], right[document]) for document in shared]
        queries += [query] if shared else []
    grades = sorted({grade for row in rows for grade in row[1:]})
    counts = np.zeros((len(queries), len(grades), len(grades)), np.int64)
    if rows:
        table = np.array(rows)
        codes = np.searchsorted(grades, table[:, 1:])
        np.add.at(counts, (table[:, 0], codes[:, 0], codes[:, 1]), 1)
    return GradePairs(tuple(queries), tuple(grades), counts)


def _grades_by_query(
    qrels: Qrels, queries: Collection[str]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Document → grade of each of these queries, in the order of the queries' ids."""
    for query, rows in query_slices(qrels.queries, qrels.offsets):
        if query in queries:
            codes, grades = qrels.documents[rows], qrels.grades[rows].tolist()
            yield query, dict(zip((qrels.vocabulary[c] for c in codes), grades, strict=True))


#: How far apart two grades count: all the same, by their distance, or by its square.
Weighting: TypeAlias = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True, eq=False)
class Kappa:
    """Cohen's kappa of two judges.

    Attributes:
        value: κ over all pairs; NaN without pairs, or where both judges give one grade alone.
        low: Lower end of the interval; NaN where ``value`` is, and with one query.
        high: Upper end; NaN likewise.
        without_query: Shape (Q,): κ without each query.
    """

    value: float
    low: float
    high: float
    without_query: FloatArray


def make_weights(grades: tuple[int, ...], weighting: Weighting) -> FloatArray:
    """(K, K): the disagreement of each two grades, at most 1."""
    values = np.array(grades, np.float64)
    distance: FloatArray = np.abs(values[:, None] - values)
    if weighting == "none" or not distance.any():
        return np.asarray(distance > 0, np.float64)
    scaled = distance / distance.max()
    return np.asarray(scaled if weighting == "linear" else scaled**2)


def measure_kappa(counts: IntArray, weights: FloatArray) -> Kappa:
    """Cohen's kappa with its 95 % interval.

    Args:
        counts: Shape (Q, K, K): pairs by query, grade of the first judge, grade of the second.
        weights: Shape (K, K): the disagreement of two grades, 0 on the diagonal.
    """
    total = counts.sum(axis=0)
    value = float(kappa_of_counts(total, weights))
    without = kappa_of_counts(total - counts, weights)
    low = high = math.nan
    queries = len(counts)
    if queries > 1 and np.isfinite(value) and np.isfinite(without).all():
        error = math.sqrt((queries - 1) / queries * float(((without - without.mean()) ** 2).sum()))
        half_width = t_quantile(queries - 1, 0.975) * error
        low, high = max(-1.0, value - half_width), min(1.0, value + half_width)
    return Kappa(value, low, high, without)


def kappa_of_counts(counts: IntArray, weights: FloatArray) -> FloatArray:
    """Shape (…): κ of counts of shape (…, K, K); NaN where no disagreement is to be expected."""
    total = counts.sum(axis=(-2, -1), dtype=np.float64)
    rows, columns = counts.sum(axis=-1, dtype=np.float64), counts.sum(axis=-2, dtype=np.float64)
    observed = (weights * counts).sum(axis=(-2, -1)) * total
    expected = np.einsum("...i,ij,...j->...", rows, weights, columns)
    safe = np.where(expected > 0, expected, 1.0)
    return np.asarray(np.where(expected > 0, 1 - observed / safe, math.nan))
