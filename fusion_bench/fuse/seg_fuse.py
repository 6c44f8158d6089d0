"""SegFuse: how many documents of segments that grow were relevant, times the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._segments import relevant_share_by_segment
from fusion_bench.fuse._trained import Trainable
from fusion_bench.normalize import AnyNormalizer, normalizers
from fusion_bench.normalize.linear import MinMax

#: Sizes 5, 15, 35, … reach beyond rank 10,000,000.
SEGMENTS = 20
#: Last rank of each segment.
LAST_RANKS = np.cumsum(10 * 2 ** np.arange(SEGMENTS) - 5)


@fusions.register
class SegFuse(Trainable):
    """``seg_fuse``: Σ_s P_s(segment)·(x_s + 1), with the normalized score x_s of source s.

    Segment k holds 10·2^(k−1) − 5 documents: ranks 1–5, 6–20, 21–55, 56–130, … P_s(k) is the mean
    over the training queries of the share of relevant documents in segment k of source s. An
    unjudged document counts as not relevant, a query without documents there as 0.

    Source: Shokouhi, "Segmentation of search engine results for effective data-fusion", ECIR 2007,
    equations 4 and 5.

    Attributes:
        normalize: How each list's scores are scaled first.
    """

    formula: ClassVar[str] = "Σ P(relevant in the segment)·(score + 1)"
    source: ClassVar[str] = "Shokouhi 2007"

    method: str = "seg_fuse"
    normalize: AnyNormalizer = MinMax()

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The normalizer."""
        built_in = normalizers.load_built_in()
        return (choice("normalize.method", *(n for n, m in built_in.items() if m.searched)),)

    def fit(self, runs: AlignedRuns) -> FittedSegFuse:
        """Count relevant documents in each segment of each source."""
        return FittedSegFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            normalize=self.normalize,
            probabilities={
                name: tuple(
                    relevant_share_by_segment(
                        runs, growing_segments(runs.ranks[s]), SEGMENTS
                    ).tolist()
                )
                for s, name in enumerate(runs.sources)
            },
        )


class FittedSegFuse(FittedSourceSum):
    """``seg_fuse`` with its probabilities.

    Attributes:
        normalize: How each list's scores are scaled first.
        probabilities: Source → the probability of each segment.
    """

    method: str
    normalize: AnyNormalizer
    probabilities: dict[str, tuple[float, ...]]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the probability of the document's segment times its score and 1."""
        scores = np.nan_to_num(self.normalize.normalize_scores(runs)[s])
        table = np.array([0.0, *self.probabilities[runs.sources[s]]])
        return np.asarray(table[growing_segments(runs.ranks[s])] * (scores + 1))


def growing_segments(ranks: IntArray) -> IntArray:
    """(n,): the segment of each rank, from 1; 0 at rank 0."""
    return np.where(ranks > 0, np.searchsorted(LAST_RANKS, ranks) + 1, 0)
