"""Reciprocal rank fusion weighted by a softmax of each list's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import AlignmentError
from fusion_bench.fuse._base import Homogeneity, WeightedFusion, fusions
from fusion_bench.fuse._rank_terms import DEFAULT_K, RankConstants
from fusion_bench.fuse._source_numbers import AS_GIVEN
from fusion_bench.fuse._source_sums import SourceSumFusion

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

    formula: ClassVar[str] = "Σ w·softmax(score/t − a·rank)/(k + rank)"
    source: ClassVar[str] = "dacai-academic/Distribution-Aware-Rank-Fusion on GitHub"
    per_source: ClassVar[Mapping[str, float]] = {
        "k": DEFAULT_K,
        "temperature": 1.0,
        "rank_decay": 0.02,
    }

    method: str = "softmax_rrf"
    k: RankConstants = DEFAULT_K
    temperature: Annotated[Temperature | dict[str, Temperature], AS_GIVEN] = 1.0
    rank_decay: Annotated[RankDecay | dict[str, RankDecay], AS_GIVEN] = 0.02

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the temperature, evenly by their logarithm, the decay, and the weights."""
        shared = (
            integer("k", 1, 1000, log=True),
            real("temperature", 0.01, 100.0, log=True),
            real("rank_decay", 0.0, 1.0),
        )
        split = (part for parameter in shared for part in self.split_by_source(parameter, sources))
        return (*split, *super().space(sources))

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
            lists = _rows_by_list(runs, s)
            ranks, scores = runs.ranks[s, lists.rows], runs.scores[s, lists.rows]
            with np.errstate(over="ignore"):
                exponents = scores / temperature[s] - decay[s] * ranks
            if not np.isfinite(exponents).all():
                raise AlignmentError(
                    f"run {name!r} has scores up to {np.abs(scores).max():g}, too large for the "
                    f"temperature {temperature[s]:g} of softmax_rrf: raise it"
                )
            terms[s, lists.rows] = weights[s] * _softmax(exponents, lists) / (k[s] + ranks)
        return terms

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of the only document of every list."""
        weights = self.source_weights(runs.sources, runs.roles)
        greatest = weights / (self.source_numbers("k", runs.sources, runs.roles) + 1)
        return np.full(len(runs.queries), float(sum_terms(greatest[:, None])[0]))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: all terms have the weight of a source as a factor."""
        return 1


class _ListRows(NamedTuple):
    """The candidates that one source returned, list by list.

    Attributes:
        rows: (n,): where they stand among the N, best first in each list.
        starts: (L,): where each list begins.
        owner: (n,): the list of each.
    """

    rows: IntArray
    starts: IntArray
    owner: IntArray


@cached_by_view()
def _rows_by_list(runs: AlignedRuns, s: int) -> _ListRows:
    rows = np.flatnonzero(runs.ranks[s] > 0)
    rows = rows[np.lexsort((runs.ranks[s, rows], runs.query_index[rows]))]
    is_start = np.diff(runs.query_index[rows], prepend=-1) != 0
    return _ListRows(rows, np.flatnonzero(is_start), np.cumsum(is_start) - 1)


def _softmax(exponents: FloatArray, lists: _ListRows) -> FloatArray:
    """(n,): the softmax within each list; summed best first, whatever the order of the sources."""
    if not len(exponents):
        return exponents
    greatest = np.maximum.reduceat(exponents, lists.starts)[lists.owner]
    with np.errstate(over="ignore"):  # -inf: far enough below
        powers = np.exp(np.maximum(exponents - greatest, LEAST_EXPONENT))
    totals = np.bincount(lists.owner, weights=powers)  # adds one after another
    return np.asarray(powers / totals[lists.owner])
