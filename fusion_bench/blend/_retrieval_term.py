"""The retrieval term of a blend, in its four readings."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fusion_bench.blend._base import Fused, Mix, RerankBlend
from fusion_bench.blend._score_spaces import min_max_within
from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.errors import AlignmentError

__all__ = ["Retrieval", "RetrievalBlend"]

Retrieval: TypeAlias = Literal["fused", "fused_max_possible", "fused_min_max", "reciprocal_rank"]


class RetrievalBlend(RerankBlend):
    """A blend that weighs the rerank score against a retrieval term.

    Attributes:
        retrieval: ``fused`` = the fused score (a raw RRF score is at most about 0.12, so that it
            hardly weighs); ``fused_max_possible`` = divided by the greatest score possible;
            ``fused_min_max`` = min-max over the ``depth`` candidates; ``reciprocal_rank`` =
            1 / fused rank, as qmd has it.
    """

    retrieval: Retrieval = "fused"

    def space(self) -> tuple[Parameter, ...]:
        """The reading of the retrieval term, which decides what every share means."""
        return (choice("retrieval", *get_args(Retrieval)),)

    @abstractmethod
    def shares(self, fused: Fused) -> tuple[FloatArray, FloatArray]:
        """(N,) each: the weight of the retrieval term, and that of the rerank score."""

    def mix(self, runs: AlignedRuns, fused: Fused, candidates: NDArray[np.bool_]) -> Mix:
        """Both weights, and the retrieval term."""
        return Mix(self.retrieval_term(runs, fused, candidates), *self.shares(fused))

    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: NDArray[np.bool_]
    ) -> FloatArray:
        """(N,): the weighted mean of the retrieval term and the rerank score."""
        retrieval, weight, rerank_weight = self.mix(runs, fused, candidates)
        return sum_terms(np.stack([weight * retrieval, rerank_weight * rerank]))

    def retrieval_term(
        self, runs: AlignedRuns, fused: Fused, candidates: NDArray[np.bool_]
    ) -> FloatArray:
        """(N,): the retrieval term of every candidate.

        Raises:
            AlignmentError: ``fused_max_possible`` where the greatest possible score is not
                above 0.
        """
        if self.retrieval == "reciprocal_rank":
            return 1 / np.maximum(fused.positions, 1)
        if self.retrieval == "fused_min_max":
            return min_max_within(runs, np.where(candidates, fused.scores, np.nan))
        if self.retrieval == "fused_max_possible":
            top = fused.max_possible[runs.query_index]
            unusable = top[candidates][~((top[candidates] > 0) & (top[candidates] < np.inf))]
            if len(unusable):
                raise AlignmentError(
                    "retrieval: fused_max_possible divides by the greatest possible fused score, "
                    f"which is {unusable[0]:g} for a query: use fused_min_max"
                )
            return fused.scores / np.where(candidates, top, 1.0)
        return fused.scores
