"""The level of each look at the same held-out queries, planned or not.

A plan fixes the numbers and the greatest number of held-out queries N. A look at n queries has the
information fraction t = n/N, and may have spent α*(t) in all by then (Lan & DeMets 1983,
"Discrete sequential boundaries for clinical trials", Biometrika 70). Few queries spend nearly
nothing, so that the last look is tested at nearly the level of a single one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError

#: Shares of α: of the first look, and of all later ones together.
FIRST_SHARE, LATER_SHARE = 0.4, 0.1
#: Power to which sample sizes and the loss of power refer.
POWER = 0.8

_NORMAL = NormalDist()


def look_level(number: int, alpha: float = 0.05) -> float:
    """The one-sided level of look ``number``, counted from 1.

    With α = .05 it is .02 for the first look and .005·2^−(j−1) for look j > 1. All levels together
    are α/2 = .025. By the union bound, the chance of any false "better" in a series of looks is at
    most α/2, whatever the looks share and however the numbers of each were chosen.

    Args:
        number: j.
        alpha: Two-sided level of a single look.
    """
    if number == 1:
        return FIRST_SHARE * alpha
    return LATER_SHARE * alpha * 0.5 ** (number - 1)


def power_at_level(level: float, *, single: float = 0.025) -> float:
    """Power of a test at ``level`` for a difference that a test at ``single`` finds with power .8.

    Normal approximation: Φ(z_{1−single} + z_{.8} − z_{1−level}).

    Args:
        level: One-sided.
        single: One-sided level without counted looks.
    """
    if level <= 0:
        return 0.0
    reach = _NORMAL.inv_cdf(1 - single) + _NORMAL.inv_cdf(POWER)
    return _NORMAL.cdf(reach + _NORMAL.inv_cdf(level))


def query_factor(level: float, *, single: float = 0.025) -> float:
    """How many times the queries a test at ``level`` needs, for power .8 at the same difference.

    Normal approximation: ((z_{1−level} + z_{.8}) / (z_{1−single} + z_{.8}))².

    Args:
        level: One-sided, above 0.
        single: One-sided level without counted looks.
    """
    power = _NORMAL.inv_cdf(POWER)
    return float(((power - _NORMAL.inv_cdf(level)) / (power - _NORMAL.inv_cdf(single))) ** 2)


#: A greater boundary is not told from this one: its level is 6e-16.
GREATEST_Z = 8.0
#: Points of the integration grid: at least, and at most.
FEWEST_POINTS, MOST_POINTS = 401, 3201
#: Points in a standard deviation of the increment.
POINTS_PER_STEP = 4
#: Of a boundary, when the bisection stops.
BOUNDARY_ERROR = 1e-10


def spent_level(fraction: float, level: float = 0.025) -> float:
    """α*(t) = 2 − 2Φ(z_{1−α/2}/√t): what may be spent up to information fraction t.

    Args:
        fraction: t, above 0; 1 and more spends all.
        level: α, one-sided.
    """
    if fraction >= 1:
        return level
    return 2 * _NORMAL.cdf(_NORMAL.inv_cdf(level / 2) / math.sqrt(fraction))


def planned_levels(fractions: Sequence[float], level: float = 0.025) -> tuple[float, ...]:
    """The one-sided level of each planned look.

    The boundary c_k of the k-th z statistic solves P(Z_1 < c_1, …, Z_{k−1} < c_{k−1}, Z_k ≥ c_k) =
    α*(t_k) − α*(t_{k−1}); the density of the surviving sums is integrated from look to look
    (Armitage, McPherson & Rowe 1969; Jennison & Turnbull 2000, chapter 19), by Simpson's rule.

    Args:
        fractions: t of each look, above 0, increasing; what exceeds 1 counts as 1.
        level: α of the whole plan, one-sided.

    Returns:
        1 − Φ(c_k) of each look.

    Raises:
        ConfigError: The fractions do not increase, or a look follows the one at 1.
    """
    times = [min(fraction, 1.0) for fraction in fractions]
    for before, after in zip([0.0, *times], times, strict=False):
        if not after > before:
            raise ConfigError(
                f"looks: information fractions must increase up to 1, but {after:.4g} follows "
                f"{before:.4g}"
            )
    levels: list[float] = []
    survivors, spent = _START, 0.0
    for time in times:
        target = spent_level(time, level)
        boundary = survivors.solve_boundary(time, target - spent)
        levels.append(_NORMAL.cdf(-boundary))
        survivors, spent = survivors.advance(time, boundary), target
    return tuple(levels)


@dataclass(frozen=True, eq=False)
class _Survivors:
    """The sums B(t) = Z·√t that have not reached a boundary yet, as weighted points.

    Attributes:
        time: t.
        points: Shape (P,): values of B(t).
        weights: Shape (P,): density times the weight of the integration rule.
    """

    time: float
    points: FloatArray
    weights: FloatArray

    def crossing(self, time: float, boundary: float) -> float:
        """Chance to survive so far and to have Z ≥ ``boundary`` at ``time``."""
        from fusion_bench.util.special_functions import special  # imports slowly

        step = math.sqrt(time - self.time)
        distance = (self.points - boundary * math.sqrt(time)) / step
        return float(self.weights @ special.ndtr(distance))

    def solve_boundary(self, time: float, spend: float) -> float:
        """The boundary at ``time`` that is reached with chance ``spend``, by bisection."""
        low, high = -GREATEST_Z, GREATEST_Z
        while high - low > BOUNDARY_ERROR:
            middle = (low + high) / 2
            low, high = (middle, high) if self.crossing(time, middle) > spend else (low, middle)
        return high

    def advance(self, time: float, boundary: float) -> _Survivors:
        """Those that stay below ``boundary`` at ``time``."""
        step = math.sqrt(time - self.time)
        low, high = -GREATEST_Z * math.sqrt(time), boundary * math.sqrt(time)
        count = int(POINTS_PER_STEP * (high - low) / step)
        count = min(max(count, FEWEST_POINTS), MOST_POINTS) | 1  # Simpson's rule: odd
        points = np.linspace(low, high, count)
        rule = np.full(count, 2.0)
        rule[1::2], rule[0], rule[-1] = 4.0, 1.0, 1.0
        distance = (points[:, None] - self.points) / step
        density = np.exp(-0.5 * distance**2) @ self.weights / (step * math.sqrt(2 * math.pi))
        return _Survivors(time, points, density * rule * (high - low) / (count - 1) / 3)


_START = _Survivors(0.0, np.zeros(1), np.ones(1))
