"""Statistics of flips as shares t² / (1 + t²), and what they say of p and of critical values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray

#: Shares up to this far apart are equal, and so is a share to 1.
NOISE = 1e-12
#: A decision is clear where the share of draws is so many standard errors from α.
CLEAR_ERRORS = 4.0


@dataclass(frozen=True)
class FlippedShares:
    """The largest share t² / (1 + t²) of a family after each flip.

    Flips of the differences are the exact test where no system differs from its baseline. Where
    some differ, these flips hold their differences too and c shrinks; those of the residuals
    (difference − mean) then stand for the errors of the means. The stricter of both counts.

    Attributes:
        differences: Shape (N,): the observed value and one of each draw, or of every flip.
        residuals: Shape (B + 1,): the observed value and one of each draw.
        is_exact: ``differences`` has every flip that there is.
    """

    differences: FloatArray
    residuals: FloatArray
    is_exact: bool

    def reach(self, share: float) -> float:
        """The part of the values that reach one."""
        return max(share_reaching(self.differences, share), share_reaching(self.residuals, share))

    def critical(self, alpha: float) -> float:
        """The value that is reached by α of the values."""
        return max(critical_share(values, alpha) for values in (self.differences, self.residuals))

    def is_clear(self, share: float, alpha: float) -> bool:
        """Whether more draws could hardly move a value across the critical one."""
        reached, sampled = (share_reaching(v, share) for v in (self.differences, self.residuals))
        if not self.is_exact:
            sampled = max(reached, sampled)
        elif reached > alpha:
            return True
        error = math.sqrt(alpha * (1 - alpha) / len(self.residuals))
        return abs(sampled - alpha) >= CLEAR_ERRORS * error


def to_share(t: float) -> float:
    """t² / (1 + t²); 1 for an infinite t."""
    return 1 - 1 / (1 + t**2)


def to_t(share: float) -> float:
    """|t| of t² / (1 + t²)."""
    return math.inf if share > 1 - NOISE else math.sqrt(share / (1 - share))


def share_reaching(values: FloatArray, share: float) -> float:
    """The part of the N values that reach one."""
    return int((values >= share - NOISE).sum()) / len(values)


def critical_share(values: FloatArray, alpha: float) -> float:
    """The ⌊α·N⌋-th largest value; 1, an infinite t, where that is none."""
    place = math.floor(alpha * len(values) + NOISE)
    return 1.0 if place < 1 else float(np.partition(values, -place)[-place])
