"""Keyword weights scaled down where the semantic lists are sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.limits import Rank
from fusion_bench.config.parameters import Parameter, Params, real
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.policies._base import Choice, Policy, index_variants, is_semantic, policies
from fusion_bench.policies._features import DEPTH, QueryFeatures, mean_of_rows


@policies.register
class MarginSilencing(Policy):
    """``margin_silencing``: keyword weight · max(0, 1 − (semantic top − mean of next) / margin).

    Source: lilbee, pull request 556 ("Adaptive per-query fusion"), with its margin of .15; how
    many runners-up its window has is not stated there. The fusion's weights are the greatest; the
    factor is rounded to two decimals. A source whose weight becomes 0 takes no part in the query.
    Several semantic lists: the mean of their margins. Scores are raw, so the margin belongs to the
    scale of the model: .15 is one of cosine similarities.

    Example: a top cosine .80 over runners-up of .74 on average is a margin of .06, and the keyword
    weight is 1 − .06 / .15 = .6 of what it was.

    Attributes:
        margin: The margin at which keyword sources are silenced.
        window: Number of runners-up.
        floor: The least factor; 0 silences.
    """

    formula: ClassVar[str] = "w·max(floor, 1 − (top − mean of the next window) / margin)"
    source: ClassVar[str] = "lilbee pull request 556"

    method: str = "margin_silencing"
    margin: Annotated[float, Field(gt=0)] = 0.15
    window: Rank = DEPTH
    floor: Annotated[float, Field(ge=0, le=1)] = 0.0

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources without a semantic one or without another one."""
        is_semantic(self.method, sources, roles)

    def choose(self, features: QueryFeatures) -> Choice:
        """The scaled weights by query."""
        semantic, _, factor = self._measure_margins(features)
        weights = features.weights * np.where(semantic, 1.0, factor[:, None])
        return index_variants(features.runs.sources, weights)

    def _measure_margins(self, features: QueryFeatures) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(S,) which sources are semantic, (Q,) their margin, (Q,) the factor of the others."""
        runs = features.runs
        semantic = np.array(is_semantic(self.method, runs.sources, runs.roles))
        margin = mean_of_rows(features.margins(self.window)[semantic])
        factor = np.clip(1 - margin / self.margin, self.floor, 1.0).astype(np.float64)
        return semantic, margin, np.round(factor, 2)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The margin and the factor."""
        _, margin, factor = self._measure_margins(features)
        return (
            f"the semantic top score is {margin[0]:.4g} above the mean of the next {self.window}, "
            f"so other weights are multiplied by {factor[0]:g}"
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Margin and floor."""
        return real("margin", 0.01, 10.0, log=True), real("floor", 0.0, 1.0)

    def presets(self) -> tuple[Params, ...]:
        """The published margin."""
        return ({"margin": 0.15, "floor": 0.0},)
