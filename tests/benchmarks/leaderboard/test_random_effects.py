"""One effect over collections, against the definitions written out."""

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.leaderboard.random_effects import join_clusters, pool_effects

EFFECTS = [0.03, -0.01, 0.05, 0.002, 0.02]
VARIANCES = [0.0001, 0.0004, 0.0002, 0.00005, 0.0009]


def test_the_heterogeneity_solves_the_equation_of_paule_and_mandel() -> None:
    pooled = pool_effects(EFFECTS, VARIANCES)
    weights = [1 / (v + pooled.heterogeneity) for v in VARIANCES]
    mean = sum(w * y for w, y in zip(weights, EFFECTS, strict=True)) / sum(weights)
    squares = sum(w * (y - mean) ** 2 for w, y in zip(weights, EFFECTS, strict=True))
    assert pooled.heterogeneity > 0
    assert squares == pytest.approx(4, abs=1e-6)
    assert pooled.mean == pytest.approx(mean, abs=1e-12)
    error = (max(squares / 4, 1) / sum(weights)) ** 0.5
    quantile = student.ppf(0.975, 4)
    assert pooled.high == pytest.approx(mean + quantile * error, abs=1e-9)
    beyond = quantile * (error**2 + pooled.heterogeneity) ** 0.5
    assert pooled.new_low == pytest.approx(mean - beyond, abs=1e-9)


def test_equal_variances_have_a_closed_form() -> None:
    pooled = pool_effects(EFFECTS, [0.0001] * 5)
    assert pooled.heterogeneity == pytest.approx(np.var(EFFECTS, ddof=1) - 0.0001)
    assert pooled.mean == pytest.approx(np.mean(EFFECTS))


def test_equal_effects_do_not_narrow_the_interval() -> None:
    pooled = pool_effects([0.01] * 4, [0.0004] * 4)
    assert pooled.heterogeneity == 0
    width = student.ppf(0.975, 3) * 0.01
    assert (pooled.low, pooled.high) == pytest.approx((0.01 - width, 0.01 + width))


def test_one_effect_has_no_interval_and_a_variance_of_zero_is_refused() -> None:
    assert pool_effects([0.1], [0.01]).low is None
    with pytest.raises(ValueError, match="variance"):
        pool_effects([0.1, 0.2], [0.01, 0.0])
    with pytest.raises(ValueError, match="effect"):
        pool_effects([], [])


def test_a_cluster_is_one_effect_of_independent_parts() -> None:
    effects = {"a": (0.1, 0.04), "b": (0.3, 0.04), "c": (0.5, 0.01)}
    joined = join_clusters(effects, {"a": "ab", "b": "ab"})
    assert joined["ab"] == pytest.approx((0.2, 0.02))
    assert joined["c"] == (0.5, 0.01)
