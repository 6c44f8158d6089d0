"""Repeats, that is repeated lists of a system: how far they differ, what they add to a variance.

The model is crossed: every repeat t of a system has every query q, and belongs to one system,

    y_tq = μ + α_q + τ_t + ε_tq,

with random effects of queries, of repeats, and of one repeat on one query (Brennan 2001,
"Generalizability Theory", chapter 2; Voorhees, Samarov & Soboroff 2017, "Using Replicates in
Information Retrieval Evaluation", ACM TOIS 36(2)). τ moves all queries of a repeat together. It is
what averaging over queries does not remove.

The mean over queries and repeats of system s has the variance
(σ²_α + σ²_ε/T) / Q + σ²_τ/T. The variance over queries of the means over repeats estimates its
first part, because ε is in these means. So does it for the paired difference of two systems. Only
σ²_τ/T of each system is to be added, and where σ²_τ is 0 the plain paired test is right.

Two or three repeats estimate σ²_τ too unsurely where nothing else is uncertain in the same way: a
difference from a fixed list takes the upper limit of σ²_τ/T instead of its estimate.

The variance of a mean or a paired difference, as expected with Q′ queries and T′ repeats, is

    V′ = (Q/Q′)·(R + Σ W_s/T′_s) + Σ σ²_τs/T′_s,

where W_s/T_s is what ε_s adds to the variance V_q over queries, and R = V_q − Σ W_s/T_s is the
rest, at least 0 (a decision study of Brennan 2001, "Generalizability Theory", chapter 2). Where
σ²_τ/T enters the interval by its upper limit, it does so here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusion_bench.config.json_records import ReportRecord
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.errors import ConfigError
from fusion_bench.stats import intervals


def mean_of_repeats(repeats: FloatArray | Sequence[FloatArray]) -> FloatArray:
    """The mean over the first axis, read-only; repeats that agree keep their value to the last bit.

    Args:
        repeats: Shape (T, …); an array becomes read-only too.
    """
    values = np.asarray(repeats)
    make_readonly(values)
    mean: FloatArray = values[0]
    if len(values) > 1:
        mean = np.where((values == mean).all(axis=0), mean, values.mean(axis=0))
    make_readonly(mean)
    return mean


def paired_sides(
    first: FloatArray | None, second: FloatArray | None, *, is_shared: bool
) -> tuple[FloatArray | None, ...]:
    """The values whose spread over repeats enters the variance of first − second.

    Systems that read the same repeats of a list, such as an agent and a fusion with this agent,
    move together: repeat t of the one was made from what repeat t of the other was made from. Then
    only their differences, repeat by repeat, are independent of each other (paired replicates;
    Brennan 2001, "Generalizability Theory", chapter 4: an effect common to both cancels).

    Args:
        first: Shape (T, Q); None = one repeat.
        second: Likewise, with its own number of repeats.
        is_shared: Whether both read the repeats of one list.

    Returns:
        The sides for ``make_repeat_terms``.
    """
    if is_shared and first is not None and second is not None and len(first) == len(second):
        return (first - second,)
    return first, second


def repeat_means(sides: Sequence[FloatArray | None]) -> tuple[FloatArray, ...]:
    """The mean over queries of each repeat, shape (T,), of each side that has several.

    Args:
        sides: From :func:`paired_sides`, each (T, Q).
    """
    return tuple(side.mean(axis=1) for side in sides if side is not None and len(side) > 1)


@dataclass(frozen=True)
class RepeatSpread:
    """The repeats of one system, at least 2.

    Attributes:
        repeats: T.
        means: The mean over queries of each repeat, T numbers.
        between: Sample variance of these means. It estimates σ²_τ + ``within``.
        within: Variance of a repeat's mean that ε alone causes: σ²_ε ÷ Q without groups.
        within_freedom: Degrees of freedom of ``within``; NaN with one group.
    """

    repeats: int
    means: tuple[float, ...]
    between: float
    within: float
    within_freedom: float

    @property
    def variance(self) -> float:
        """σ²_τ, by the analysis of variance; a negative estimate is 0.

        Searle, Casella & McCulloch 1992, "Variance Components", chapter 4.
        """
        return self.between - self.within if self.between > self.within else 0.0

    @property
    def sd(self) -> float:
        """Sample standard deviation of the means of the repeats."""
        return float(np.sqrt(self.between))


def measure_repeat_spread(values: FloatArray, groups: IntArray | None = None) -> RepeatSpread:
    """Compare the repeats of one system.

    Residuals of a query that was asked in T repeats sum to 0 over the repeats, so the sum of their
    variances is divided by T − 1. With groups the variance of a repeat's mean is CR2's.

    Args:
        values: Shape (T, Q), T ≥ 2, finite.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Raises:
        ConfigError: One repeat, or groups of another shape.
        DataError: No query, or a value that is not finite.
    """
    intervals.check_values(values, dimensions=2)
    repeats, queries = values.shape
    if repeats < 2:
        raise ConfigError(f"trials: a spread needs at least 2, not {repeats}")
    codes, count = intervals.group_codes(groups, queries)
    means = np.array([intervals.exact_mean(row) for row in values])
    residuals = values - values[0]  # exactly 0 where repeats are equal
    residuals -= residuals.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    sizes = np.bincount(codes).astype(np.int64)
    sums = np.stack(
        [np.bincount(codes, weights=row, minlength=count).astype(np.float64) for row in residuals]
    )
    within = float((intervals.cr2_standard_error(sums, sizes) ** 2).sum() / (repeats - 1))
    return RepeatSpread(
        repeats=repeats,
        means=tuple(means.tolist()),
        between=0.0 if (means == means[0]).all() else float(means.var(ddof=1)),
        within=within,
        within_freedom=(repeats - 1) * intervals.bell_mccaffrey_freedom(sizes),
    )


#: With so many repeats or fewer, a difference from a fixed list takes the upper limit of σ²_τ/T.
FEW_REPEATS: Final = 3
#: Repeats of each system that keep the level of a family whatever repeats do: see
#: docs/studies/statistics.md.
ENOUGH_REPEATS: Final = 6
#: 1 − the confidence of that limit: with two or three repeats, normal effects and queries, and an
#: sd of repeats from 0 to .1, it is the largest with which 95 % intervals cover: see
#: docs/studies/statistics.md.
LIMIT_LEVEL: Final = 0.15


@dataclass(frozen=True)
class RepeatTerm:
    """The repeats of one system, as they enter the variance of a mean or a difference.

    Attributes:
        spread: How far the repeats lie apart.
        factor: 1/T; where another system borrows this spread, 1/T of both.
        is_limit: The upper limit of σ²_τ/T is added, not its estimate.
    """

    spread: RepeatSpread
    factor: float
    is_limit: bool = False

    @property
    def variance(self) -> float:
        """What the term adds.

        B·(T − 1) is a χ² with T − 1 degrees of freedom times σ²_τ + W, so that its low quantile
        gives the upper limit of σ²_τ + W.
        """
        if not self.is_limit:
            return self.factor * self.spread.variance
        from fusion_bench.util.special_functions import special  # late, as it is slow

        freedom = self.spread.repeats - 1
        quantile = 2 * float(special.gammaincinv(freedom / 2, LIMIT_LEVEL))
        limit = freedom * self.spread.between / quantile - self.spread.within
        return self.factor * max(limit, 0.0)

    @property
    def squared_error(self) -> float:
        """Half the variance of ``variance``, each mean square being a scaled χ²; 0 for a limit."""
        if self.is_limit:
            return 0.0
        spread = self.spread
        squares = spread.between**2 / (spread.repeats - 1) + (
            spread.within**2 / spread.within_freedom
        )
        return self.factor**2 * squares


def make_repeat_terms(
    sides: Sequence[FloatArray | None], groups: IntArray | None = None, *, borrow: bool = False
) -> tuple[RepeatTerm, ...]:
    """The terms of a mean (one side) or of a paired difference (two sides).

    The repeats of a system with one repeat are unknown. It counts as fixed: the interval holds for
    its list as it is, and two or three repeats of the other side add their upper limit. With
    ``borrow`` it is as unsteady as the other side: one system, changed.

    Args:
        sides: Of each system the values of its repeats, shape (T, Q); None = one repeat.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        borrow: Whether a side of one repeat takes the spread of the other.

    Returns:
        Only the terms that add something.
    """
    repeated = [side for side in sides if side is not None and len(side) > 1]
    singles = len(sides) - len(repeated)
    is_fixed = len(repeated) == singles == 1 and not borrow
    terms = []
    for side in repeated:
        spread = measure_repeat_spread(side, groups)
        factor = 1 / spread.repeats + (singles if borrow else 0)
        terms.append(RepeatTerm(spread, factor, is_fixed and spread.repeats <= FEW_REPEATS))
    return tuple(term for term in terms if term.variance > 0)


def add_repeat_variance(
    estimate: intervals.MeanEstimate, terms: Sequence[RepeatTerm], *, alpha: float = 0.05
) -> intervals.MeanEstimate:
    """An estimate that holds for new queries and for new repeats.

    The variance is V = V_q + Σ f·σ²_τ, with V_q over queries and f of each term. Its degrees of
    freedom are Satterthwaite's, V² ÷ (V_q²/ν_q + Σ f²·(B²/(T − 1) + W²/ν_W)), where σ²_τ = B − W
    (Satterthwaite 1946, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2). A term whose estimate is not above 0 takes no part. With an upper limit
    they are ν_q, because it is no estimate.

    Args:
        estimate: Over queries, of the means over repeats.
        terms: From :func:`make_repeat_terms`.
        alpha: 1 − coverage of its interval.

    Returns:
        The estimate as it is where no term adds anything.
    """
    added = math.fsum(term.variance for term in terms)
    if not added > 0 or math.isnan(estimate.standard_error):
        return estimate
    query_variance = estimate.standard_error**2
    variance = query_variance + added
    freedom = estimate.freedom
    if not terms[0].is_limit:
        squares = query_variance**2 / estimate.freedom
        squares += math.fsum(term.squared_error for term in terms)
        # A difference of mean squares can leave less than its coarsest part has.
        least = min(estimate.freedom, *(term.spread.repeats - 1 for term in terms))
        freedom = max(variance**2 / squares, least)
    error = math.sqrt(variance)
    half_width = intervals.t_quantile(freedom, 1 - alpha / 2) * error
    return replace(
        estimate,
        low=estimate.mean - half_width,
        high=estimate.mean + half_width,
        standard_error=error,
        freedom=freedom,
        repeat_variance=added,
    )


def move_quantile(t: float, old: float, new: float) -> float:
    """The quantile of Student's t at ``new`` degrees of freedom where ``old`` has ``t`` ≥ 0."""
    from fusion_bench.util.special_functions import special  # late, as it is slow

    if old == new or not 0 < t < math.inf:
        return t
    return -float(special.stdtrit(new, float(special.stdtr(old, -t))))


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of the parts of one value, y_tq; they sum to the variance of one value.

    Attributes:
        queries: σ²_α: how far queries differ.
        repeats: σ²_τ: how far repeats differ on all queries together.
        residual: σ²_ε: how far repeats differ on one query.
    """

    queries: float
    repeats: float
    residual: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of queries, repeats and residual; they sum to 1, or are 0 where nothing varies."""
        total = self.queries + self.repeats + self.residual
        if total == 0:
            return 0.0, 0.0, 0.0
        return self.queries / total, self.repeats / total, self.residual / total


