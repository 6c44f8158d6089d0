"""CombSUM, and what comes of it by the number of lists that returned the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._base import ScoreTerms, fusions
from fusion_bench.fuse._score_fusion import ScoreFusion, list_counts, source_counts

FOX_SHAW = "Fox, Shaw, Combination of multiple searches, TREC-2 1994"
#: Greatest exponent that a search tries.
GREATEST_GAMMA = 2.0


@fusions.register
class CombSum(ScoreFusion):
    """``comb_sum``: Σ_s x_s over the sources that returned the document.

    Source: Fox and Shaw, "Combination of multiple searches", TREC-2 1994. They add the scores as
    they are; where the lists differ in scale, set ``normalize``.

    Example: a document with .8 and .5 in two lists of three has 1.3.
    """

    formula: ClassVar[str] = "Σ score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_sum"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source."""
        return self.source_terms(runs, self.zero_filled(runs))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores."""
        return np.asarray(sum_terms(self.greatest_parts(runs)))


@fusions.register
class CombAnz(ScoreFusion):
    """``comb_anz``: Σ_s x_s / n, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. It equals ``weighted_score`` with equal weights
    and ``missing: skip``: a document of one list beats one of two lists with a lower mean.

    Example: .8 and .5 in two lists of three give .65.
    """

    formula: ClassVar[str] = "Σ score / n"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_anz"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source, over how many returned the document."""
        counts = source_counts(runs).astype(np.float64)
        return self.source_terms(runs, self.zero_filled(runs), counts)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest score of any list."""
        return np.asarray(np.fmax.reduce(self.greatest_scores(runs), axis=0))


class MultipliedSum(ScoreFusion):
    """A sum that is multiplied by a number for each n = how many sources returned the document."""

    def factors(self, most: int) -> FloatArray:
        """(most+1,): the factor for each n, from 0."""
        return np.arange(most + 1, dtype=np.float64)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source times the factor."""
        factors = self.factors(len(runs.sources))[source_counts(runs)]
        return self.source_terms(runs, self.zero_filled(runs) * factors)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, found by every source that returned anything."""
        factors = self.factors(len(runs.sources))[list_counts(runs)]
        return np.asarray(sum_terms(self.greatest_parts(runs) * factors))


@fusions.register
class CombMnz(MultipliedSum):
    """``comb_mnz``: n · Σ_s x_s, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. Lee, "Analyses of multiple evidence
    combination", SIGIR 1997, finds it best after min-max normalization. Negative scores are
    punished for being found twice.

    Example: .8 and .5 in two lists of three give 2.6.
    """

    formula: ClassVar[str] = "n · Σ score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_mnz"


@fusions.register
class CombGmnz(MultipliedSum):
    """``comb_gmnz``: n^γ · Σ_s x_s, n = how many sources returned the document.

    Source: Lee, "Analyses of multiple evidence combination", SIGIR 1997, whose γ weighs how many
    lists agree: 0 = ``comb_sum``, 1 = ``comb_mnz``.

    Example: γ = 2 makes 4 · 1.3 = 5.2 of .8 and .5 in two lists of three.

    Attributes:
        gamma: γ, at least 0.
    """

    formula: ClassVar[str] = "n^γ · Σ score"
    source: ClassVar[str] = "Lee, Analyses of multiple evidence combination, SIGIR 1997"

    method: str = "comb_gmnz"
    gamma: Annotated[float, Field(ge=0, le=100)] = 1.0

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """γ, and the normalizer."""
        return (real("gamma", 0.0, GREATEST_GAMMA), *super().space(sources))

    def factors(self, most: int) -> FloatArray:
        """(most+1,): n^γ for each n."""
        return np.asarray(super().factors(most) ** self.gamma)
