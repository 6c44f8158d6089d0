"""Scalings that read only the rank."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


@normalizers.register
class RankScale(Normalizer):
    """``rank``: 1 − (r − 1) / n, n the length of the list.

    Source: Renda and Straccia, "Web metasearch: rank vs. score based rank aggregation methods", SAC
    2003; ``rank`` of ranx.

    Example: the first two documents of a list of 20 have 1 and .95.
    """

    method: str = "rank"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1, the last 1/n."""
        return 1 - (lists.ranks - 1) / lists.list_length()


@normalizers.register
class BordaScale(Normalizer):
    """``borda``: 1 − (r − 1) / |C|, C the query's candidate union over the sources.

    Source: Renda and Straccia, as for ``rank``; ``borda`` of ranx, which also gives documents that
    the list lacks a share. Here the fusion's ``missing`` decides on these.

    Example: where the lists return 40 documents together, ranks 1 and 2 have 1 and .975.
    """

    method: str = "borda"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1."""
        return 1 - (lists.ranks - 1) / lists.pool
