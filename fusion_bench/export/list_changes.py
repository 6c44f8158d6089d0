"""Where the lists of two systems differ, and where only equal scores stand in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.query_rankings import rank_queries
from fusion_bench.experiment.system import System

Precision = Literal["float32", "float64"]
#: Relative difference up to which two scores are equal: sums of a few terms lose the last digits.
TOLERANCES: Mapping[Precision, float] = {"float32": 1e-6, "float64": 1e-11}
#: Absolute difference up to which scores about 0 are equal.
NEAR_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class ListChanges:
    """How the lists of two systems differ, query by query.

    Attributes:
        is_changed: Shape (Q,): another order, ties apart.
        is_other_set: Shape (Q,): those of them with other documents.
        is_tied: Shape (Q,): another order among documents of equal scores only.
    """

    is_changed: BoolArray
    is_other_set: BoolArray
    is_tied: BoolArray


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The lists of one system.

    Attributes:
        top: Shape (Q, K): document at each rank; -1 = none.
        keys: Shape (N,): query and document of each candidate, rising.
        scores: Shape (N,): the scores that decide the order.
        tiers: Shape (N,): a candidate of a higher tier stands above, whatever its score.
        width: A key is query · width + document + 1.
    """

    top: IntArray
    keys: IntArray
    scores: FloatArray
    tiers: IntArray
    width: int

    def are_equal(self, first: IntArray, second: IntArray, tolerance: float) -> BoolArray:
        """Whether the scores of pairs of candidates are equal; not where one is no candidate."""
        last = len(self.keys) - 1
        i, j = (np.minimum(np.searchsorted(self.keys, keys), last) for keys in (first, second))
        are_known = (self.keys[i] == first) & (self.keys[j] == second)
        a, b = self.scores[i], self.scores[j]
        is_near = np.isclose(a, b, rtol=tolerance, atol=NEAR_ZERO)
        return np.asarray(are_known & is_near & (self.tiers[i] == self.tiers[j]))


def compare_lists(
    first: System,
    second: System,
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
    *,
    precision: Precision = "float32",
    top: int,
) -> ListChanges:
    """Compare the final lists of two systems on every query.

    Args:
        first: A system.
        second: Another one.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
        precision: In which scores count as equal, by either system.
        top: So many documents of each list are compared.
    """
    before, after = (rank_lists(system, runs, spaces, top) for system in (first, second))
    return find_changes(before, after, precision)


def find_changes(before: ScoredLists, after: ScoredLists, precision: Precision) -> ListChanges:
    """The differences of two systems' lists over the same runs, cut at the same rank.

    Args:
        before: Of the first system.
        after: Of the second one.
        precision: In which scores count as equal, by either system.
    """
    queries, ranks = np.nonzero(before.top != after.top)
    here, there = (
        queries * before.width + lists.top[queries, ranks] + 1 for lists in (before, after)
    )
    tolerance = TOLERANCES[precision]
    is_tie = before.are_equal(here, there, tolerance) | after.are_equal(here, there, tolerance)
    is_different = np.zeros(len(before.top), dtype=bool)
    is_different[queries] = True
    is_changed = np.zeros(len(before.top), dtype=bool)
    is_changed[queries[~is_tie]] = True
    is_other_set = (np.sort(before.top, axis=1) != np.sort(after.top, axis=1)).any(axis=1)
    return ListChanges(is_changed, is_changed & is_other_set, is_different & ~is_changed)


def rank_lists(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace], top: int
) -> ScoredLists:
    """The final lists of a system.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
        top: So many documents of each list are kept.
    """
    tops = np.full((len(runs.queries), top), -1, dtype=np.int64)
    parts: list[tuple[IntArray, FloatArray, IntArray]] = []
    width = len(runs.vocabulary) + 1
    for index, ranking in rank_queries(system, runs, spaces):
        queries = index[ranking.runs.query_index]
        is_top = (ranking.positions > 0) & (ranking.positions <= top)
        documents = np.asarray(ranking.runs.documents, dtype=np.int64)
        tops[queries[is_top], ranking.positions[is_top] - 1] = documents[is_top]
        tiers = np.asarray(ranking.tiers, dtype=np.int64)
        parts.append((queries * width + documents + 1, ranking.sort_scores, tiers))
    keys, scores, tiers = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return ScoredLists(tops, keys[order], scores[order], tiers[order], width)
