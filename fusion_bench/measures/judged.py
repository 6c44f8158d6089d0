"""The share of judged documents."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures._base import Measure, RequiredRanks, measure_classes
from fusion_bench.measures.rankings.ranking import Ranking, divide_or_zero
from fusion_bench.measures.rankings.tied_lists import TiedLists


@measure_classes.register
class Judged(Measure):
    """``Judged``: the share of the first ranks that is judged.

    Source: ir_measures; the denominator is min(cutoff, length of the list).
    """

    required_ranks: ClassVar[RequiredRanks] = "judged"

    method: str = "Judged"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): 0 for an empty list."""
        rows = ranking.judged.within_cutoff(self.cutoff)
        length = ranking.returned
        if self.cutoff is not None:
            length = np.minimum(length, self.cutoff)
        return divide_or_zero(np.bincount(rows.query, minlength=ranking.size), length)

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        length = np.bincount(lists.query, minlength=len(lists.runs.queries))
        count = lists.by_query(lists.mean_by_rank(lists.judged, depth))
        return divide_or_zero(count, np.minimum(length, depth).astype(np.float64))
