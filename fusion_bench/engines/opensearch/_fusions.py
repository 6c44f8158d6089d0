"""OpenSearch's fusions: the normalization processor and the score ranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines._dialects.canonical import EngineFusion
from fusion_bench.engines._dialects.sums import RankTermSum
from fusion_bench.engines.opensearch._scales import SCALES
from fusion_bench.errors import ConfigError
from fusion_bench.fuse import Fusion, Homogeneity, ScoreTerms, WeightedFusion
from fusion_bench.fuse.rrf import RRF

#: How far the sum of the weights may be from 1.
TOLERANCE = 0.01


class OpenSearchFusion(WeightedFusion):
    """Weights as OpenSearch takes them: each in [0, 1], 1 in all; none = 1 each."""

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role.

        Raises:
            ConfigError: They do not fit the sources, or do not add up to 1.
        """
        weights = super().source_weights(sources, roles)
        total = float(weights.sum())
        if self.weights and (abs(total - 1) > TOLERANCE or weights.max() > 1):
            raise ConfigError(
                f"weights: OpenSearch needs a weight in [0, 1] for every source and a sum of 1 "
                f"± {TOLERANCE}, given {total:g} over {', '.join(sources)}"
            )
        return weights

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """None: weights of another sum are refused."""
        return None


class NormalizationProcessor(EngineFusion, OpenSearchFusion):
    """``normalization-processor``: a mean of normalized scores.

    Attributes:
        normalization: How each list is scaled.
        combination: The mean; ``geometric_mean`` and ``harmonic_mean`` leave out what is 0,
            ``arithmetic_mean`` only what is negative.
    """

    formula: ClassVar[str] = "mean of normalized scores"
    source: ClassVar[str] = "OpenSearch documentation, normalization processor"

    method: str = "normalization-processor"
    normalization: Literal["min_max", "l2", "z_score"] = "min_max"
    combination: Literal["arithmetic_mean", "geometric_mean", "harmonic_mean"] = "arithmetic_mean"

    @model_validator(mode="after")
    def _check_combination(self) -> NormalizationProcessor:
        if self.normalization == "z_score" and self.combination != "arithmetic_mean":
            raise ValueError("normalization: z_score needs combination: arithmetic_mean")
        return self

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the mean."""
        if self.combination == "arithmetic_mean":
            return self.score_terms(runs).scores
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled_scores(runs)
        present = scores > 0
        safe = np.where(present, scores, 1.0)
        share = sum_terms(np.where(present, weights, 0.0))
        divisor = np.where(share > 0, share, 1.0)
        if self.combination == "geometric_mean":
            logarithms = sum_terms(np.where(present, weights * np.log(safe), 0.0))
            mean = np.exp(logarithms / divisor)
        else:
            inverses = sum_terms(np.where(present, weights / safe, 0.0))
            mean = share / np.where(share > 0, inverses, 1.0)
        return np.where(share > 0, mean, 0.0)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source of an arithmetic mean; otherwise the score itself."""
        if self.combination != "arithmetic_mean":
            return super().score_terms(runs)
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled_scores(runs)
        counts = scores >= 0
        share = sum_terms(np.where(counts, weights, 0.0))
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            np.where(counts, weights * scores, 0.0),
            np.where(share > 0, share, 1.0),
        )

    def _filled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the normalized scores; 0 where a source did not return the document."""
        return np.nan_to_num(SCALES[self.normalization].normalize_scores(runs), nan=0.0)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """The normalization; weights must add up to 1, so none is tuned alone."""
        names = [*SCALES] if self.combination == "arithmetic_mean" else ["min_max", "l2"]
        return (choice("normalization", *names),)


class ScoreRankerProcessor(OpenSearchFusion, RankTermSum):
    """``score-ranker-processor``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Each quotient is rounded half up to ten decimals before it is weighed.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ w·round(1/(rank_constant + rank), 10)"
    source: ClassVar[str] = "OpenSearch documentation, score ranker processor"

    method: str = "score-ranker-processor"
    rank_constant: Annotated[int, Field(ge=1, le=10_000)] = 60

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the weighted quotient."""
        below = ranks + self.rank_constant
        return weight * (((2 * 10**10 + below) // (2 * below)) / 10**10)

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion | None:
        """Our ``rrf``, where it takes the constant."""
        if self.rank_constant > 1000:
            return None
        return RRF(k=self.rank_constant, weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """The rank constant; weights must add up to 1, so none is tuned alone."""
        return (integer("rank_constant", 1, 1000, log=True),)
