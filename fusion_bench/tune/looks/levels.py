"""The one-sided level of each look at the same held-out queries, and what a look costs."""

from __future__ import annotations

from statistics import NormalDist

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
