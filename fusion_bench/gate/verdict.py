"""The decision on one check, as a pure function of numbers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusion_bench.stats.comparison import NOISE

CheckStatus: TypeAlias = Literal["pass", "regressed", "inconclusive"]

#: Level of the test and of the lower bound.
ALPHA = 0.05
#: With fewer changed queries the mean decides, for these queries only.
MIN_CHANGED = 10


def decide_status(
    *, mean: float, lower_bound: float, p_holm: float, changed: int, max_drop: float
) -> CheckStatus:
    """Decide the status of one check.

    ``regressed``: the mean is below −m, and the one-sided test of d ≥ 0 is rejected after Holm.
    ``pass``: the lower bound is above −m. With fewer than 10 changed queries there is no
    test, and the mean decides. Otherwise ``inconclusive``. NaN blocks in every comparison.

    Args:
        mean: Of candidate − baseline over the queries of the check.
        lower_bound: One-sided 95 % bound of the mean; NaN = no spread is known.
        p_holm: Of the one-sided test, adjusted over all checks.
        changed: Queries whose value differs.
        max_drop: m ≥ 0.
    """
    fell = mean < -max_drop - NOISE
    if changed < MIN_CHANGED:
        held = mean >= -max_drop - NOISE
        return "pass" if held else "regressed" if fell else "inconclusive"
    if fell and p_holm < ALPHA:
        return "regressed"
    if -max_drop < lower_bound <= mean and p_holm >= 0:
        return "pass"
    return "inconclusive"
