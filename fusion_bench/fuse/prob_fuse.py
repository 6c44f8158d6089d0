"""ProbFuse: how many documents of each segment of each list were relevant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._segments import relevant_share_by_segment
from fusion_bench.fuse._trained import Trainable


@fusions.register
class ProbFuse(Trainable):
    """``prob_fuse``: Σ_s P_s(segment) / segment; the segments of a list are equally long.

    A list of n documents has segments of ⌈n / x⌉ documents each, the first is number 1. P_s(k) is
    the mean over the training queries of the share of relevant documents in segment k of source s.
    A query without documents there counts as 0. For P = .5 in segment 1 and .3 in segment 2, a
    document of segment 2 gets .3/2 = .15.

    Source: Lillis, Toolan, Collier and Dunnion, "ProbFuse: a probabilistic approach to data
    fusion", SIGIR 2006.

    Attributes:
        segments: x.
        unjudged: ``not_relevant`` = an unjudged document counts as not relevant (the paper's
            ProbFuseAll); ``skip`` = the share is one of judged documents (ProbFuseJudged).
    """

    formula: ClassVar[str] = "Σ P(relevant in the segment) / segment"
    source: ClassVar[str] = "Lillis, Toolan, Collier, Dunnion 2006"

    method: str = "prob_fuse"
    segments: Annotated[int, Field(ge=1, le=1000)] = 25
    unjudged: Literal["not_relevant", "skip"] = "not_relevant"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The number of segments, and how unjudged documents count."""
        return (integer("segments", 2, 100, log=True), choice("unjudged", "not_relevant", "skip"))

    def fit(self, runs: AlignedRuns) -> FittedProbFuse:
        """Count relevant documents in each segment of each source."""
        return FittedProbFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            segments=self.segments,
            probabilities={
                name: tuple(
                    relevant_share_by_segment(
                        runs,
                        list_segments(runs, s, self.segments),
                        self.segments,
                        judged_only=self.unjudged == "skip",
                    ).tolist()
                )
                for s, name in enumerate(runs.sources)
            },
        )


class FittedProbFuse(FittedSourceSum):
    """``prob_fuse`` with its probabilities.

    Attributes:
        segments: x.
        probabilities: Source → the probability of each segment.
    """

    method: str
    segments: int
    probabilities: dict[str, tuple[float, ...]]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the probability of the document's segment over the segment's number."""
        numbers = np.arange(1, self.segments + 1)
        values = np.array(self.probabilities[runs.sources[s]]) / numbers
        return np.concatenate(([0.0], values))[list_segments(runs, s, self.segments)]


def list_segments(runs: AlignedRuns, s: int, segments: int) -> IntArray:
    """(N,): the segment of each document in its list of source ``s``, from 1; 0 = not returned.

    A rank beyond the length of the list, as where only part of a list is given, is in the last one.
    """
    size = -(-runs.lengths[s] // segments)[runs.query_index]
    ranks = runs.ranks[s]
    segment = np.minimum((ranks - 1) // np.maximum(size, 1) + 1, segments)
    return np.where(ranks > 0, segment, 0)
