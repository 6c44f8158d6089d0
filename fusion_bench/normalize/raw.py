"""Scores as they are."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Lists, Normalizer, normalizers


@normalizers.register
class Raw(Normalizer):
    """``none``: x."""

    method: str = "none"

    def scale(self, lists: Lists) -> FloatArray:
        """(n,): the scores themselves."""
        return lists.scores
