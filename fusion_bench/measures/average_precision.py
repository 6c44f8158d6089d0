"""Average precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures._base import BinaryMeasure, RequiredRanks, measure_classes
from fusion_bench.measures.rankings.ranking import (
    Ranking,
    count_in_groups,
    divide_or_zero,
    relevant_counts,
)
from fusion_bench.measures.rankings.returned_documents import ReturnedDocuments
from fusion_bench.measures.rankings.tied_lists import TiedLists


@measure_classes.register
class AveragePrecision(BinaryMeasure):
    """``AP``: precision summed at relevant documents, over all relevant ones.

    Source: trec_eval's m_map and m_map_cut.
    """

    required_ranks: ClassVar[RequiredRanks] = "relevant"

    method: str = "AP"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        precision = count_in_groups(rows.query) / rows.position
        total = np.bincount(rows.query, precision, minlength=ranking.size)
        return divide_or_zero(total, relevant_counts(ranking.runs, self.rel))

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): the sum of E[relevant at i · precision at i] over the ranks i.

        The j-th member of a group behind R relevant documents is relevant with probability r/n;
        given that, each of the j − 1 members before it is with (r − 1)/(n − 1).
        """
        relevant = lists.sum_by_group(lists.grade >= self.rel)
        running = np.cumsum(relevant) - relevant
        earlier = running - running[np.searchsorted(lists.owner, lists.owner)]  # of its own query
        r, n = relevant[lists.group], lists.members[lists.group]
        others = (lists.position - lists.before[lists.group] - 1) * (r - 1) / np.maximum(n - 1, 1)
        terms = r / n * (earlier[lists.group] + 1 + others) / lists.position
        terms[lists.position > depth[lists.query]] = 0
        return divide_or_zero(lists.by_query(terms), relevant_counts(lists.runs, self.rel))

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): Σ_r p_r (1 + Σ_{s<r} p_s) / r over the relevant ones, at most 1."""
        p = returned.fill_gains(returned.grade >= self.rel, self.cutoff)
        terms = p * (1 + np.cumsum(p, axis=1) - p) / np.arange(1, p.shape[1] + 1)
        relevant = relevant_counts(returned.runs, self.rel)
        return np.minimum(divide_or_zero(terms.sum(axis=1), relevant), 1)
