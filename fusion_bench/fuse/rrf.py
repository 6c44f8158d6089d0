"""Reciprocal rank fusion, v1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._alpha import AlphaWeightedFusion
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._rank_terms import RankTerm, RankTermFusion


@fusions.register
class RRF(AlphaWeightedFusion, RankTermFusion):
    """``rrf``: Σ_s w_s / (k_s + r_s), over the sources that returned the document.

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009; weights and ``three_lists`` as in CONV-07-05.
    """

    formula: ClassVar[str] = "Σ w/(k + rank)"
    source: ClassVar[str] = "Cormack, Clarke, Büttcher 2009; CONV-07-05"

    method: str = "rrf"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, evenly by its logarithm, and the weights."""
        k = self.split_by_source(integer("k", 1, 1000, log=True), sources)
        return (*k, *super().space(sources))

    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The weighted reciprocal rank in each source."""
        weights = self.source_weights(runs.sources, runs.roles).tolist()
        constants = self.source_numbers("k", runs.sources, runs.roles).tolist()
        return tuple(
            RankTerm(name, s, (s,), partial(reciprocal_ranks, weight, k), weight / (k + 1))
            for s, (name, weight, k) in enumerate(
                zip(runs.sources, weights, constants, strict=True)
            )
        )


def reciprocal_ranks(weight: float, k: float, ranks: IntArray) -> FloatArray:
    """(n,): w / (k + rank); 0 at rank 0."""
    values: FloatArray = np.zeros(len(ranks))
    np.divide(weight, k + ranks, out=values, where=ranks > 0)
    return values
