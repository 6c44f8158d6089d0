"""The mean difference of one check with its bounds, t tests, repeats.

The t distribution stands for resampled queries, as those know nothing of repeats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import NOISE, BoolArray, FloatArray, IntArray
from fusion_bench.gate.power import RulePower
from fusion_bench.gate.verdict import ALPHA, CheckRepeatsResult, CheckStatus, decide_status
from fusion_bench.stats import power, repeat_variance
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import (
    POWER,
    MeanEstimate,
    betting_bound,
    estimate_mean,
    t_quantile,
)


@dataclass(frozen=True)
class CheckEstimates:
    """What is estimated of one check at the level of one run.

    Attributes:
        estimate: The mean difference, with what repeats add.
        betting_bound: One-sided lower bound; NaN where there is none.
        p_at_zero: Of the one-sided t test of "the true mean is at least 0", where repeats add
            variance; 0 elsewhere, so that the sign-flip test decides alone.
        p_regressed: Of the one-sided t test of mean ≥ −m, unadjusted.
        needed: Queries with which the t bound lies above −m with probability .8, without true
            difference; None where m is 0, no spread is known, or repeats add variance, as queries
            alone may never suffice.
    """

    estimate: MeanEstimate
    betting_bound: float
    p_at_zero: float
    p_regressed: float
    needed: power.SampleSize | None


def estimate_check(
    difference: FloatArray,
    groups: IntArray,
    terms: Sequence[repeat_variance.RepeatTerm],
    *,
    max_drop: float,
    alpha: float,
) -> CheckEstimates:
    """Estimate the mean difference and its bounds.

    Args:
        difference: Shape (Q,), finite.
        groups: Shape (Q,): codes.
        terms: What repeats add to the variance of the mean.
        max_drop: m.
        alpha: One-sided level of the bounds.
    """
    # The lower end of the two-sided interval at 2α is the one-sided bound at α.
    estimate = estimate_mean(difference, groups, alpha=2 * alpha)
    estimate = repeat_variance.add_repeat_variance(estimate, terms, alpha=2 * alpha)
    bound = betting_bound(difference, groups, alpha=alpha)
    needed, spread = None, power.estimate_spread(difference, groups)
    if not terms and max_drop > 0 and spread.freedom and math.isfinite(spread.freedom):
        critical = power.critical_value(alpha, spread.freedom)
        needed = spread.needed_queries(max_drop, critical)
    return CheckEstimates(
        estimate=estimate,
        betting_bound=add_repeat_gap(estimate.mean, bound, terms, alpha=alpha),
        p_at_zero=p_at_least(estimate, 0.0) if terms else 0.0,
        p_regressed=p_at_least(estimate, -max_drop),
        needed=needed,
    )


def p_at_least(estimate: MeanEstimate, value: float) -> float:
    """P of the one-sided t test of "the true mean is at least ``value``"; 1 = no spread known."""
    from fusion_bench.util.special_functions import special  # late, as it is slow

    gap, error = estimate.mean - value, estimate.standard_error
    if not error > 0:
        return 0.0 if error == 0 and gap < 0 else 1.0
    return float(special.stdtr(estimate.freedom, gap / error))


def add_repeat_gap(
    mean: float, bound: float, terms: Sequence[repeat_variance.RepeatTerm], *, alpha: float
) -> float:
    """A one-sided lower bound over queries, lowered by what repeats can move it.

    The mean is the sum of a part that queries move and an independent part that repeats move. The
    distances of their bounds are combined as √(a² + b²) (the method of variance estimates recovery:
    Zou & Donner 2008, "Construction of confidence limits about effect measures", Statistics in
    Medicine 27).

    Args:
        mean: The mean difference.
        bound: Its bound over queries; NaN stays NaN.
        terms: What the repeats add to the variance of the difference.
        alpha: Probability that the true mean lies below, at most.
    """
    variance = math.fsum(term.variance for term in terms)
    if not variance > 0:
        return bound
    squares = math.fsum(term.squared_error for term in terms)
    freedom = variance**2 / squares if squares else math.inf  # an upper limit is no estimate
    freedom = max(freedom, min(term.spread.repeats - 1 for term in terms))
    gap = t_quantile(freedom, 1 - alpha) * math.sqrt(variance)
    return mean - math.hypot(mean - bound, gap)


#: The repeats of a side that are compared one by one.
MOST_SINGLE = 10


@dataclass(frozen=True, eq=False)
class CheckRepeats:
    """The values of each repeat on the queries of one check; a side of None has one repeat.

    Attributes:
        baseline: Shape (T, Q).
        candidate: Shape (T, Q), with its own T.
        is_shared: Both sides read the same repeats of one list, so that they move together.
        borrows: The side of one repeat reads a list that has several on the other side: it is as
            unsteady as that side. Otherwise a side of one repeat counts as fixed.
    """

    baseline: FloatArray | None
    candidate: FloatArray | None
    is_shared: bool = False
    borrows: bool = False

    @property
    def is_paired(self) -> bool:
        """Whether repeat t of the one side belongs to repeat t of the other."""
        return self.is_shared and len(self.sides) == 1

    @property
    def sides(self) -> tuple[FloatArray | None, ...]:
        """What the variance of the difference depends on."""
        return repeat_variance.paired_sides(self.candidate, self.baseline, is_shared=self.is_shared)

    def make_terms(self, groups: IntArray) -> tuple[repeat_variance.RepeatTerm, ...]:
        """What the repeats add to the variance of the difference; ``groups`` has shape (Q,)."""
        return repeat_variance.make_repeat_terms(self.sides, groups, borrow=self.borrows)

    def select_queries(self, keep: BoolArray) -> CheckRepeats:
        """The same on the queries where ``keep``, shape (Q,), is true."""
        return replace(
            self,
            baseline=None if self.baseline is None else self.baseline[:, keep],
            candidate=None if self.candidate is None else self.candidate[:, keep],
        )

    def find_worst_repeat(self, query: int) -> int:
        """The candidate's repeat in which a query lost most, from 0; 0 where it has one."""
        before, after = self.baseline, self.candidate
        if after is None:
            return 0
        lost = after[:, query]
        if self.is_shared and before is not None and len(before) == len(after):
            lost = lost - before[:, query]
        return int(np.argmin(lost))

    def single_differences(self, means: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Candidate − baseline of single repeats, shape (pairs, Q).

        Of repeats that belong together each pair, otherwise every pair of the first ten.

        Args:
            means: The baseline's and the candidate's values, for a side of one repeat.
        """
        before, after = (
            mean[None] if side is None else side[:MOST_SINGLE]
            for side, mean in zip((self.baseline, self.candidate), means, strict=True)
        )
        if self.is_paired:
            return after - before
        return np.stack([new - old for old, new in product(before, after)])


class SingleRule(NamedTuple):
    """How single repeats are decided.

    Attributes:
        max_drop: m.
        tests: Checks of the family: p counts as at the first step of Holm.
        runs: R of ``candidates``.
        seed: Seed of the random signs.
    """

    max_drop: float
    tests: int
    runs: int
    seed: int


def decide_single_repeats(
    differences: FloatArray, groups: IntArray, rule: SingleRule
) -> dict[CheckStatus, int]:
    """How often the plain rule ends in each status, the most frequent first.

    Args:
        differences: Shape (pairs, Q): candidate − baseline of single repeats.
        groups: Shape (Q,): codes.
        rule: How each pair is decided.
    """
    rows = np.where(np.abs(differences) <= NOISE, 0.0, differences)
    p_values = randomization_p_values(rows, groups, seed=rule.seed, alternative="less")
    statuses: Counter[CheckStatus] = Counter()
    for row, p in zip(rows, p_values.tolist(), strict=True):
        each = estimate_check(row, groups, (), max_drop=rule.max_drop, alpha=ALPHA / rule.runs)
        status = decide_status(
            changed=int(np.count_nonzero(row)),
            mean=each.estimate.mean,
            max_drop=rule.max_drop,
            t_bound=each.estimate.low,
            betting_bound=each.betting_bound,
            p_fell=min(p * rule.tests * rule.runs, 1.0),
            p_regressed=min(each.p_regressed * rule.tests * rule.runs, 1.0),
        )
        statuses[status] += 1
    return dict(statuses.most_common())


def describe_repeats(
    repeats: CheckRepeats,
    means: tuple[FloatArray, FloatArray],
    groups: IntArray,
    *,
    estimate: MeanEstimate,
    rule: SingleRule,
) -> CheckRepeatsResult:
    """What a verdict says of the repeats of a check.

    Args:
        repeats: The values of each repeat.
        means: The baseline's and the candidate's values, each (Q,).
        groups: Shape (Q,): codes.
        estimate: The mean difference, with what repeats add.
        rule: How single repeats are decided.
    """
    error = estimate.standard_error
    return CheckRepeatsResult(
        baseline=1 if repeats.baseline is None else len(repeats.baseline),
        candidate=1 if repeats.candidate is None else len(repeats.candidate),
        baseline_sd=_measure_sd(repeats.baseline),
        candidate_sd=_measure_sd(repeats.candidate),
        share=estimate.repeat_variance / error**2 if estimate.repeat_variance > 0 else 0.0,
        is_paired=repeats.is_paired,
        is_borrowed=repeats.borrows and (repeats.baseline is None or repeats.candidate is None),
        single=decide_single_repeats(repeats.single_differences(means), groups, rule),
    )


def _measure_sd(values: FloatArray | None) -> float | None:
    return None if values is None else repeat_variance.measure_repeat_spread(values).sd


def compute_repeat_power(
    estimates: CheckEstimates, max_drop: float, *, level: float, bound_level: float
) -> RulePower:
    """The power of the rule on one check.

    Args:
        estimates: The difference and its bounds, with what repeats add.
        max_drop: m.
        level: Of the test of ``fell``, at the first step of Holm.
        bound_level: Of both lower bounds.
    """
    estimate = estimates.estimate
    error, freedom = estimate.standard_error, estimate.freedom
    if not error > 0:
        return RulePower()
    rejection, bound = (t_quantile(freedom, 1 - each) for each in (level, bound_level))
    # An alarm also needs a mean below −m, which half of the runs have at a drop of m.
    by_test = power.detectable_difference(error, rejection, freedom=freedom) or 0.0
    by_mean = max_drop + error * t_quantile(freedom, POWER)
    passes = bound_level
    if max_drop > 0:
        passes = power.compute_power(max_drop, error, bound, freedom=freedom)
    room = max_drop - (estimate.mean - estimates.betting_bound)
    by_bets = 0.0 if math.isnan(room) else power.upper_tail(-room / error, freedom)
    return RulePower(
        min_detectable_drop=max(by_test, by_mean),
        pass_rate=min(passes, by_bets),
        small_pass_rate=passes - min(passes, by_bets),
        alarm_rate=min(level, power.upper_tail(max_drop / error, freedom)),
        false_pass_rate=bound_level,
    )
