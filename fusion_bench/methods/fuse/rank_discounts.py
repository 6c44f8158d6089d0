"""Sums over ranks with another discount than the reciprocal rank alone.

The softmax of the scores times the reciprocal ranks; inverse squares times a factor of how many
lists returned the document; the patience of a user who reads from the top.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import integer, real
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.fuse._base import AS_GIVEN, SourceSumFusion, WeightedFusion, fusions
from fusion_bench.methods.fuse.rrf import DEFAULT_K, RankConstants, RankSumFusion, RankTerm

Temperature = Annotated[float, Field(ge=1e-6, le=1e6)]
RankDecay = Annotated[float, Field(ge=0, le=1000)]

#: Exponents this far below the greatest of their list count as so far, so that no term becomes 0
#: and the order inside a list stays.
LEAST_EXPONENT: Final = -650.0


@fusions.register
class SoftmaxRRF(WeightedFusion, SourceSumFusion):
    """``softmax_rrf``: Σ_s w_s · softmax_s(x_s/t_s − a_s·r_s) / (k_s + r_s).

    The softmax runs over one list of one query, with the scores x and the ranks r of its documents,
    so that what a list adds goes to the documents whose scores stand out. A list of two documents
    with equal scores and a = 0 adds ½ · w/(k + 1) and ½ · w/(k + 2).

    Source: ``SoftmaxRRF`` of https://github.com/dacai-academic/Distribution-Aware-Rank-Fusion
    (commit 200c558), which adds an embedding's cosine similarities (w = 0.7, t = 0.8, a = 0.02) and
    BM25 (w = 0.3, t = 2, a = 0.05), both with k = 60; no figures are published with it.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        temperature: t, in units of the list's scores: the lower, the more the best ones count.
        rank_decay: a: how much each rank takes off the exponent.

    Each of them is one number, or a mapping by source name or role; a source that it does not name
    has the default.
    """

    homogeneity = 1
    formula = "Σ w·softmax(score/t − a·rank)/(k + rank)"
    source = "dacai-academic/Distribution-Aware-Rank-Fusion on GitHub"
    per_source: ClassVar[Mapping[str, float]] = {
        "k": DEFAULT_K,
        "temperature": 1.0,
        "rank_decay": 0.02,
    }

    method: str = "softmax_rrf"
    k: RankConstants = DEFAULT_K
    temperature: Annotated[Temperature | dict[str, Temperature], AS_GIVEN] = 1.0
    rank_decay: Annotated[RankDecay | dict[str, RankDecay], AS_GIVEN] = 0.02
    tunable = (
        integer("k", 1, 1000, log=True),
        real("temperature", 0.01, 100.0, log=True),
        real("rank_decay", 0.0, 1.0),
    )

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the share of the list's weight; 0 where a source did not return the document.

        Raises:
            AlignmentError: Scores too large for the temperature.
        """
        weights = self.source_weights(runs.sources, runs.roles)
        k, temperature, decay = (
            self.source_numbers(field, runs.sources, runs.roles) for field in self.per_source
        )
        terms: FloatArray = np.zeros(runs.ranks.shape)
        for s, name in enumerate(runs.sources):
            rows, starts, owner = _rows_by_list(runs, s)
            ranks, scores = runs.ranks[s, rows], runs.scores[s, rows]
            with np.errstate(over="ignore"):
                exponents = scores / temperature[s] - decay[s] * ranks
            if not np.isfinite(exponents).all():
                raise AlignmentError(
                    f"run {name!r} has scores up to {np.abs(scores).max():g}, too large for the "
                    f"temperature {temperature[s]:g} of softmax_rrf: raise it"
                )
            terms[s, rows] = weights[s] * _softmax(exponents, starts, owner) / (k[s] + ranks)
        return terms

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of the only document of every list."""
        weights = self.source_weights(runs.sources, runs.roles)
        greatest = weights / (self.source_numbers("k", runs.sources, runs.roles) + 1)
        return np.full(len(runs.queries), float(sum_terms(greatest[:, None])[0]))


@cached_by_view()
def _rows_by_list(runs: AlignedRuns, s: int) -> tuple[IntArray, IntArray, IntArray]:
    """The candidates that one source returned, list by list.

    Returns:
        (n,): where they stand among the N, best first in each list; (L,): where each list begins;
        (n,): the list of each.
    """
    rows = np.flatnonzero(runs.ranks[s] > 0)
    rows = rows[np.lexsort((runs.ranks[s, rows], runs.query_index[rows]))]
    is_start = np.diff(runs.query_index[rows], prepend=-1) != 0
    return rows, np.flatnonzero(is_start), np.cumsum(is_start) - 1


def _softmax(exponents: FloatArray, starts: IntArray, owner: IntArray) -> FloatArray:
    """(n,): the softmax within each list; summed best first, whatever the order of the sources."""
    if not len(exponents):
        return exponents
    greatest = np.maximum.reduceat(exponents, starts)[owner]
    with np.errstate(over="ignore"):  # -inf: far enough below
        powers = np.exp(np.maximum(exponents - greatest, LEAST_EXPONENT))
    totals = np.bincount(owner, weights=powers)  # adds one after another
    return np.asarray(powers / totals[owner])


class InverseSquareRank(WeightedFusion, SourceSumFusion):
    """A sum of inverse square ranks, times a factor of how many sources returned the document.

    The weights are an extension; the paper's formula has a weight of 1 for each list.
    """

    homogeneity = 1
    source = "Mourão, Martins, Magalhães 2015"

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
    return hits


@fusions.register
class ISR(InverseSquareRank):
    """``isr``: n · Σ_s w_s / r_s², where n sources returned the document.

    A document that two lists rank 1 and 2 scores 2 · (1 + 1/4) = 2.5.

    Source: Mourão, Martins and Magalhães, "Multimodal medical information retrieval with
    unsupervised rank fusion", Computerized Medical Imaging and Graphics 39, 2015.
    """

    formula = "n·Σ w/rank², n sources returned it"

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

    formula = "ln(n)·Σ w/rank², n sources returned it"
    reorders = True

    method: str = "log_isr"

    def hit_factors(self, hits: IntArray) -> FloatArray:
        """(n,): ln n."""
        return np.array([math.log(max(n, 1)) for n in hits.tolist()])


@fusions.register
class LogNISR(InverseSquareRank):
    """``logn_isr``: ln(n + σ) · Σ_s w_s / r_s², where n sources returned the document.

    Source: as of ``isr``; σ = 0.01 as in ranx.

    Attributes:
        sigma: σ, what keeps a document of a single list above 0; at 0 this is ``log_isr``.
    """

    formula = "ln(n + σ)·Σ w/rank², n sources returned it"

    method: str = "logn_isr"
    sigma: Annotated[float, Field(ge=0, le=1)] = 0.01
    tunable = (real("sigma", 0.01, 1.0),)

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

    formula = "Σ w·(1 − φ)·φ^(rank − 1)"
    source = "Bailey, Moffat, Scholer, Thomas 2017"

    method: str = "rbc"
    phi: Annotated[float, Field(gt=0, lt=1)] = 0.9
    tunable = (real("phi", *PATIENCE),)

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
