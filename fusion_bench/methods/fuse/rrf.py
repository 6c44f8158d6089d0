"""Fusions of ranks: reciprocal ranks, inverse squares, a centroid of patient users."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import ByRank, Weight
from fusion_bench.config.parameters import Parameter, Params, integer, real, table
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.fuse._base import (
    AS_GIVEN,
    AlphaWeightedFusion,
    Homogeneity,
    RankSum,
    ScoreTerms,
    SourceSumFusion,
    TermFusion,
    WeightedFusion,
    best_ranks,
    fusions,
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
    source = "Cormack, Clarke, Büttcher 2009; CONV-07-05"

    method: str = "rrf"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, evenly by its logarithm, and the weights."""
        k = self.split_by_source(integer("k", 1, 1000, log=True), sources)
        return (*k, *super().space(sources))

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
    source = "tobi/qmd on GitHub; ADR-005"

    method: str = "rrf_v2"
    weights: dict[str, Weight] = Field(default_factory=lambda: {"question": 2.0})
    bonus: ByRank[Weight] = Field(default_factory=lambda: {1: 0.05, 3: 0.02})
    bonus_scope: Literal["best_rank", "per_source", "question"] = "best_rank"
    bonus_unit: Literal["absolute", "relative"] = "absolute"

    @property
    def plain_rrf(self) -> RRF:
        """The same without the bonus."""
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
                f"{in_use}): declare the role in dataset.yaml, or use rrf"
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
        """As for every sum of ranks; a relative bonus of several lists needs one k for them.

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

    formula = "ln(n + σ)·Σ w/rank², n sources returned it"

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

    formula = "Σ w·(1 − φ)·φ^(rank − 1)"
    source = "Bailey, Moffat, Scholer, Thomas 2017"

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
