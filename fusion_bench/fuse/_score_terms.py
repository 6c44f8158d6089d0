"""What a fused score is made of, so that an explanation can be checked against the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, sum_terms


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The correctly rounded sum of the terms over the divisor is the score, to the last bit.

    Attributes:
        labels: What each of the T terms is.
        sources: The row of the source that a term belongs to; None = of no single source.
        terms: Shape (T, N); 0 where a term adds nothing.
        divisor: Shape (N,), or one number for all.
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    terms: FloatArray
    divisor: FloatArray

    @property
    def scores(self) -> FloatArray:
        """(N,): the sum of the terms over the divisor."""
        return np.asarray(sum_terms(self.terms) / self.divisor)
