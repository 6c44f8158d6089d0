"""The gain that tuned parameters may be expected to keep: the shipped one, shrunken."""

from __future__ import annotations

import math
from typing import Final

from fusion_bench.report.tuning_records.trials import Gain

#: Steps of bisection, after which no digit changes.
STEPS: Final = 60


def shrink_gain(gain: Gain) -> float | None:
    """The true gain that makes a gain likeliest, given that it passed its test.

    A gain is reported after it passed a test, so it is too high on average: where the power is
    low, about twice the true one (Gelman & Carlin 2014, "Beyond power calculations: assessing
    type S and type M errors"). With the gain d, its standard error e and the test's critical value
    c, the conditional likelihood of the true gain g is that of a normal d of mean g and standard
    deviation e, cut off below c·e:

        φ((d − g)/e) ÷ Φ(g/e − c),   the greatest where d is the mean of what passes.

    Source: Zhong & Prentice 2008, "Bias-reduced estimators and confidence intervals for odds
    ratios in genome-wide association studies", Biostatistics 9(4).

    Args:
        gain: That passed: above 0, and its interval, mean ± c standard errors, is not below 0.

    Returns:
        No less than the lower end of the interval, and no more than the gain; None where no
        interval is known.
    """
    if gain.low is None or gain.sd is None:
        return None
    error = gain.sd / math.sqrt(gain.queries)
    if not error > 0:  # written so that NaN ends here too
        return gain.difference
    margin = max(gain.low, 0.0) / error
    # g/e − c: the mean of what passes grows with it.
    low, high = gain.low / error - gain.difference / error, margin
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if middle + _hazard(middle) > margin else (middle, high)
    return min(max(gain.difference - _hazard(low) * error, gain.low), gain.difference)


def _hazard(x: float) -> float:
    """φ(x) ÷ Φ(x): by how much the mean of a normal variable above −x exceeds that of all."""
    if x < -30:  # both are 0 as floats further out
        return -x
    below = math.erfc(-x / math.sqrt(2)) / 2
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / below
