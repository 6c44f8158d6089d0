"""Comparison of systems with a baseline: difference, interval, p, wins, ties, losses.

Higher is better, as for every measure of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.intervals import (
    estimate_mean,
    exact_mean,
    minimum_detectable_difference,
)
from fusion_bench.stats.randomization_tests import (
    adjust_holm,
    default_resamples,
    randomization_p_values,
)
from fusion_bench.util.formatting import format_difference
from fusion_bench.util.table_view import Columns, TableView

Answer: TypeAlias = Literal["better", "worse", "no difference shown", "identical", "no verdict"]

#: Differences up to this count as 0. A measure's value is a sum of a few dozen terms in [0, 1]: the
#: order of summation changes it by less, a different ranking by far more.
NOISE = 1e-12


@dataclass(frozen=True, repr=False)
class Comparison(TableView):
    """One candidate against the baseline on one measure.

    Attributes:
        measure: Name of the measure.
        baseline: Name of the system compared with.
        candidate: Name of the compared system.
        baseline_mean: Mean over queries.
        candidate_mean: Mean over queries.
        difference: Mean of candidate − baseline.
        low: Lower end of the difference's interval; NaN with one group.
        high: Upper end; NaN with one group.
        p: Two-sided, from the paired randomization test; unadjusted.
        p_holm: Adjusted over all compared systems; None for any but the primary measure.
        wins: Queries on which the candidate is better by more than float noise.
        ties: Queries on which neither is better.
        losses: Queries on which the baseline is better.
        min_detectable_difference: With 80 % power; None where no spread is known.
        queries: Q.
        groups: G, the units of the test and the interval; Q where none are declared.
    """

    measure: str
    baseline: str
    candidate: str
    baseline_mean: float
    candidate_mean: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float | None
    wins: int
    ties: int
    losses: int
    min_detectable_difference: float | None
    queries: int
    groups: int

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self)

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        p = self.p if self.p_holm is None else self.p_holm
        return (
            f"Comparison({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"p {p:.3g}, {self.wins}/{self.ties}/{self.losses} of {self.queries})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        return {name: [value][:limit] for name, value in asdict(self).items()}


def compare_with_baseline(
    measure: str,
    values: Mapping[str, FloatArray],
    baseline: str,
    *,
    groups: IntArray | None = None,
    primary: bool,
    seed: int = 0,
    alpha: float = 0.05,
    resamples: int | None = None,
) -> tuple[Comparison, ...]:
    """Compare every other system with the baseline.

    The family of Holm's correction is all compared systems. Systems with identical values count
    once and share their p. A system that differs from the baseline by no more than float noise has
    p = 1 and does not count.

    Args:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare with.
        groups: Shape (Q,), integer codes of the groups that a dataset declares.
        primary: Whether this is the primary measure; only it gets adjusted p-values.
        seed: Seed of the randomization test.
        alpha: 1 − coverage of the interval, and the level of the minimum detectable difference.
        resamples: B of the randomization test; by default and at least max(10,000, 200 × family).

    Returns:
        One comparison per system but the baseline, in the order of ``values``.
    """
    if baseline not in values:
        raise UnknownNameError("baseline", baseline, values, where=f"compare {measure}")
    _check_pairs(measure, values, baseline)
    differences = {
        name: paired_difference(values[name], values[baseline])
        for name in values
        if name != baseline
    }
    tested = _p_values(values, differences, groups, primary, resamples, seed)
    comparisons = []
    for name, difference in differences.items():
        mean = estimate_mean(difference, groups, alpha=alpha)
        p, p_holm = tested.get(name, (1.0, 1.0 if primary else None))
        wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
        comparisons.append(
            Comparison(
                measure=measure,
                baseline=baseline,
                candidate=name,
                baseline_mean=exact_mean(values[baseline]),
                candidate_mean=exact_mean(values[name]),
                difference=mean.mean,
                low=mean.low,
                high=mean.high,
                p=p,
                p_holm=p_holm,
                wins=wins,
                ties=mean.queries - wins - losses,
                losses=losses,
                min_detectable_difference=minimum_detectable_difference(mean, alpha=alpha),
                queries=mean.queries,
                groups=mean.groups,
            )
        )
    return tuple(comparisons)


def decide_answer(
    comparison: Comparison, judged_only_difference: float | None, *, alpha: float = 0.05
) -> Answer:
    """The conclusion that a comparison supports.

    Args:
        comparison: Of the primary measure; for another measure the unadjusted p decides.
        judged_only_difference: The mean difference over judged documents only; None = not
            measured; NaN = undefined, which gives ``no verdict``.
        alpha: Level of the test.

    Returns:
        ``identical``: no query differs. ``no verdict``: over judged documents only, the difference
        has the opposite sign. ``better`` or ``worse``: p is below ``alpha``. Otherwise ``no
        difference shown``: not significant.
    """
    if comparison.wins == 0 and comparison.losses == 0:
        return "identical"
    sign = _sign_beyond_noise(comparison.difference)
    if judged_only_difference is not None:
        judged_sign = _sign_beyond_noise(judged_only_difference)
        if not sign * judged_sign >= 0:  # written so that NaN ends here too
            return "no verdict"
    p = comparison.p if comparison.p_holm is None else comparison.p_holm
    if p < alpha and sign > 0:
        return "better"
    if p < alpha and sign < 0:
        return "worse"
    return "no difference shown"


def _sign_beyond_noise(difference: float) -> float:
    """−1, 0 within float noise, 1; NaN for NaN."""
    return 0.0 if abs(difference) <= NOISE else float(np.sign(difference))


def _check_pairs(measure: str, values: Mapping[str, FloatArray], baseline: str) -> None:
    """Refuse values that cannot be paired or are not finite."""
    shape = values[baseline].shape
    for name, array in values.items():
        where = f"compare {measure}: system {name!r}"
        if array.shape != shape or array.ndim != 1:
            raise ConfigError(
                f"{where}: values of shape {array.shape} cannot be paired with shape {shape} of "
                f"the baseline {baseline!r}; both need one value per query, for the same queries"
            )
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            raise DataError(f"{where}, query index {wrong[0]}: {array[wrong[0]]} is not finite")


def paired_difference(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Candidate − baseline, (Q,), float noise set to 0, as the test looks at signs."""
    difference = candidate - baseline
    return np.where(np.abs(difference) <= NOISE, 0.0, difference)


def _p_values(
    values: Mapping[str, FloatArray],
    differences: Mapping[str, FloatArray],
    groups: IntArray | None,
    primary: bool,
    resamples: int | None,
    seed: int,
) -> dict[str, tuple[float, float | None]]:
    """Plain and adjusted p of every candidate that differs from the baseline at all."""
    first: dict[bytes, int] = {}  # one index for each set of identical values
    indices = {
        name: first.setdefault((values[name] + 0.0).tobytes(), len(first))  # + 0.0: −0 equals 0
        for name, difference in differences.items()
        if difference.any()
    }
    least = default_resamples(len(first))
    if resamples is not None and resamples < least:
        raise ConfigError(
            f"resamples: {len(first)} comparison(s) need at least {least:,} (10,000, and 200 "
            f"each), not {resamples:,}"
        )
    if not indices:
        return {}
    rows = {i: differences[name] for name, i in indices.items()}
    family = np.stack([rows[i] for i in range(len(first))])
    p = randomization_p_values(family, groups, resamples=resamples or least, seed=seed)
    adjusted = adjust_holm(p).tolist() if primary else [None] * len(p)
    return {name: (float(p[i]), adjusted[i]) for name, i in indices.items()}
