"""Fusions that discount ranks: inverse square rank, rank-biased centroid."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly, sum_terms
from fusion_bench.methods.fuse._base import Homogeneity, SourceSumFusion, WeightedFusion, fusions
from fusion_bench.methods.fuse._rank_terms import RankSumFusion, RankTerm


class InverseSquareRank(WeightedFusion, SourceSumFusion):
    """A sum of inverse square ranks, times a factor of how many sources returned the document.

    The weights are an extension; the paper's formula has a weight of 1 for each list.
    """

    source: ClassVar[str] = "Mourão, Martins, Magalhães 2015"

    @abstractmethod
    def hit_factors(self, hits: IntArray) -> FloatArray:
        """(n,): the factor for each number of sources that returned a document."""

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the factor times w / rank²; 0 where a source did not return the document."""
        weights = self.source_weights(runs.sources, runs.roles)
        factors = self.hit_factors(np.arange(len(runs.sources) + 1))[_count_hits(runs)]
        terms: FloatArray = np.empty(runs.ranks.shape)
        for row, weight, ranks in zip(terms, weights, runs.ranks, strict=True):
            np.take(_terms_by_rank(weight, runs.max_rank), ranks, out=row, mode="clip")
            row *= factors
        return terms

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first."""
        weights = self.source_weights(runs.sources, runs.roles)
        factor = self.hit_factors(np.array([len(weights)]))
        return np.full(len(runs.queries), float(sum_terms((weights * factor)[:, None])[0]))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: all terms have the weight of a source as a factor."""
        return 1


def _terms_by_rank(weight: float, max_rank: int) -> FloatArray:
    """(max_rank + 1,): w / rank²; 0 at rank 0, of a document that a source did not return."""
    ranks = np.arange(1, max_rank + 1, dtype=np.int64)
    return np.concatenate(([0.0], weight / (ranks * ranks)))


@cached_by_view()
def _count_hits(runs: AlignedRuns) -> IntArray:
    """(N,): how many sources returned each document."""
    hits: IntArray = np.zeros(len(runs.documents), dtype=np.int64)
    for ranks in runs.ranks:
        hits += ranks > 0
    make_readonly(hits)
    return hits


@fusions.register
class ISR(InverseSquareRank):
    """``isr``: n · Σ_s w_s / r_s², where n sources returned the document.

    A document that two lists rank 1 and 2 scores 2 · (1 + 1/4) = 2.5.

    Source: Mourão, Martins and Magalhães, "Multimodal medical information retrieval with
    unsupervised rank fusion", Computerized Medical Imaging and Graphics 39, 2015.
    """

    formula: ClassVar[str] = "n·Σ w/rank², n sources returned it"

    method: str = "isr"

    def hit_factors(self, hits: IntArray) -> FloatArray:
        """(n,): n."""
        return hits.astype(np.float64)


@fusions.register
class LogISR(InverseSquareRank):
    """``log_isr``: ln(n) · Σ_s w_s / r_s², where n sources returned the document.

    A document of a single list scores 0, whatever its rank: below every document of two lists, and
    tied with all others of its kind. ``logn_isr`` tells them apart.

    Source: as of ``isr``.
    """

    formula: ClassVar[str] = "ln(n)·Σ w/rank², n sources returned it"

    method: str = "log_isr"

    def hit_factors(self, hits: IntArray) -> FloatArray:
        """(n,): ln n."""
        return np.array([math.log(max(n, 1)) for n in hits.tolist()])

    @property
    def keeps_single_list(self) -> bool:
        """No: every document of a single list scores 0."""
        return False


@fusions.register
class LogNISR(InverseSquareRank):
    """``logn_isr``: ln(n + σ) · Σ_s w_s / r_s², where n sources returned the document.

    Source: as of ``isr``; σ = 0.01 as in ranx.

    Attributes:
        sigma: σ, what keeps a document of a single list above 0; at 0 this is ``log_isr``.
    """

    formula: ClassVar[str] = "ln(n + σ)·Σ w/rank², n sources returned it"

    method: str = "logn_isr"
    sigma: Annotated[float, Field(ge=0, le=1)] = 0.01

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """σ and the weights."""
        return (real("sigma", 0.01, 1.0), *super().space(sources))

    def hit_factors(self, hits: IntArray) -> FloatArray:
        """(n,): ln(n + σ)."""
        return np.array([math.log(max(n, 1) + self.sigma) for n in hits.tolist()])

    @property
    def keeps_single_list(self) -> bool:
        """Only where σ is above 0, so that ln(1 + σ) is."""
        return math.log(1 + self.sigma) > 0


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
