"""PosFuse: how often each position of each list held a relevant document."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._trained import Trainable, is_relevant


@fusions.register
class PosFuse(Trainable):
    """``pos_fuse``: Σ_s P_s(rank), the share of training queries with a relevant document there.

    P_s(p) = queries whose document at position p of source s is relevant / queries for which the
    source returned a document at p. An unjudged document counts as not relevant. Positions deeper
    than any that was seen have 0.

    Source: Lillis, Zhang, Toolan, Collier, Leonard and Dunnion, "Estimating probabilities for
    effective data fusion", SIGIR 2010.
    """

    formula: ClassVar[str] = "Σ P(relevant | rank)"
    source: ClassVar[str] = "Lillis, Zhang, Toolan, Collier, Leonard, Dunnion 2010"

    method: str = "pos_fuse"

    def fit(self, runs: AlignedRuns) -> FittedPosFuse:
        """Count relevant documents at each position of each source."""
        return FittedPosFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            probabilities={
                name: tuple(position_probabilities(runs, s).tolist())
                for s, name in enumerate(runs.sources)
            },
        )


class FittedPosFuse(FittedSourceSum):
    """``pos_fuse`` with its probabilities.

    Attributes:
        probabilities: Source → the probability at each position, the first one first.
    """

    method: str
    probabilities: dict[str, tuple[float, ...]]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the probability at the document's position."""
        return values_at(np.array(self.probabilities[runs.sources[s]]), runs.ranks[s])


def position_probabilities(runs: AlignedRuns, s: int) -> FloatArray:
    """(D,): the share of relevant documents at each rank of source ``s``, from rank 1 on."""
    ranks = runs.ranks[s]
    depth = int(ranks.max(initial=0)) + 1
    returned = np.bincount(ranks, minlength=depth)[1:]
    relevant = np.bincount(ranks[is_relevant(runs)], minlength=depth)[1:]
    return np.asarray(relevant / np.maximum(returned, 1))


def values_at(values: FloatArray, ranks: IntArray) -> FloatArray:
    """(N,): the value of each rank, from rank 1 on; 0 at rank 0 and beyond the last value."""
    table = np.concatenate(([0.0], values, [0.0]))
    return np.asarray(table[np.minimum(ranks, len(values) + 1)])