def split_variance(
    values: FloatArray, spread: RepeatSpread | None = None
) -> VarianceComponents | None:
    """Variance components by the analysis of variance; negative estimates are 0.

    With the mean squares of queries, repeats and residual, σ²_ε = MS_ε,
    σ²_τ = (MS_τ − MS_ε) ÷ Q and σ²_α = (MS_α − MS_ε) ÷ T (Brennan 2001, chapter 2).

    Args:
        values: Shape (T, Q), T ≥ 2, finite.
        spread: Of the same values, where queries come in groups; by default without groups.

    Returns:
        None with one query.
    """
    repeats, queries = values.shape
    if queries < 2:
        return None
    spread = spread or measure_repeat_spread(values)
    by_query = values.mean(axis=0)
    residuals = values - values[0]  # exactly 0 where repeats are equal
    residuals -= residuals.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    residual = float((residuals**2).sum() / ((repeats - 1) * (queries - 1)))
    between_queries = float(
        ((by_query - intervals.exact_mean(by_query)) ** 2).sum() / (queries - 1)
    )
    return VarianceComponents(
        queries=max(between_queries - residual / repeats, 0.0),
        repeats=spread.variance,
        residual=residual,
    )


def count_disagreements(values: FloatArray, *, noise: float) -> tuple[int, int]:
    """Queries on which the first two repeats differ, and on which any two do.

    Args:
        values: Shape (T, Q), T ≥ 2.
        noise: Differences up to this count as none.
    """
    first, second = values[:2]
    return (
        int((np.abs(first - second) > noise).sum()),
        int((np.ptp(values, axis=0) > noise).sum()),
    )


