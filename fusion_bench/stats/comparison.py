"""Systems against a baseline, query by query: difference, interval, p, wins, ties, losses.

Higher is better, as for every measure of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.corrections import adjust_holm
from fusion_bench.stats.intervals import IntervalMethod, estimate_mean, exact_mean
from fusion_bench.stats.power import minimum_detectable_difference
from fusion_bench.stats.randomization_tests import default_resamples, randomization_p_values

__all__ = ["Answer", "Comparison", "compare_with_baseline", "decide_answer"]

Answer: TypeAlias = Literal["better", "worse", "no difference shown", "identical", "no verdict"]

#: Differences up to this are 0. A measure's value is a sum of a few dozen terms in [0, 1]: two ways
#: of adding the same terms differ by less, two rankings of different worth by far more.
NOISE = 1e-12


@dataclass(frozen=True)
class Comparison:
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
        p: Two-sided, from the paired randomisation test; unadjusted.
        p_holm: Adjusted over all compared systems; None for a measure other than the primary one,
            which is shown unadjusted and marked.
        wins: Queries on which the candidate is better by more than float noise.
        ties: Queries on which neither is.
        losses: Queries on which the baseline is better.
        detectable: Smallest difference that would have been found with power .8; None = n/a.
        queries: Q.
        groups: G, what was flipped and resampled; Q where none are declared.
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


def compare_with_baseline(
    measure: str,
    values: Mapping[str, FloatArray],
    baseline: str,
    *,
    groups: IntArray | None = None,
    primary: bool,
    seed: int = 0,
    alpha: float = 0.05,
    interval: IntervalMethod = "t",
    resamples: int | None = None,
) -> tuple[Comparison, ...]:
    """Compare every other system with the baseline.

    The family of Holm's correction is all compared systems. Systems with identical values are one
    of it and share its p. A system that differs from the baseline nowhere by more than float noise
    is no comparison: its p is 1, and it makes nobody else's larger.

    Args:
        measure: Name of the measure, for the records and for messages.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare with.
        groups: Shape (Q,), integer codes of the groups that a dataset declares.
        primary: Whether this is the measure that decides; only it gets adjusted p-values.
        seed: Of the randomisation test and of the bootstrap.
        alpha: 1 − coverage of the interval, and the level of the smallest detectable difference.
        interval: ``t`` or ``bootstrap``.
        resamples: B of the randomisation test; max(10,000, 200 × family) by default and at least.

    Returns:
        One comparison per system but the baseline, in the order of ``values``.
    """
    if baseline not in values:
        raise UnknownNameError("baseline", baseline, values, where=f"compare {measure}")
    _check_pairs(measure, values, baseline)
    differences = {
        name: _paired_difference(values[name], values[baseline])
        for name in values
        if name != baseline
    }
    tested = _p_values(values, differences, groups, primary, resamples, seed)
    comparisons = []
    for name, difference in differences.items():
        found = estimate_mean(difference, groups, alpha=alpha, interval=interval, seed=seed)
        p, p_holm = tested.get(name, (1.0, 1.0 if primary else None))
        wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
        comparisons.append(
            Comparison(
                measure=measure,
                baseline=baseline,
                candidate=name,
                baseline_mean=exact_mean(values[baseline]),
                candidate_mean=exact_mean(values[name]),
                difference=found.mean,
                low=found.low,
                high=found.high,
                p=p,
                p_holm=p_holm,
                wins=wins,
                ties=found.queries - wins - losses,
                losses=losses,
                min_detectable_difference=minimum_detectable_difference(found, alpha=alpha),
                queries=found.queries,
                groups=found.groups,
            )
        )
    return tuple(comparisons)


def decide_answer(
    comparison: Comparison, judged_only_difference: float | None, *, alpha: float = 0.05
) -> Answer:
    """What a comparison allows to be said.

    Args:
        comparison: Of the primary measure for a verdict that holds over all systems; otherwise
            the unadjusted p decides.
        judged_only_difference: The same mean difference over judged documents only; None = not
            measured; NaN = could not be measured, and then nothing is claimed.
        alpha: Level of the test.

    Returns:
        ``identical``: no query differs. ``no verdict``: over judged documents only the difference
        has the opposite sign, so unjudged documents would decide. ``better`` or ``worse``: p is
        below ``alpha``. Otherwise ``no difference shown``, which is not "no difference".
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
    """Refuse what cannot be paired or is no number: a NaN must never become a result."""
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


def _paired_difference(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Candidate − baseline, (Q,), float noise set to 0: the test must not take it for a sign."""
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
    first: dict[bytes, int] = {}  # the family: one place for each set of identical values
    places = {
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
    if not places:
        return {}
    rows = {place: differences[name] for name, place in places.items()}
    family = np.stack([rows[place] for place in range(len(first))])
    p = randomization_p_values(family, groups, resamples=resamples or least, seed=seed)
    adjusted = adjust_holm(p).tolist() if primary else [None] * len(p)
    return {name: (float(p[place]), adjusted[place]) for name, place in places.items()}
