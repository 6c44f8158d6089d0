"""Scalings that read only the rank."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Lists, Normalizer, normalizers


@normalizers.register
class Rank(Normalizer):
    """``rank``: 1 − (r − 1) / n, n the length of the list."""

    method: str = "rank"

    def scale(self, lists: Lists) -> FloatArray:
        """(n,): the first document 1, the last 1/n."""
        return 1 - (lists.ranks - 1) / lists.size()


@normalizers.register
class Borda(Normalizer):
    """``borda``: 1 − (r − 1) / |C|, C the query's candidate union over the sources."""

    method: str = "borda"

    def scale(self, lists: Lists) -> FloatArray:
        """(n,): the first document 1."""
        return 1 - (lists.ranks - 1) / lists.pool
