"""What is printed beside a check: how often the rule passes and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.power.label_swaps import RuleLevels, swap_labels
from fusion_bench.gate.power.resampling import resample_moments
from fusion_bench.gate.verdict import ALPHA
from fusion_bench.stats.cluster_variance import bell_mccaffrey_freedom
from fusion_bench.stats.intervals import POWER, t_quantile
from fusion_bench.stats.resampling import group_codes


@dataclass(frozen=True, eq=False)
class RulePower:
    """How often the rule passes and alarms on one check.

    Attributes:
        min_detectable_drop: Smallest true drop that raises an alarm with 80 % power; None where
            no value changed or no spread is known, as for every rate below.
        pass_rate: Probability of ``pass`` where there is no true difference.
        small_pass_rate: Probability of ``pass on these queries`` there.
        alarm_rate: Probability of ``fell`` or ``regressed`` there.
        false_pass_rate: Probability of either pass at a true drop of exactly m.
        rejection_drops: Shape (B,), ascending: by resample, the true drop beyond which there is an
            alarm; its empirical distribution is the power curve. Empty where no value changed; all
            infinite with too few groups for the test to reject.
    """

    min_detectable_drop: float | None = None
    pass_rate: float | None = None
    small_pass_rate: float | None = None
    alarm_rate: float | None = None
    false_pass_rate: float | None = None
    rejection_drops: FloatArray = field(default_factory=lambda: np.empty(0))

    def power_at(self, drop: float) -> float:
        """Power at a true drop, between 0 and 1: no number of resamples shows either."""
        return float(
            (np.searchsorted(self.rejection_drops, drop) + 0.5) / (len(self.rejection_drops) + 1)
        )


def compute_power(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: Sequence[float],
    *,
    level: float,
    bound_level: float = ALPHA,
    seed: int = 0,
) -> list[RulePower]:
    """Power of the rule on C checks that share their queries.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        level: Level of the sign-flip test at the first step of Holm: α / number of checks.
        bound_level: Level of both lower bounds.
        seed: Seed of the draws.
    """
    codes, count = group_codes(groups, differences.shape[1])
    changed = (differences != 0).any(axis=1)
    if count < 2:
        return [RulePower() for _ in max_drops]
    freedom = bell_mccaffrey_freedom(np.bincount(codes))
    levels = RuleLevels(bound_level, level, t_quantile(freedom, 1 - bound_level))
    swaps = swap_labels(differences, groups, list(max_drops), levels, seed=seed)
    resampled = resample_moments(differences, groups, seed)
    powers = []
    for is_changed, max_drop, rates, moments in zip(
        changed, max_drops, swaps, resampled, strict=True
    ):
        if not is_changed:
            powers.append(RulePower())
            continue
        drops = np.maximum(max_drop + moments.mean_shift, moments.find_rejection_drops(level))
        drops.sort()
        detectable = float(np.quantile(drops, POWER, method="higher"))
        passes = moments.mean_shift > levels.quantile * moments.standard_error
        powers.append(
            RulePower(
                min_detectable_drop=detectable if np.isfinite(detectable) else None,
                pass_rate=rates.passes,
                small_pass_rate=rates.small_passes,
                alarm_rate=rates.alarms,
                false_pass_rate=float(passes.mean()),
                rejection_drops=drops,
            )
        )
    return powers
