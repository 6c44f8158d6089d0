"""Scalings by mean and standard deviation."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


@normalizers.register
class ZScore(Normalizer):
    """``z_score``: (x − mean) / sd, population sd.

    Source: Montague and Aslam, "Relevance score normalization for metasearch", CIKM 2001 (ZMUV:
    zero mean, unit variance); ``zmuv`` of ranx. About half of a list is below 0: see ``missing``.

    Example: scores 3, 2 and 1 become 1.225, 0 and −1.225.
    """

    method: str = "z_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): mean 0 and variance 1 over the list."""
        size = lists.list_length()
        above = lists.scores - lists.list_sum(lists.scores) / size
        return self.divide_or_constant(
            above,
            np.sqrt(lists.list_sum(above**2) / size),
            spread=lists.list_maximum() > lists.list_minimum(),
        )


@normalizers.register
class DBSF(Normalizer):
    """``dbsf``: min-max over [mean − 3·sd, mean + 3·sd], sample sd, clipped to [0, 1].

    Source: distribution-based score fusion as in mteb's relative score fusion (clipped) with
    Qdrant's sample standard deviation.

    Attributes:
        clip: Whether scores further from the mean become 0 and 1; false = as in Qdrant.
    """

    method: str = "dbsf"
    clip: bool = True

    @property
    def keeps_order(self) -> bool:
        """Only without ``clip``."""
        return not self.clip

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the mean 0.5; in [0, 1] if clipped."""
        size = lists.list_length()
        mean = lists.list_sum(lists.scores) / size
        sd = np.sqrt(lists.list_sum((lists.scores - mean) ** 2) / np.maximum(size - 1, 1))
        low = mean - 3 * sd
        scaled = self.divide_or_constant(
            lists.scores - low,
            (mean + 3 * sd) - low,
            spread=lists.list_maximum() > lists.list_minimum(),
        )
        return np.clip(scaled, 0, 1) if self.clip else scaled
