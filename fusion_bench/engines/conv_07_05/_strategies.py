"""The two fusions of CONV-07-05, whose weights go by search strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines._dialects.canonical import EngineFusion
from fusion_bench.engines._dialects.reciprocal_ranks import GREATEST_K, ReciprocalRanks
from fusion_bench.fuse import EngineForm, Fusion, Homogeneity, RankSum, ScoreTerms, WeightedFusion
from fusion_bench.fuse.rrf import RRF
from fusion_bench.fuse.weighted_score import WeightedScore

#: The searches by what finds the documents, and their weights in CONV-03-05.
STRATEGIES: Mapping[str, float] = {"keyword": 0.35, "semantic": 0.35, "graph": 0.30}
Strategy = Literal["keyword", "semantic", "graph"]


class StrategyWeights(WeightedFusion):
    """Weights of the three strategies; any other source weighs 1.

    Attributes:
        weights: By source name or role.
        strategies: Source → the strategy that it stands for in the settings; None = in turn.
    """

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"strategies"})

    weights: dict[str, Weight] = Field(default_factory=lambda: dict(STRATEGIES))
    strategies: dict[str, Strategy] | None = None

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role; a strategy that no source has is no error."""
        present = {*sources, *(role for names in roles for role in names)}
        weights = {
            key: weight
            for key, weight in self.weights.items()
            if key in present or key not in STRATEGIES
        }
        fitting = self.model_copy(update={"weights": weights})
        return WeightedFusion.source_weights(fitting, sources, roles)


class RRFFusion(ReciprocalRanks, StrategyWeights):
    """``RRFFusion``: Σ_s w_s / (k + rank), ranks from 1, divided by 3/(k+1) and clamped to 1.

    The order is decided before the clamp.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        normalize_scores: False = neither divided nor clamped.
    """

    formula: ClassVar[str] = "Σ w/(k + rank) · (k + 1)/3"
    source: ClassVar[str] = "CONV-07-05, 5.1"

    method: str = "RRFFusion"
    k: Annotated[int, Field(ge=1, le=GREATEST_K)] = 60
    normalize_scores: bool = True

    @property
    def constant(self) -> float:
        """``k``: ranks count from 1."""
        return self.k

    @property
    def divisor(self) -> float:
        """The score of a document that three lists of weight 1 rank first."""
        return 3 / (self.k + 1) if self.normalize_scores else 1.0

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source, over the divisor."""
        terms = super().score_terms(runs)
        divisor = np.full(len(runs.documents), self.divisor)
        return ScoreTerms(terms.labels, terms.sources, terms.terms, divisor)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): clamped to 1."""
        return np.minimum(scores, 1.0) if self.normalize_scores else scores

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first, clamped."""
        return self.display_scores(super().max_possible(runs) / self.divisor)

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """The terms at every rank there is."""
        form = super().engine_form(runs)
        ceiling = 1.0 if self.normalize_scores else np.inf
        return RankSum(form.columns, form.tables, self.divisor, ceiling)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf``, with ``three_lists`` or none."""
        weights = self.source_weights(sources, roles).tolist()
        return RRF(
            k=self.k,
            weights=dict(zip(sources, weights, strict=True)),
            normalize="three_lists" if self.normalize_scores else "none",
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        return (integer("k", 1, GREATEST_K, log=True), *super().space(sources))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1; None where the clamp bends the scale."""
        return None if self.normalize_scores else 1


class WeightedScoreFusion(EngineFusion, StrategyWeights):
    """``WeightedScoreFusion``: Σ w·x / Σ w over the lists that returned the document."""

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "CONV-07-05, 5.1"

    method: str = "WeightedScoreFusion"

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> WeightedScore:
        """Our weighted mean of raw scores."""
        weights = self.source_weights(sources, roles).tolist()
        return WeightedScore(weights=dict(zip(sources, weights, strict=True)))

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted mean."""
        return self.equivalent(runs.sources, runs.roles).fuse(runs)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source, over the sum of the weights that count."""
        return self.equivalent(runs.sources, runs.roles).score_terms(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): from the greatest score of each list."""
        return self.equivalent(runs.sources, runs.roles).max_possible(runs)

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The form of our weighted mean."""
        return self.equivalent(runs.sources, runs.roles).engine_form(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: a mean has its weights divided out."""
        return 0
