"""Recall, precision and success: how many relevant documents stand within a cutoff."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures._base import BinaryMeasure, RequiredRanks, measure_classes
from fusion_bench.measures.rankings.ranking import Ranking, divide_or_zero, relevant_counts
from fusion_bench.measures.rankings.returned_documents import ReturnedDocuments
from fusion_bench.measures.rankings.tied_lists import TiedLists


class _RelevantInTop(BinaryMeasure):
    """A measure that depends on the number of relevant documents within the cutoff alone."""

    needs_cutoff: ClassVar[bool] = True
    required_ranks: ClassVar[RequiredRanks] = "relevant"

    def _count_relevant(self, ranking: Ranking) -> IntArray:
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        return np.bincount(rows.query, minlength=ranking.size)

    def _expected_count(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        return lists.by_query(lists.mean_by_rank(lists.grade >= self.rel, depth))

    def _filled_gains(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q, L): the probability that each rank within the cutoff is relevant."""
        return returned.fill_gains(returned.grade >= self.rel, self.cutoff)


@measure_classes.register
class Recall(_RelevantInTop):
    """``R``: the share of all relevant documents within the cutoff (trec_eval's m_recall)."""

    method: str = "R"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        return divide_or_zero(
            self._count_relevant(ranking), relevant_counts(ranking.runs, self.rel)
        )

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        return divide_or_zero(
            self._expected_count(lists, depth), relevant_counts(lists.runs, self.rel)
        )

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): the expected number of relevant documents over the known ones, at most 1."""
        count = self._filled_gains(returned).sum(axis=1)
        return np.minimum(divide_or_zero(count, relevant_counts(returned.runs, self.rel)), 1)


@measure_classes.register
class Precision(_RelevantInTop):
    """``P``: relevant documents over the cutoff, however short the list is (trec_eval's m_P)."""

    method: str = "P"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): at most 1."""
        return self._count_relevant(ranking) / np.float64(self.cutoff or 1)

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        return self._expected_count(lists, depth) / np.float64(self.cutoff or 1)

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): the expected number of relevant documents over the cutoff."""
        return np.asarray(self._filled_gains(returned).sum(axis=1) / (self.cutoff or 1))


@measure_classes.register
class Success(_RelevantInTop):
    """``Success``: 1 where any document within the cutoff is relevant (trec_eval's m_success)."""

    method: str = "Success"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): 0 or 1."""
        return (self._count_relevant(ranking) > 0).astype(np.float64)

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): the probability that the first relevant document falls within the depth."""
        return lists.expect_at_first(lists.grade >= self.rel, depth, np.ones_like)

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): 1 − Π_r (1 − p_r), p_r the probability that rank r is relevant."""
        return np.asarray(1 - np.prod(1 - self._filled_gains(returned), axis=1))
