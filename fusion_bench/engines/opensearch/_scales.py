"""How OpenSearch scales the scores of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize import Normalizer, ScoreLists

#: What a scaled score of 0, or below the average, becomes.
FLOOR = 0.001


class MinMax(Normalizer):
    """(x − min) / (max − min), 0.001 in place of 0; 1 for equal scores, 0.001 if they are 0."""

    method: str = "opensearch min_max"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0.001, 1]."""
        low, high = lists.list_minimum(), lists.list_maximum()
        scaled = self.divide_or_constant(lists.scores - low, high - low)
        return np.where((scaled == 0) | ((low == 0) & (high == 0)), FLOOR, scaled)


class L2(Normalizer):
    """x / ‖x‖₂; 0 for a list of zeros."""

    method: str = "opensearch l2"
    constant: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] = 0

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): squares adding up to 1 over the list."""
        return self.divide_or_constant(lists.scores, np.sqrt(lists.list_sum(lists.scores**2)))


class ZScore(Normalizer):
    """(x − mean) / sample sd, 0.001 where that is not positive; the greatest score at the mean."""

    method: str = "opensearch z_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): above 0, but for lists of equal scores, which stay as they are."""
        size, high = lists.list_length(), lists.list_maximum()
        mean = lists.list_sum(lists.scores) / size
        variance = lists.list_sum((lists.scores - mean) ** 2) / np.maximum(size - 1, 1)
        is_spread = high > lists.list_minimum()
        scaled = (lists.scores - mean) / np.sqrt(np.where(is_spread, variance, 1.0))
        at_mean = (lists.scores == mean) | ~is_spread
        return np.where(at_mean, high, np.where(scaled <= 0, FLOOR, scaled))


#: By name.
SCALES: Final[Mapping[str, Normalizer]] = {"min_max": MinMax(), "l2": L2(), "z_score": ZScore()}
