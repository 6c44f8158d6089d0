"""Blends that weigh the rerank score against a retrieval term, in its four definitions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.blend._base import BlendTerms, BlendWeights, Fused
from fusion_bench.blend._rerank_blend import RerankBlend
from fusion_bench.blend._score_spaces import min_max_within
from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, sum_terms
from fusion_bench.errors import AlignmentError

Retrieval: TypeAlias = Literal["fused", "fused_max_possible", "fused_min_max", "reciprocal_rank"]


class RetrievalBlend(RerankBlend):
    """A blend that weighs the rerank score against a retrieval term.

    Attributes:
        retrieval: ``fused`` = the fused score (a raw RRF score is at most about 0.12, so that it
            hardly weighs); ``fused_max_possible`` = divided by the greatest score possible;
            ``fused_min_max`` = min-max over the ``depth`` candidates; ``reciprocal_rank`` =
            1 / fused rank, as in https://github.com/tobi/qmd.
    """

    retrieval: Retrieval = "fused"

    def space(self) -> tuple[Parameter, ...]:
        """The definition of the retrieval term, which decides what every weight means."""
        return (choice("retrieval", *get_args(Retrieval)),)

    @abstractmethod
    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: the weights of the retrieval term and of the rerank score at fused ranks."""

    def engine_form(self, depth: int) -> BlendWeights:
        """Both weights at every rank."""
        return BlendWeights(self.retrieval, *self.weights_at(np.arange(1, depth + 1)))

    def blend_terms(self, runs: AlignedRuns, fused: Fused, candidates: BoolArray) -> BlendTerms:
        """The retrieval term, and both weights."""
        term = self.retrieval_term(runs, fused, candidates)
        return BlendTerms(term, *self.weights_at(fused.positions))

    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: BoolArray
    ) -> FloatArray:
        """(N,): the weighted mean of the retrieval term and the rerank score."""
        retrieval, weight, rerank_weight = self.blend_terms(runs, fused, candidates)
        return sum_terms(np.stack([weight * retrieval, rerank_weight * rerank]))

    def retrieval_term(self, runs: AlignedRuns, fused: Fused, candidates: BoolArray) -> FloatArray:
        """(N,): the retrieval term of every candidate.

        Raises:
            AlignmentError: ``fused_max_possible`` where the greatest possible score is not
                above 0.
        """
        if self.retrieval == "reciprocal_rank":
            return 1 / np.maximum(fused.positions, 1)
        if self.retrieval == "fused_min_max":
            return min_max_within(runs.query_index, np.where(candidates, fused.scores, np.nan))
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
