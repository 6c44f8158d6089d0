"""The decisions of the gate, as pure functions of numbers.

Every comparison is written so that NaN blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.stats.comparison import NOISE

CheckStatus: TypeAlias = Literal["pass", "regressed", "inconclusive"]

#: Level of the test and of the lower bound.
ALPHA = 0.05
#: With fewer changed queries the mean decides, for these queries only.
MIN_CHANGED = 10
#: Exit codes.
PASSED, REGRESSED, REFUSED, INCONCLUSIVE = 0, 1, 2, 3


def decide_status(
    *,
    mean: float,
    lower_bound: float,
    p_holm: float,
    changed: int,
    max_drop: float,
    alpha: float = ALPHA,
) -> CheckStatus:
    """Decide the status of one check.

    ``regressed``: the mean is below −m, and the one-sided test of d ≥ 0 is rejected after Holm.
    ``pass``: the lower bound is above −m. With fewer than 10 changed queries there is no
    test, and the mean decides. Otherwise ``inconclusive``.

    Args:
        mean: Of candidate − baseline over the queries of the check.
        lower_bound: One-sided 1 − ``alpha`` bound of the mean; NaN = no spread is known.
        p_holm: Of the one-sided test, adjusted over all checks.
        changed: Queries whose value differs.
        max_drop: m ≥ 0.
        alpha: Level.
    """
    fell = mean < -max_drop - NOISE
    if changed < MIN_CHANGED:
        held = mean >= -max_drop - NOISE
        return "pass" if held else "regressed" if fell else "inconclusive"
    if fell and p_holm < alpha:
        return "regressed"
    if -max_drop < lower_bound <= mean and p_holm >= 0:
        return "pass"
    return "inconclusive"


def decide_exit_code(
    statuses: Collection[CheckStatus],
    *,
    has_violations: bool,
    has_errors: bool,
    on_inconclusive: OnInconclusive,
) -> int:
    """Decide the exit code of the gate.

    Args:
        statuses: The statuses of all checks without an error.
        has_violations: A guard or a golden query is violated.
        has_errors: Something could not be checked: NaN, an empty slice, a missing golden query.
            No policy accepts that.
        on_inconclusive: What the policy does with an inconclusive check.

    Returns:
        0 = passed; 1 = a regression; 2 = not checked; 3 = inconclusive, and the policy blocks.
    """
    if has_violations or "regressed" in statuses:
        return REGRESSED
    if has_errors or not statuses:
        return REFUSED
    if "inconclusive" in statuses and on_inconclusive == "fail":
        return INCONCLUSIVE
    return PASSED
