"""The pairs of query and document that two judges graded, as counts by query."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_slices


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
