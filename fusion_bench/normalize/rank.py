"""Scalings that read only the rank."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


@normalizers.register
class RankScale(Normalizer):
    """``rank``: 1 − (r − 1) / n, n the length of the list."""

    method: str = "rank"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1, the last 1/n."""
        return 1 - (lists.ranks - 1) / lists.list_length()


@normalizers.register
class BordaScale(Normalizer):
    """``borda``: 1 − (r − 1) / |C|, C the query's candidate union over the sources."""

    method: str = "borda"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1."""
        return 1 - (lists.ranks - 1) / lists.pool
