"""Thresholds on a signal: what share of the unanswerable queries passes, and what share stays.

A signal is one number per query, computed without judgments; greater means that an answer is more
likely. A query is answered exactly if its signal is greater than the threshold τ. NaN is never
answered.

τ is a one-sided tolerance limit, which holds for any distribution of the signal (Wilks 1941,
"Determination of sample sizes for setting tolerance limits", Annals of Mathematical Statistics 12;
Clopper & Pearson 1934): with 95 % confidence at most a stated share of the unanswerable queries is
answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeAlias

import numpy as np

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import DataError
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.intervals import betting_bound, clopper_pearson
from fusion_bench.stats.values import Pair
from fusion_bench.util.special_functions import special

#: Probability with which the promise of a threshold may fail.
RISK: Final = 0.05
#: Coverage of intervals, and its quantile of the normal distribution.
COVERAGE: Final = 0.95
QUANTILE: Final = 1.959963984540054
#: Share of unanswerable queries that may be answered, unless another is given.
FALSE_ANSWERS: Final = 0.10
#: A signal that keeps less of the answerable queries cannot carry a threshold.
MIN_KEPT: Final = 0.5
#: One-sided level at which a signal is called usable.
LEVEL: Final = 0.025
#: Random permutations of labels; up to so many units, all of them are counted instead.
PERMUTATIONS: Final = 10_000
EXACT_UNITS: Final = 16

Usability: TypeAlias = Literal["usable", "cannot carry a threshold", "not shown"]


def count_needed(false_answers: float) -> int:
    """Unanswerable queries that a threshold needs at least: 29 at .10, 59 at .05."""
    return math.ceil(math.log(RISK) / math.log1p(-false_answers))


def allowed_answers(queries: int, false_answers: float) -> int:
    """The calibrating queries above τ: the largest c with P(Bin(n, α) ≤ c) ≤ .05; −1 = none."""
    counts = np.arange(queries + 1)
    return int((special.bdtr(counts.astype(float), queries, false_answers) <= RISK).sum()) - 1


def find_threshold(signal: FloatArray, false_answers: float) -> float:
    """τ: the signal that at most a share of all unanswerable queries exceeds, with 95 % confidence.

    Args:
        signal: Shape (n,): of unanswerable queries that are independent of each other; NaN is never
            answered.
        false_answers: The share, above 0 and below 1.

    Returns:
        The (c + 1)-th largest value, −∞ if that is NaN.

    Raises:
        DataError: There are too few queries.
    """
    allowed = allowed_answers(len(signal), false_answers)
    if allowed < 0:
        raise DataError(
            f"{len(signal):,} queries without an answer are too few to answer at most "
            f"{false_answers:.0%} of them: at least {count_needed(false_answers)} are needed"
        )
    return float(np.sort(order_nan_last(signal))[::-1][allowed])


def order_nan_last(signal: FloatArray) -> FloatArray:
    """The values with −∞ for NaN, which is never answered."""
    return np.where(np.isnan(signal), -np.inf, signal)


class Share(ReportRecord):
    """A share of queries with its 95 % interval.

    Attributes:
        share: Of the queries; null without any.
        low: Lower end: Clopper–Pearson; by group that of differences, or of bets.
        high: Upper end.
        queries: How many there are.
    """

    share: OptionalFloat
    low: float
    high: float
    queries: int


def measure_share(counted: BoolArray, keys: Sequence[str], *, seed: int = 0) -> Share:
    """The share of queries that count, with an interval that respects their groups.

    Where too few groups differ for the interval of a difference, bets bound the share from both
    sides.

    Args:
        counted: Shape (Q,).
        keys: The group id of each query; its own id without groups.
        seed: Of the draws.
    """
    if not len(counted):
        return Share(share=None, low=0.0, high=1.0, queries=0)
    count, queries = int(counted.sum()), len(counted)
    if len(set(keys)) == queries:
        low, high = clopper_pearson(count, queries)
        return Share(share=count / queries, low=low, high=high, queries=queries)
    values = counted.astype(np.float64)
    row = infer_family([Pair.from_arrays(values, keys=keys, is_bounded=True)], seed=seed)[0]
    low, high = row.low, row.high
    if not (row.has_interval and row.changed):
        codes = number_by_appearance(keys)[0]
        low = betting_bound(values, codes, alpha=(1 - COVERAGE) / 2)
        high = 1 - betting_bound(1 - values, codes, alpha=(1 - COVERAGE) / 2)
    return Share(share=count / queries, low=max(low, 0.0), high=min(high, 1.0), queries=queries)


@dataclass(frozen=True)
class Separation:
    """How far a signal separates answerable queries from unanswerable ones.

    Attributes:
        auc: P(s_A > s_U) + ½ P(s_A = s_U): the area under the curve.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p: One-sided, of AUC > ½.
    """

    auc: float
    low: float
    high: float
    p: float


def measure_separation(
    signal: FloatArray, answerable: BoolArray, keys: Sequence[str], *, seed: int = 0
) -> Separation:
    """The area under the curve, its interval by DeLong's placements, and a permutation test.

    Sources: DeLong, DeLong & Clarke-Pearson 1988, "Comparing the areas under two or more correlated
    receiver operating characteristic curves", Biometrics 44; by group: Obuchowski 1997,
    "Nonparametric analysis of clustered ROC curve data", Biometrics 53.

    Args:
        signal: Shape (Q,); NaN is less than every number.
        answerable: Shape (Q,); both kinds occur.
        keys: The group id of each query; a group with queries of both kinds is split for the test.
        seed: Of the permutations.
    """
    values = order_nan_last(signal)
    a, u = values[answerable], values[~answerable]
    placements = np.empty(len(values))
    placements[answerable] = _share_below(a, u)
    placements[~answerable] = 1 - _share_below(u, a)
    auc = float(placements[answerable].mean())
    codes, names = number_by_appearance(keys)
    sums, variance = [], 0.0
    for kind, count in ((answerable, len(a)), (~answerable, len(u))):
        sums.append(np.bincount(codes[kind], placements[kind] - auc, len(names)) / count)
        units = len(set(codes[kind].tolist()))
        variance += float(sums[-1] @ sums[-1]) * units / max(units - 1, 1)
    variance += 2 * float(sums[0] @ sums[1]) * len(names) / max(len(names) - 1, 1)
    width = QUANTILE * math.sqrt(max(variance, 0.0))
    p = _permutation_p(values, answerable, codes, seed)
    return Separation(auc, max(auc - width, 0.0), min(auc + width, 1.0), p)


def _share_below(values: FloatArray, others: FloatArray) -> FloatArray:
    """(n,): for each value the share of the others below it; equal ones count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values), np.searchsorted(ordered, values, "right")
    return np.asarray((below[0] + below[1]) / (2 * len(ordered)))


