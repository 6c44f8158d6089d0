"""SlideFuse: PosFuse with the probabilities of neighboring positions averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._trained import Trainable
from fusion_bench.fuse.pos_fuse import position_probabilities


@fusions.register
class SlideFuse(Trainable):
    """``slide_fuse``: Σ_s mean of P_s over the positions at most ``window`` away.

    P_s(p) is that of ``pos_fuse``: the share of training queries whose document at position p of
    source s is relevant; an unjudged document counts as not relevant. The window ends where the
    list of the query ends: the first document of a list of 3, with a window of 5, has
    (P(1) + P(2) + P(3)) / 3.

    Source: Lillis, Toolan, Collier and Dunnion, "Extending probabilistic data fusion using sliding
    windows", ECIR 2008.

    Attributes:
        window: Positions on either side; 0 = ``pos_fuse``.
    """

    formula: ClassVar[str] = "Σ mean of P(relevant at position) over a window"
    source: ClassVar[str] = "Lillis, Toolan, Collier, Dunnion 2008"

    method: str = "slide_fuse"
    window: Annotated[int, Field(ge=0, le=1000)] = 5

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The window."""
        return (integer("window", 1, 100, log=True),)

    def fit(self, runs: AlignedRuns) -> FittedSlideFuse:
        """Count relevant documents at each position of each source."""
        return FittedSlideFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            window=self.window,
            probabilities={
                name: tuple(position_probabilities(runs, s).tolist())
                for s, name in enumerate(runs.sources)
            },
        )


class FittedSlideFuse(FittedSourceSum):
    """``slide_fuse`` with its probabilities.

    Attributes:
        window: Positions on either side.
        probabilities: Source → the probability at each position, the first one first.
    """

    method: str
    window: int
    probabilities: dict[str, tuple[float, ...]]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the mean probability over the window around the document's position."""
        ranks = runs.ranks[s]
        probabilities = self.probabilities[runs.sources[s]]
        sums = np.concatenate(([0.0], np.cumsum(probabilities)))  # what is deeper adds nothing
        first = np.maximum(ranks - self.window, 1)
        last = np.minimum(ranks + self.window, runs.lengths[s][runs.query_index])
        deepest = len(probabilities)
        total = sums[np.minimum(last, deepest)] - sums[np.minimum(first - 1, deepest)]
        return np.where(ranks > 0, total / np.maximum(last - first + 1, 1), 0.0)
