"""The weight of semantic sources by the entropy of the keyword scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.limits import Rank
from fusion_bench.config.parameters import Parameter, Params, real
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.policies._base import Choice, Policy, index_variants, is_semantic, policies
from fusion_bench.policies._features import DEPTH, QueryFeatures, mean_of_rows

Share = Annotated[float, Field(ge=0, le=1)]


@policies.register
class EntropyAlpha(Policy):
    """``entropy_alpha``: α = low + (high − low)·σ(steepness·(entropy − midpoint)), by query.

    Source: Weaviate, pull request 12689 ("auto-tune hybrid search alpha"), which names neither
    range nor slope: those are ours. A sharp keyword list (low entropy) leans to keyword search, a
    flat one to semantic search. Sources of role ``semantic`` weigh α, the others 1 − α; α is
    rounded to two decimals.

    Example: with the defaults, entropy .9 gives α = .1 + .8·σ(4) = .89.

    Attributes:
        depth: Number of keyword scores whose entropy counts; several keyword lists: their mean.
        steepness: Slope of the sigmoid; negative turns the rule around.
        midpoint: The entropy at which α is halfway.
        low: Least α; 0 switches semantic sources off.
        high: Greatest α; 1 switches keyword sources off.
    """

    formula: ClassVar[str] = "α = low + (high − low)·σ(steepness·(entropy − midpoint))"
    source: ClassVar[str] = "Weaviate pull request 12689"

    method: str = "entropy_alpha"
    depth: Annotated[Rank, Field(ge=2)] = DEPTH
    steepness: float = 10.0
    midpoint: Share = 0.5
    low: Share = 0.1
    high: Share = 0.9

    @model_validator(mode="after")
    def _check_range(self) -> EntropyAlpha:
        if self.low > self.high:
            raise ValueError(f"low must not be above high, given {self.low:g} and {self.high:g}")
        return self

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources without a semantic one or without another one."""
        is_semantic(self.method, sources, roles)

    def choose(self, features: QueryFeatures) -> Choice:
        """α by query, as weights of the sources."""
        semantic, _, alphas = self._measure_entropies(features)
        alpha = alphas[:, None]
        weights = np.where(semantic, alpha, np.round(1 - alpha, 2))
        return index_variants(features.runs.sources, weights)

    def _measure_entropies(
        self, features: QueryFeatures
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(S,) which sources are semantic, (Q,) the entropy of the others, (Q,) α."""
        runs = features.runs
        semantic = np.array(is_semantic(self.method, runs.sources, runs.roles))
        entropy = mean_of_rows(features.entropies(self.depth)[~semantic])
        share = 1 / (1 + np.exp(np.clip(-self.steepness * (entropy - self.midpoint), -500, 500)))
        return semantic, entropy, np.round(self.low + (self.high - self.low) * share, 2)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The entropy and α."""
        _, entropy, alpha = self._measure_entropies(features)
        return (
            f"the entropy of the first {self.depth} keyword scores is {entropy[0]:.4g}, so α is "
            f"{alpha[0]:g}"
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Slope, midpoint and range."""
        return (
            real("steepness", -20.0, 20.0),
            real("midpoint", 0.0, 1.0),
            real("low", 0.0, 0.5),
            real("high", 0.5, 1.0),
        )

    def presets(self) -> tuple[Params, ...]:
        """A steep rule over the whole range."""
        return ({"steepness": 20.0, "low": 0.0, "high": 1.0},)
