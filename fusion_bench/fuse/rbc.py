"""Rank-biased centroid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._rank_terms import RankSumFusion, RankTerm

#: Values that a search tries: readers of 2 to 100 documents on average.
PATIENCE = (0.5, 0.99)


@fusions.register
class RankBiasedCentroid(RankSumFusion):
    """``rbc``: Σ_s w_s · (1 − φ) · φ^(r_s − 1), over the sources that returned the document.

    A document at rank r of a list counts as a user reads it who goes on to the next document with
    probability φ, as in rank-biased precision: 1/(1 − φ) documents on average.
    For φ = 0.5, the first document of a list adds .5, the second .25, the third .125.

    Source: Bailey, Moffat, Scholer and Thomas, "Retrieval consistency in the presence of query
    variations", SIGIR 2017. The paper has no weights, which is a weight of 1 for each list, and no
    single φ.

    Attributes:
        phi: φ, the patience of the user.
    """

    formula: ClassVar[str] = "Σ w·(1 − φ)·φ^(rank − 1)"
    source: ClassVar[str] = "Bailey, Moffat, Scholer, Thomas 2017"

    method: str = "rbc"
    phi: Annotated[float, Field(gt=0, lt=1)] = 0.9

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """φ and the weights."""
        return (real("phi", *PATIENCE), *super().space(sources))

    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """How likely the user reads the document in each source, times the weight."""
        weights = self.source_weights(runs.sources, runs.roles).tolist()
        return tuple(
            RankTerm(name, s, (s,), partial(self._discounts, weight), weight * (1 - self.phi))
            for s, (name, weight) in enumerate(zip(runs.sources, weights, strict=True))
        )

    def _discounts(self, weight: float, ranks: IntArray) -> FloatArray:
        """(n,): w·(1 − φ)·φ^(rank − 1); 0 at rank 0."""
        powers = np.array([self.phi**n for n in range(int(ranks.max(initial=1)))])
        return np.where(ranks > 0, weight * (1 - self.phi) * powers[ranks - 1], 0.0)
