"""Reciprocal rank fusion: sums of terms of ranks that a constant k flattens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import ByRank, Weight
from fusion_bench.config.parameters import Parameter, Params, integer, table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse._base import (
    AS_GIVEN,
    AlphaWeightedFusion,
    Homogeneity,
    RankSum,
    ScoreTerms,
    TermFusion,
    WeightedFusion,
    best_ranks,
    fusions,
)

#: How a file gives a list the role that ``rrf_v2`` needs; a call writes it in another way.
GIVE_ROLE: Final = "write 'roles: [question]' beside a list in dataset.yaml"
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


class RankSumFusion(WeightedFusion, TermFusion):
    """A fusion that states its :meth:`rank_terms`; all else follows from them."""

    homogeneity = 1

    @abstractmethod
    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The terms of the sum."""

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
        greatest = _greatest_sum(terms) / self.score_divisor(runs, terms)
        return np.full(len(runs.queries), min(greatest, self.score_ceiling))

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
            return _greatest_sum(terms)
        if self.normalize == "three_lists":
            return _three_lists_divisor(self.source_numbers("k", runs.sources, runs.roles))
        return 1.0


def _greatest_sum(terms: tuple[RankTerm, ...]) -> float:
    """The sum of the terms' greatest values."""
    return float(sum_terms(np.array([term.greatest for term in terms])))


def _common_number(numbers: FloatArray) -> float | None:
    """The number that all sources share; None = they differ."""
    return float(numbers[0]) if (numbers == numbers[0]).all() else None


def _three_lists_divisor(k: FloatArray) -> float:
    shared = _common_number(k)
    if shared is None:
        listed = ", ".join(f"{value:g}" for value in k)
        raise ConfigError(
            f"normalize: three_lists divides by 3/(k+1), which needs one k for all sources, given "
            f"{listed}: give them one k, or use normalize: max_possible"
        )
    return 3 / (shared + 1)


