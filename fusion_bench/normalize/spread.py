"""Scalings by mean and standard deviation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Lists, Normalizer, normalizers


@normalizers.register
class ZScore(Normalizer):
    """``z_score``: (x − mean) / sd, population sd."""

    method: str = "z_score"

    def scale(self, lists: Lists) -> FloatArray:
        """(n,): mean 0 and variance 1 over the list."""
        size = lists.size()
        above = lists.scores - lists.total(lists.scores) / size
        return self.ratio(
            above, np.sqrt(lists.total(above**2) / size), spread=lists.high() > lists.low()
        )


@normalizers.register
class DBSF(Normalizer):
    """``dbsf``: min-max over [mean − 3·sd, mean + 3·sd], sample sd, clipped to [0, 1].

    Source: distribution-based score fusion as in mteb's relative score fusion (clipped) with
    Qdrant's sample standard deviation.
    """

    keeps_order: ClassVar[bool] = False

    method: str = "dbsf"

    def scale(self, lists: Lists) -> FloatArray:
        """(n,): in [0, 1], the mean 0.5."""
        size = lists.size()
        mean = lists.total(lists.scores) / size
        sd = np.sqrt(lists.total((lists.scores - mean) ** 2) / np.maximum(size - 1, 1))
        low = mean - 3 * sd
        scaled = self.ratio(
            lists.scores - low, (mean + 3 * sd) - low, spread=lists.high() > lists.low()
        )
        return np.clip(scaled, 0, 1)
