"""Reciprocal rank."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures._base import BinaryMeasure, RequiredRanks, measure_classes
from fusion_bench.measures.rankings.ranking import Ranking, count_in_groups
from fusion_bench.measures.rankings.returned_documents import ReturnedDocuments
from fusion_bench.measures.rankings.tied_lists import TiedLists


@measure_classes.register
class ReciprocalRank(BinaryMeasure):
    """``RR``: one over the rank of the first relevant document (trec_eval's m_recip_rank)."""

    required_ranks: ClassVar[RequiredRanks] = "relevant"

    method: str = "RR"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): 0 where nothing relevant is returned within the cutoff."""
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        first = rows.select_rows(count_in_groups(rows.query) == 1)
        values = np.zeros(ranking.size)
        values[first.query] = 1 / first.position
        return values

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): by where the first relevant document falls."""
        return lists.expect_at_first(lists.grade >= self.rel, depth, lambda rank: 1 / rank)

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): Σ_r p_r / r · Π_{s<r} (1 − p_s), p_r the probability that r is relevant."""
        p = returned.fill_gains(returned.grade >= self.rel, self.cutoff)
        none_yet = np.cumprod(1 - p, axis=1)
        none_before = np.hstack([np.ones((len(p), 1)), none_yet[:, :-1]])[:, : p.shape[1]]
        return np.asarray((p * none_before / np.arange(1, p.shape[1] + 1)).sum(axis=1))