def _permutation_p(values: FloatArray, answerable: BoolArray, codes: IntArray, seed: int) -> float:
    """The share of permutations of the units' labels whose AUC is at least the observed one.

    Args:
        values: Shape (Q,), without NaN.
        answerable: Shape (Q,).
        codes: Shape (Q,): of the groups; each kind of a group is a unit.
        seed: Of the permutations.
    """
    unit = number_by_appearance((2 * codes + answerable).tolist())[0]
    midranks = _share_below(values, values) * len(values) + 0.5
    sums, sizes = np.bincount(unit, midranks), np.bincount(unit)
    is_answerable = np.zeros(len(sizes), dtype=bool)
    is_answerable[unit[answerable]] = True

    def auc_of(chosen: FloatArray) -> FloatArray:
        """Shape (b,): of the units that each row of (b, G) calls answerable."""
        count = chosen @ sizes
        greater = chosen @ sums - count * (count + 1) / 2
        return np.asarray(greater / np.maximum(count * (len(values) - count), 1))

    units, chosen_units = len(sizes), int(is_answerable.sum())
    least = auc_of(is_answerable[None].astype(float))[0] - 1e-12
    if units <= EXACT_UNITS:
        picks = np.array([*combinations(range(units), chosen_units)])
        chosen = np.zeros((len(picks), units))
        np.put_along_axis(chosen, picks, 1.0, axis=1)
        return float((auc_of(chosen) >= least).mean())
    generator, reached = np.random.default_rng(seed), 0
    for start in range(0, PERMUTATIONS, 500):
        block = np.tile(is_answerable.astype(float), (min(500, PERMUTATIONS - start), 1))
        reached += int((auc_of(generator.permuted(block, axis=1)) >= least).sum())
    return (1 + reached) / (1 + PERMUTATIONS)


def adjust_holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of all tests together (Holm 1979, Scandinavian Journal of Statistics 6)."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, greatest = [1.0] * len(p), 0.0
    for place, index in enumerate(order):
        greatest = max(greatest, min(1.0, p[index] * (len(p) - place)))
        adjusted[index] = greatest
    return adjusted


def judge_signal(
    p: float, kept: Share, false_answers: float, min_kept: float = MIN_KEPT
) -> Usability:
    """Whether a signal can carry a threshold.

    Args:
        p: Of AUC > ½, adjusted for all signals.
        kept: The share of answerable queries that the threshold keeps.
        false_answers: The share of unanswerable queries that it may answer.
        min_kept: A signal that keeps less, by the upper end of its interval, cannot.
    """
    if kept.high < min_kept:
        return "cannot carry a threshold"
    if p <= LEVEL and kept.low > false_answers:
        return "usable"
    return "not shown"
