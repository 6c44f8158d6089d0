"""Fusions whose score is a sum of terms of ranks, such as every kind of reciprocal rank fusion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse._base import (
    AS_GIVEN,
    Homogeneity,
    RankSum,
    ScoreTerms,
    WeightedFusion,
    best_ranks,
)

#: k of reciprocal rank fusion, where nothing else is said.
DEFAULT_K = 60
RankConstant = Annotated[float, Field(ge=0, le=1000)]
#: One k for all sources, or a mapping by source name or role.
RankConstants = Annotated[RankConstant | dict[str, RankConstant], AS_GIVEN]


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


class RankSumFusion(WeightedFusion):
    """A fusion that states its :meth:`rank_terms`; all else follows from them."""

    @abstractmethod
    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The terms of the sum."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms over the divisor, not clamped."""
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
            np.full(len(runs.documents), self.score_divisor(runs, terms)),
        )

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """Each term at every rank there is."""
        terms = self.rank_terms(runs)
        ranks = np.arange(runs.max_rank + 1)
        return RankSum(
            columns=tuple(term.columns for term in terms),
            tables=np.array([term.value_at(ranks) for term in terms]),
            divisor=self.score_divisor(runs, terms),
            ceiling=self.score_ceiling,
        )

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): clamped to the ceiling, if there is one."""
        return scores if self.score_ceiling == np.inf else np.minimum(scores, self.score_ceiling)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first."""
        terms = self.rank_terms(runs)
        greatest = greatest_sum(terms) / self.score_divisor(runs, terms)
        return np.full(len(runs.queries), min(greatest, self.score_ceiling))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: all terms have the weight of a source as a factor."""
        return 1

    @property
    def score_ceiling(self) -> float:
        """Displayed scores are clamped to it."""
        return np.inf

    def score_divisor(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - of some
        terms: tuple[RankTerm, ...],  # noqa: ARG002 - of some
    ) -> float:
        """What the sum of the terms is divided by; above 0."""
        return 1.0


class RankTermFusion(RankSumFusion):
    """A sum of terms of ranks that a constant k flattens.

    Attributes:
        k: Flattens the difference between neighboring ranks. One for all sources, or a mapping by
            source name or role; a source that it does not name has 60.
        normalize: ``none``; ``max_possible`` = divide by the sum of the terms' greatest values;
            ``three_lists`` = divide by 3/(k+1) whatever the number of lists and clamp to 1, the
            order being decided before the clamp. It needs one k for all sources.
    """

    per_source: ClassVar[Mapping[str, float]] = {"k": DEFAULT_K}

    k: RankConstants = DEFAULT_K
    normalize: Literal["none", "max_possible", "three_lists"] = "none"

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse weights and k that fit no source, and ``three_lists`` without one k for all.

        Raises:
            ConfigError: The sources do not fit.
        """
        super().check_sources(sources, roles)
        if self.normalize == "three_lists":
            weights = self.source_weights(sources, roles)
            k = self.source_numbers("k", sources, roles)
            _three_lists_divisor(k[weights > 0])

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

    @property
    def score_ceiling(self) -> float:
        """1 under ``three_lists``."""
        return 1.0 if self.normalize == "three_lists" else np.inf

    def score_divisor(self, runs: AlignedRuns, terms: tuple[RankTerm, ...]) -> float:
        """What the sum of the terms is divided by, as ``normalize`` says."""
        if self.normalize == "max_possible":
            return greatest_sum(terms)
        if self.normalize == "three_lists":
            return _three_lists_divisor(self.source_numbers("k", runs.sources, runs.roles))
        return 1.0


def greatest_sum(terms: tuple[RankTerm, ...]) -> float:
    """The sum of the terms' greatest values."""
    return float(sum_terms(np.array([term.greatest for term in terms])))


def common_number(numbers: FloatArray) -> float | None:
    """The number that all sources share; None = they differ."""
    return float(numbers[0]) if (numbers == numbers[0]).all() else None


def _three_lists_divisor(k: FloatArray) -> float:
    shared = common_number(k)
    if shared is None:
        listed = ", ".join(f"{value:g}" for value in k)
        raise ConfigError(
            f"normalize: three_lists divides by 3/(k+1), which needs one k for all sources, given "
            f"{listed}: give them one k, or use normalize: max_possible"
        )
    return 3 / (shared + 1)
