"""The gate's rule written a second time, as plainly as it can be: loops, and no shared function.

The self-test compares what the whole command answers with this. The formulas and their sources
stand in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

#: Level of every test and of both bounds.
LEVEL = 0.05
#: All sign flips are listed up to this many changed groups.
MOST_LISTED = 16
#: Bets of the betting bound, as shares of the greatest.
BETS = (1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05, 0.025)
#: Sums closer than this are equal.
TINY = 1e-12


@dataclass(frozen=True)
class SlowCheck:
    """One check of a family; groups must have one size.

    Attributes:
        differences: (Q,): candidate − baseline, none below −1.
        max_drop: m.
        groups: (Q,): the group of each query; empty = every query alone.
    """

    differences: Sequence[float]
    max_drop: float
    groups: Sequence[str] = ()

    @property
    def mean(self) -> float:
        """Of the differences."""
        return math.fsum(self.differences) / len(self.differences)

    @property
    def group_means(self) -> list[float]:
        """Mean difference of each group.

        Raises:
            ValueError: The groups differ in size.
        """
        names = self.groups or [str(i) for i in range(len(self.differences))]
        members: dict[str, list[float]] = {}
        for name, value in zip(names, self.differences, strict=True):
            members.setdefault(name, []).append(value)
        if len({len(values) for values in members.values()}) > 1:
            raise ValueError("groups of unequal size")
        return [math.fsum(values) / len(values) for values in members.values()]

    @property
    def p_fell(self) -> float:
        """Share of the sign flips whose sum is at most the observed one.

        1 where the mean did not fall below −m, because then the test decides nothing.
        """
        changed = [value for value in self.group_means if value]
        if self.mean >= -self.max_drop:
            return 1.0
        if max(changed) < 0:  # every other flip has a greater sum
            return 0.5 ** len(changed)
        if len(changed) > MOST_LISTED:
            raise ValueError(f"at most {MOST_LISTED} changed groups can be listed")
        observed = math.fsum(changed)
        sums = [
            math.fsum(value * sign for value, sign in zip(changed, signs, strict=True))
            for signs in product((1, -1), repeat=len(changed))
        ]
        return sum(total <= observed + TINY for total in sums) / len(sums)

    @property
    def standard_error(self) -> float:
        """Of the mean of equally large groups."""
        means = self.group_means
        squares = math.fsum((value - self.mean) ** 2 for value in means)
        return math.sqrt(squares / (len(means) - 1) / len(means))

    @property
    def p_regressed(self) -> float:
        """One-sided t test of "the mean is at least −m"."""
        from scipy.special import stdtr  # late, as it is slow

        gap = self.mean + self.max_drop
        if not self.standard_error:
            return 0.0 if gap < 0 else 1.0
        return float(stdtr(len(self.group_means) - 1, gap / self.standard_error))

    @property
    def t_bound(self) -> float:
        """One-sided lower bound of the mean by Student's t."""
        from scipy.special import stdtrit  # late, as it is slow

        quantile = float(stdtrit(len(self.group_means) - 1, 1 - LEVEL))
        return self.mean - quantile * self.standard_error

    @property
    def is_bet_won(self) -> bool:
        """Whether the betting bound is above −m: the mean capital against −m reaches 1/α."""
        capitals = []
        for share in BETS:
            bet = share / (1 - self.max_drop)
            capitals.append(math.prod(1 + bet * (d + self.max_drop) for d in self.group_means))
        return math.fsum(capitals) / len(capitals) >= 1 / LEVEL

    def decide(self, p_fell: float, p_regressed: float) -> str:
        """The status, from p-values adjusted over the family."""
        if not any(self.differences):
            return "unchanged"
        if self.mean < -self.max_drop - TINY and p_fell <= LEVEL:
            return "regressed" if p_regressed <= LEVEL else "fell"
        if self.t_bound > -self.max_drop:
            return "pass" if self.is_bet_won else "pass on these queries"
        return "inconclusive"


def decide_family(checks: Sequence[SlowCheck]) -> list[str]:
    """The status of every check of one run."""
    fell = adjust_slowly([check.p_fell for check in checks])
    regressed = adjust_slowly([check.p_regressed for check in checks])
    return [check.decide(*p) for check, *p in zip(checks, fell, regressed, strict=True)]


def adjust_slowly(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values."""
    adjusted = []
    for p in p_values:
        smaller = sorted(other for other in p_values if other <= p)
        steps = ((len(p_values) - i) * value for i, value in enumerate(smaller))
        adjusted.append(min(1.0, max(steps)))
    return adjusted
