"""MAPFuse: reciprocal ranks, weighted by the mean average precision of each list."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._trained import Trainable
from fusion_bench.measures import compute_measures, parse_measure


@fusions.register
class MAPFuse(Trainable):
    """``map_fuse``: Σ_s MAP_s / rank, over the sources that returned the document.

    MAP_s is the mean average precision of source s over the training queries; an unjudged document
    counts as not relevant. For MAP = .4, the second document of the list gets .4/2 = .2.

    Source: Lillis, Zhang, Toolan, Collier, Leonard and Dunnion, "Estimating probabilities for
    effective data fusion", SIGIR 2010.
    """

    formula: ClassVar[str] = "Σ MAP / rank"
    source: ClassVar[str] = "Lillis, Zhang, Toolan, Collier, Leonard, Dunnion 2010"

    method: str = "map_fuse"

    def fit(self, runs: AlignedRuns) -> FittedMAPFuse:
        """Measure each source."""
        measure = parse_measure(f"AP(rel={runs.binary_relevance})")
        precisions = {
            name: compute_measures([measure], runs, runs.ranks[s])[0]
            for s, name in enumerate(runs.sources)
        }
        return FittedMAPFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            mean_precisions={
                name: float(sum_terms(values)) / len(values) for name, values in precisions.items()
            },
        )


class FittedMAPFuse(FittedSourceSum):
    """``map_fuse`` with its weights.

    Attributes:
        mean_precisions: Source → its mean average precision.
    """

    method: str
    mean_precisions: dict[str, float]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the mean average precision of the source over the rank."""
        values: FloatArray = np.zeros(len(runs.documents))
        ranks = runs.ranks[s]
        weight = self.mean_precisions[runs.sources[s]]
        np.divide(weight, ranks, out=values, where=ranks > 0)
        return values

    @property
    def keeps_single_list(self) -> bool:
        """Unless a source never returned a relevant document: all its terms are 0."""
        return all(value > 0 for value in self.mean_precisions.values())
