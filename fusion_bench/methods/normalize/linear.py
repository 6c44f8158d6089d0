"""Scalings that are linear in the score: by its extremes, its sum, its spread; by source."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, greatest_size
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.normalize._base import (
    HUGE,
    AnyNormalizer,
    Normalizer,
    ScoreLists,
    normalizers,
)


@normalizers.register
class RawScores(Normalizer):
    """``none``: x.

    Source: none is needed; the scores stay as the list has them. Fit for lists of one scale.
    """

    reads_ranks = False

    method: str = "none"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the scores themselves."""
        return lists.scores

    def normalize_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the scores of the runs, without a copy where all are in range."""
        return runs.scores if _greatest_score(runs) < HUGE else super().normalize_scores(runs)


@cached_by_view()
def _greatest_score(runs: AlignedRuns) -> float:
    return greatest_size(runs.scores)


@normalizers.register
class MinMax(Normalizer):
    """``min_max``: (x − min) / (max − min).

    Source: Lee, "Analyses of multiple evidence combination", SIGIR 1997; ``min-max`` of ranx.

    Example: scores 9, 6 and 3 become 1, .5 and 0.
    """

    reads_ranks = False

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

    searched = False  # turns every list round, unless the scores are distances
    reorders = True

    method: str = "min_max_inverted"

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

    searched = False
    reads_ranks = False

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


@normalizers.register
class ZScore(Normalizer):
    """``z_score``: (x − mean) / sd, population sd.

    Source: Montague and Aslam, "Relevance score normalization for metasearch", CIKM 2001 (ZMUV:
    zero mean, unit variance); ``zmuv`` of ranx. About half of a list is below 0: see ``missing``.

    Example: scores 3, 2 and 1 become 1.225, 0 and −1.225.
    """

    reads_ranks = False

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


@normalizers.register
class BySource(Normalizer):
    """``by_source``: for each source its own normalizer.

    Source: those of the normalizers that it names.

    Example: ``{sources: {keyword: min_max, semantic: z_score}}`` scales BM25 by its extremes and
    cosines by mean and deviation.

    Attributes:
        sources: By source name or role, as weights go; no two may fit one source.
        default: Of a source that none of them fits.
    """

    searched = False

    method: str = "by_source"
    sources: dict[str, AnyNormalizer] = Field(min_length=1)
    default: AnyNormalizer = RawScores()

    @model_validator(mode="after")
    def _check_constant(self) -> BySource:
        if self.constant != type(self).model_fields["constant"].default:
            raise ValueError("constant belongs into each normalizer of 'sources', and 'default'")
        return self

    def keep_sources(self, names: Collection[str]) -> BySource:
        """Without the normalizers of other sources."""
        sources = {key: scale for key, scale in self.sources.items() if key in names}
        return self.model_copy(update={"sources": sources})

    @property
    def keeps_order(self) -> bool:
        """Whether all of them do."""
        return all(scale.keeps_order for scale in (*self.sources.values(), self.default))

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): what the source's normalizer makes of them.

        Raises:
            ConfigError: Two keys fit the source.
        """
        fitting = [key for key in self.sources if key == lists.name or key in lists.roles]
        if len(fitting) > 1:
            raise ConfigError(
                f"normalize: {' and '.join(map(repr, fitting))} both fit source {lists.name!r}: "
                "keep one"
            )
        scale = self.sources[fitting[0]] if fitting else self.default
        return scale.scale_finite(lists)