@fusions.register
class RRF(AlphaWeightedFusion, RankTermFusion):
    """``rrf``: Σ_s w_s / (k_s + r_s), over the sources that returned the document.

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009; weights and ``three_lists`` as in CONV-07-05.
    """

    formula = "Σ w/(k + rank)"
    source = "Cormack, Clarke, Büttcher 2009"

    method: str = "rrf"
    tunable = (integer("k", 1, 1000, log=True),)

    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The weighted reciprocal rank in each source."""
        weights = self.source_weights(runs.sources, runs.roles).tolist()
        constants = self.source_numbers("k", runs.sources, runs.roles).tolist()
        return tuple(
            RankTerm(name, s, (s,), partial(_reciprocal_ranks, weight, k), weight / (k + 1))
            for s, (name, weight, k) in enumerate(
                zip(runs.sources, weights, constants, strict=True)
            )
        )


def _reciprocal_ranks(weight: float, k: float, ranks: IntArray) -> FloatArray:
    """(n,): w / (k + rank); 0 at rank 0."""
    values: FloatArray = np.zeros(len(ranks))
    np.divide(weight, k + ranks, out=values, where=ranks > 0)
    return values


#: Greatest bonus that a search tries. One list's first document has 1/(k+1), .016 at k = 60, in
#: absolute terms, and 1 in relative ones.
GREATEST_BONUS = {"absolute": 0.2, "relative": 10.0}
#: Ranks that one entry of a searched table may span.
DEEPEST_BONUS = 10


@fusions.register
class RRFv2(RankTermFusion):
    """``rrf_v2``: Σ_s w_s / (k_s + r_s) + bonus of the best rank.

    Source: ``reciprocalRankFusion`` of https://github.com/tobi/qmd (ADR-005). qmd gives *every*
    list of the original query weight 2; here the weight goes by role and name.

    Attributes:
        bonus: Best rank up to which → what is added: ``{1: 0.05, 3: 0.02}`` = 0.05 at rank 1,
            0.02 at ranks 2 and 3.
        bonus_scope: ``best_rank`` = once a document, by its best rank in any source, whatever the
            source's weight; ``per_source`` = for its rank in each list; ``question`` = once, by
            its best rank in the lists of role ``question``.
        bonus_unit: ``absolute``, or ``relative`` = in multiples of 1/(k+1), so that tuning k does
            not change what the bonus means. Where k differs per source, it needs
            ``bonus_scope: per_source``: each list's bonus then goes by the k of that list.
    """

    formula = "Σ w/(k + rank) + bonus(best rank)"
    source = "tobi/qmd on GitHub"

    method: str = "rrf_v2"
    weights: dict[str, Weight] = Field(default_factory=lambda: {"question": 2.0})
    bonus: ByRank[Weight] = Field(default_factory=lambda: {1: 0.05, 3: 0.02})
    bonus_scope: Literal["best_rank", "per_source", "question"] = "best_rank"
    bonus_unit: Literal["absolute", "relative"] = "absolute"

    @property
    def plain_rrf(self) -> RRF:
        """The RRF that is left without the bonus."""
        return RRF(weights=self.weights, k=self.k)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, the weights, and each entry of the bonus as it is declared."""
        greatest = GREATEST_BONUS[self.bonus_unit]
        bonus = table("bonus", len(self.bonus), greatest, DEEPEST_BONUS)
        return (*self.plain_rrf.space(sources), *bonus)

    def presets(self) -> tuple[Params, ...]:
        """A bonus of 0.10 at rank 1, which its source names beside 0.05."""
        if not self.bonus or self.bonus_unit != "absolute":
            return ()
        return ({"bonus.1.value": 0.10},)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role.

        Raises:
            ConfigError: No source above weight 0 has the role ``question``.
        """
        is_asked = any("question" in names for names in roles)
        weights = super().source_weights(sources, roles) if is_asked else np.ones(len(sources))
        used = [names for names, weight in zip(roles, weights, strict=True) if weight > 0]
        if not any("question" in names for names in used):
            in_use = ", ".join(sorted({role for names in used for role in names})) or "none"
            raise ConfigError(
                "rrf_v2 needs a source of role 'question' that weighs more than 0 (roles in use: "
                f"{in_use}): {GIVE_ROLE}, or use rrf"
            )
        return weights

    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The weighted reciprocal ranks, then the bonus of each list or of the document."""
        reciprocals = self.plain_rrf.rank_terms(runs)
        greatest = max(self.bonus.values(), default=0.0)
        constants = self.source_numbers("k", runs.sources, runs.roles)
        scopes: list[tuple[int | None, tuple[int, ...]]]
        if self.bonus_scope == "per_source":
            scopes = [(s, (s,)) for s in range(len(runs.sources))]
        else:
            anywhere = self.bonus_scope == "best_rank"
            scoped = [s for s, names in enumerate(runs.roles) if anywhere or "question" in names]
            scopes = [(None, tuple(scoped))]
        scales = [self._bonus_scale(constants[[*columns]]) for _, columns in scopes]
        return reciprocals + tuple(
            RankTerm("bonus", source, columns, partial(self._bonus_at, scale), greatest * scale)
            for (source, columns), scale in zip(scopes, scales, strict=True)
        )

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit; a relative bonus of several lists needs one k for them.

        Raises:
            ConfigError: The sources do not fit.
        """
        super().check_sources(sources, roles)
        if self.bonus_scope != "per_source":
            weights = self.source_weights(sources, roles)
            anywhere = self.bonus_scope == "best_rank"
            scoped = [anywhere or "question" in names for names in roles]
            self._bonus_scale(self.source_numbers("k", sources, roles)[scoped & (weights > 0)])

    def _bonus_at(self, scale: float, ranks: IntArray) -> FloatArray:
        """(n,): the bonus of each rank; 0 at rank 0."""
        limits = np.array([0, *self.bonus], dtype=np.int64)
        values = np.array([0.0, *self.bonus.values(), 0.0]) * scale
        return np.asarray(values[np.searchsorted(limits, ranks)])

    def _bonus_scale(self, constants: FloatArray) -> float:
        """What an entry of the table is multiplied by, for a bonus of sources with these k."""
        if self.bonus_unit == "absolute":
            return 1.0
        k = _common_number(constants) if isinstance(self.k, Mapping) else self.k
        if k is None:
            listed = ", ".join(f"{value:g}" for value in constants)
            raise ConfigError(
                "bonus_unit: relative counts in 1/(k+1), which needs one k for the lists of one "
                f"bonus, given {listed}: use bonus_scope: per_source, or bonus_unit: absolute"
            )
        return 1 / (k + 1)

    @property
    def weight_scale_invariant(self) -> bool:
        """Only without a bonus, which does not grow with the weights."""
        return not any(self.bonus.values())

    @property
    def keeps_single_list(self) -> bool:
        """Only while the bonus never grows with the rank."""
        values = list(self.bonus.values())
        return values == sorted(values, reverse=True)
