"""Scores as they are."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


@normalizers.register
class RawScores(Normalizer):
    """``none``: x."""

    method: str = "none"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the scores themselves."""
        return lists.scores
