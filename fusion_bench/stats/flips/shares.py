"""Statistics of flips as shares t² / (1 + t²), and what they say of p and of critical values."""

from __future__ import annotations

import math

import numpy as np

from fusion_bench.data.ordering import FloatArray

#: Shares up to this far apart are equal, and so is a share to 1.
NOISE = 1e-12


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
