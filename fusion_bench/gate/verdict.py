"""The decisions of the gate: pure functions of numbers, and nothing else.

Every comparison is written so that NaN falls on the side that blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.stats.comparison import NOISE

__all__ = [
    "ALPHA",
    "FEW",
    "INCONCLUSIVE",
    "PASSED",
    "REFUSED",
    "REGRESSED",
    "Verdict",
    "decide",
    "exit_code",
]

Verdict: TypeAlias = Literal["pass", "regressed", "inconclusive"]

#: Level of the test and of the lower bound.
ALPHA = 0.05
#: Fewer changed queries than this are judged by their mean, "on these queries only".
FEW = 10
#: Exit codes.
PASSED, REGRESSED, REFUSED, INCONCLUSIVE = 0, 1, 2, 3


def decide(
    *, mean: float, low: float, p_holm: float, changed: int, max_drop: float, alpha: float = ALPHA
) -> Verdict:
    """The verdict of one check.

    ``regressed``: the mean is below −m, and the one-sided test of d ≥ 0 is rejected after Holm.
    ``pass``: the lower bound is above −m. With fewer than 10 changed queries neither says
    anything, and the mean itself decides. Otherwise ``inconclusive``.

    Args:
        mean: Of candidate − baseline over the queries of the check.
        low: One-sided 1 − ``alpha`` lower bound of the mean; NaN = nothing tells the spread.
        p_holm: Of the one-sided test, adjusted over all checks.
        changed: Queries whose value differs at all.
        max_drop: m ≥ 0.
        alpha: Level.
    """
    fell = mean < -max_drop - NOISE
    if changed < FEW:
        held = mean >= -max_drop - NOISE
        return "pass" if held else "regressed" if fell else "inconclusive"
    if fell and p_holm < alpha:
        return "regressed"
    if -max_drop < low <= mean and p_holm >= 0:
        return "pass"
    return "inconclusive"


def exit_code(
    verdicts: Collection[Verdict],
    *,
    broken: bool,
    faults: bool,
    on_inconclusive: OnInconclusive,
) -> int:
    """What the whole gate says.

    Args:
        verdicts: Of all checks that could be made.
        broken: A guard or a golden query does not hold.
        faults: Something could not be checked: NaN, an empty slice, a golden query that is not
            there. No policy lets that through.
        on_inconclusive: The policy.

    Returns:
        1 = a regression; 2 = could not do it; 3 = inconclusive and the policy blocks; 0 = passed.
    """
    if broken or "regressed" in verdicts:
        return REGRESSED
    if faults or not verdicts:
        return REFUSED
    if "inconclusive" in verdicts and on_inconclusive == "fail":
        return INCONCLUSIVE
    return PASSED
