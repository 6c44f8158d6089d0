"""A normalizer for each source."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, model_validator

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.normalize._base import AnyNormalizer, Normalizer, ScoreLists, normalizers
from fusion_bench.normalize.linear import RawScores


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

    searched: ClassVar[bool] = False

    method: str = "by_source"
    sources: dict[str, AnyNormalizer] = Field(min_length=1)
    default: AnyNormalizer = RawScores()

    @model_validator(mode="after")
    def _check_constant(self) -> BySource:
        if self.constant != type(self).model_fields["constant"].default:
            raise ValueError("constant belongs into each normalizer of 'sources', and 'default'")
        return self

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