class NarrowingPlan(ReportRecord):
    """Expected half widths of one interval, not adjusted for the number of comparisons.

    Attributes:
        now: With these trials and queries.
        one_trial: With one more trial of each system that has several.
        added_queries: So many more queries take as many answers of these systems.
        more_queries: With so many more queries.
        all_trials: With any number of trials.
        all_queries: With any number of queries.
    """

    now: float
    one_trial: float
    added_queries: int
    more_queries: float
    all_trials: float
    all_queries: float

    @property
    def prefers_repeats(self) -> bool:
        """Whether one more repeat narrows the interval more than as many answers to new queries."""
        return self.one_trial < self.more_queries


def plan_narrowing(
    estimate: intervals.MeanEstimate,
    spreads: Sequence[RepeatSpread],
    *,
    alpha: float = 0.05,
    is_fixed: bool = False,
) -> NarrowingPlan | None:
    """What one more repeat, or more queries, would make of an interval.

    A system of one repeat counts as fixed and has no spread.

    Args:
        estimate: Over queries, of the means over repeats, without what repeats add.
        spreads: Of each system with several repeats.
        alpha: 1 − coverage.
        is_fixed: The one system with repeats is compared with a fixed list.

    Returns:
        None where no system has repeats, or no spread over queries is known.
    """
    if not spreads or math.isnan(estimate.standard_error):
        return None
    answers = sum(spread.repeats for spread in spreads)
    queries = math.ceil(estimate.queries * len(spreads) / answers)
    now = _plan_half_width(estimate, spreads, 0, 0, alpha, is_fixed)

    def plan(repeats: float, queries: float, most: float = now) -> float:
        """With more of either an interval is no wider, though fewer degrees of freedom say so."""
        return min(_plan_half_width(estimate, spreads, repeats, queries, alpha, is_fixed), most)

    one_trial = plan(1, 0)
    return NarrowingPlan(
        now=now,
        one_trial=one_trial,
        added_queries=queries,
        more_queries=plan(0, queries),
        all_trials=plan(math.inf, 0, one_trial),
        all_queries=plan(0, math.inf),
    )


