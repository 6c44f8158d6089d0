"""Random values that the tests of this folder share."""

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from fusion_bench.data.ordering import FloatArray, IntArray

GRADES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1 / 3, 2 / 3, -0.1, -0.3, -1 / 3, -1.0])


def normal(*shape: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def clustered(rows: int, groups: int, size: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Null data whose queries say nearly the same within a group, shape (rows, groups·size)."""
    shared = np.repeat(normal(rows, groups, seed=seed), size, axis=1)
    noise = 0.3 * normal(rows, groups * size, seed=seed + 1)
    return shared + noise, np.repeat(np.arange(groups), size)


def binomial_bounds(hits: int, trials: int) -> tuple[float, float]:
    """Clopper–Pearson, 99.9 %."""
    bounds = stats.binomtest(hits, trials).proportion_ci(0.999, method="exact")
    return float(bounds.low), float(bounds.high)
