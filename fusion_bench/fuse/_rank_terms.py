"""Fusions whose score is a sum of terms of ranks, such as every kind of reciprocal rank fusion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Number
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.fuse._base import Homogeneity, ScoreTerms, WeightedFusion
from fusion_bench.fuse._engine_form import RankSum, best_ranks


@dataclass(frozen=True)
class RankTerm:
    """One summand of a score.

    Attributes:
        label: What it is.
        source: The row of the source that it belongs to; None = of no single source.
        columns: Rows of the sources that it looks at; it goes by the best rank among them.
        value_at: Shape (n,) ranks → (n,) what is added; 0 at rank 0, which means not returned.
        greatest: What it adds for a document that every source ranks first, or its greatest value.
    """

    label: str
    source: int | None
    columns: tuple[int, ...]
    value_at: Callable[[IntArray], FloatArray]
    greatest: float


class RankTermFusion(WeightedFusion):
    """A fusion that states its :meth:`rank_terms`; all else follows from them.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        normalize: ``none``; ``max_possible`` = divide by the sum of the terms' greatest values;
            ``three_lists`` = divide by 3/(k+1) whatever the number of lists and clamp to 1, the
            order being decided before the clamp.
    """

    k: Annotated[Number, Field(ge=0, le=1000)] = 60
    normalize: Literal["none", "max_possible", "three_lists"] = "none"

    @abstractmethod
    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The terms of the sum."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms, divided as ``normalize`` says, not clamped."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """Each term at the rank of each candidate."""
        terms = self.rank_terms(runs)
        values = np.empty((len(terms), len(runs.documents)))
        for row, term in zip(values, terms, strict=True):
            s = term.columns[0] if term.columns else 0
            some = runs.ranks[s : s + 1] if len(term.columns) == 1 else runs.ranks[[*term.columns]]
            row[:] = term.value_at(best_ranks(some))
        return ScoreTerms(
            tuple(term.label for term in terms),
            tuple(term.source for term in terms),
            values,
            np.full(len(runs.documents), self._score_divisor(terms)),
        )

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """Each term at every rank there is."""
        terms = self.rank_terms(runs)
        ranks = np.arange(runs.max_rank + 1)
        return RankSum(
            columns=tuple(term.columns for term in terms),
            tables=np.array([term.value_at(ranks) for term in terms]),
            divisor=self._score_divisor(terms),
            ceiling=1.0 if self.normalize == "three_lists" else np.inf,
        )

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): clamped to 1 under ``three_lists``."""
        return np.minimum(scores, 1.0) if self.normalize == "three_lists" else scores

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first."""
        terms = self.rank_terms(runs)
        top = self.display_scores(np.array([_greatest_sum(terms) / self._score_divisor(terms)]))
        return np.full(len(runs.queries), float(top[0]))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1; 0 where the weights are divided out; None where a clamp bends the scale."""
        if not self.weight_scale_invariant or self.normalize == "three_lists":
            return None
        return 0 if self.normalize == "max_possible" else 1

    @property
    def weight_scale_invariant(self) -> bool:
        """True: all terms have the weight of a source as a factor."""
        return True

    def _score_divisor(self, terms: tuple[RankTerm, ...]) -> float:
        if self.normalize == "max_possible":
            return _greatest_sum(terms)
        return 3 / (self.k + 1) if self.normalize == "three_lists" else 1.0


def _greatest_sum(terms: tuple[RankTerm, ...]) -> float:
    return float(sum_terms(np.array([term.greatest for term in terms])))