def _plan_half_width(
    estimate: intervals.MeanEstimate,
    spreads: Sequence[RepeatSpread],
    repeats: float,
    queries: float,
    alpha: float,
    is_fixed: bool,
) -> float:
    """The expected half width with so many repeats and queries more."""
    rate = estimate.queries / (estimate.queries + queries)
    residual = math.fsum(spread.within / spread.repeats for spread in spreads)
    rest = max(estimate.standard_error**2 - residual, 0.0)
    by_query = rest + math.fsum(spread.within / (spread.repeats + repeats) for spread in spreads)
    # Without more of anything it is as measured, though R cannot be below 0.
    query_variance = rate * (by_query if repeats else estimate.standard_error**2)
    freedom = (estimate.freedom + 1) / rate - 1 if rate else math.inf
    added, squares = 0.0, query_variance**2 / freedom
    for spread in spreads:
        count = spread.repeats + repeats
        if is_fixed and count <= FEW_REPEATS:
            within = rate * spread.within
            between = spread.between - spread.within + within
            planned = replace(spread, repeats=int(count), between=between, within=within)
            added += RepeatTerm(planned, 1 / count, is_limit=True).variance
            squares = (query_variance + added) ** 2 / freedom
        elif spread.variance > 0 and math.isfinite(count):
            within = rate * spread.within
            added += spread.variance / count
            squares += ((spread.variance + within) / count) ** 2 / (count - 1)
            if within > 0:
                squares += (within / count) ** 2 / (spread.within_freedom / rate)
    variance = query_variance + added
    if not variance > 0:
        return 0.0
    freedom = variance**2 / squares if squares else math.inf
    return intervals.t_quantile(freedom, 1 - alpha / 2) * math.sqrt(variance)
