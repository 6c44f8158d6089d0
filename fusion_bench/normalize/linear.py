"""Scalings that are linear in the score: as it is, by the extremes or sums of the list."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import AlignmentError
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


@normalizers.register
class RawScores(Normalizer):
    """``none``: x.

    Source: none is needed; the scores stay as the list has them. Fit for lists of one scale.
    """

    method: str = "none"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the scores themselves."""
        return lists.scores


@normalizers.register
class MinMax(Normalizer):
    """``min_max``: (x − min) / (max − min).

    Source: Lee, "Analyses of multiple evidence combination", SIGIR 1997; ``min-max`` of ranx.

    Example: scores 9, 6 and 3 become 1, .5 and 0.
    """

    method: str = "min_max"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the best document 1."""
        low = lists.list_minimum()
        return self.divide_or_constant(lists.scores - low, lists.list_maximum() - low)


@normalizers.register
class MinMaxInverted(Normalizer):
    """``min_max_inverted``: (max − x) / (max − min), for scores that are distances.

    Source: ``min-max-inverted`` of ranx.

    Example: distances .2, .5 and .8 become 1, .5 and 0.
    """

    searched: ClassVar[bool] = False  # turns every list round, unless the scores are distances

    method: str = "min_max_inverted"

    @property
    def keeps_order(self) -> bool:
        """False: the lowest score becomes the highest."""
        return False

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the lowest score 1."""
        high = lists.list_maximum()
        return self.divide_or_constant(high - lists.scores, high - lists.list_minimum())


@normalizers.register
class DivideByMax(Normalizer):
    """``max``: x / max; meaningless, hence refused, where the greatest score is not positive.

    Source: ``max`` of ranx.

    Example: scores 9, 6 and 3 become 1, .667 and .333.
    """

    method: str = "max"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): at most 1."""
        high = lists.list_maximum()
        if (high <= 0).any():
            raise AlignmentError(
                f"normalize: max cannot scale source {lists.name!r}: the greatest score of a list "
                f"is {high.min():g}, and x / max needs it above 0; use min_max"
            )
        return lists.scores / high


@normalizers.register
class DivideBySum(Normalizer):
    """``sum``: (x − min) / Σ(x − min).

    Source: Montague and Aslam, "Relevance score normalization for metasearch", CIKM 2001; ``sum``
    of ranx.

    Example: scores 9, 6 and 3 become .667, .333 and 0.
    """

    method: str = "sum"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): not negative, adding up to 1 over the list."""
        above = lists.scores - lists.list_minimum()
        return self.divide_or_constant(above, lists.list_sum(above))


@normalizers.register
class L2(Normalizer):
    """``l2``: x / ‖x‖₂.

    Source: ``l2`` of the normalization processor of OpenSearch; ``l2_norm`` of Elasticsearch.

    Example: scores 4 and 3 become .8 and .6.
    """

    method: str = "l2"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): squares adding up to 1 over the list."""
        return self.divide_or_constant(lists.scores, np.sqrt(lists.list_sum(lists.scores**2)))


@normalizers.register
class TheoreticalMinMax(Normalizer):
    """``theoretical_min_max``: (x − lo) / (max − lo), lo the least score the source can give.

    Source: Bruch, Gai and Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS
    2023. Unlike ``min_max``, it does not depend on how long the list is.

    Example: with lo = −1, cosines .8 and .6 become 1 and .889.

    Attributes:
        lo: By source name or role: −1 for a cosine, 0 for BM25.
    """

    searched: ClassVar[bool] = False

    method: str = "theoretical_min_max"
    lo: dict[str, float] = Field(min_length=1)

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the best document 1."""
        fitting = sorted(key for key in self.lo if key == lists.name or key in lists.roles)
        if len(fitting) != 1:
            problem = "no value fits" if not fitting else f"{', '.join(fitting)} all fit"
            raise AlignmentError(
                f"normalize: theoretical_min_max needs exactly one 'lo' for source "
                f"{lists.name!r}: {problem} (name it by source or by one of its roles)"
            )
        lo = self.lo[fitting[0]]
        if (lists.scores < lo).any():
            raise AlignmentError(
                f"normalize: source {lists.name!r} has the score {lists.scores.min():g} below its "
                f"declared lo {lo:g}: lower 'lo' or use min_max"
            )
        return self.divide_or_constant(lists.scores - lo, lists.list_maximum() - lo)
