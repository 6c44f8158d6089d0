"""Kendall's τ against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fusion_bench.errors import ConfigError
from fusion_bench.stats.agreement import kendall_tau


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_that_of_scipy(seed: int) -> None:
    first, second = np.random.default_rng(seed).integers(4, size=(2, 9)).astype(float)

    assert kendall_tau(first, second).tau == pytest.approx(
        stats.kendalltau(first, second).statistic
    )


def test_pairs_are_counted() -> None:
    found = kendall_tau(np.array([1.0, 2, 3, 3]), np.array([1.0, 3, 2, 2]))

    assert (found.agreeing, found.opposite, found.tied) == (3, 2, 1)


def test_order_of_ties_alone_agrees_with_nothing() -> None:
    assert kendall_tau(np.zeros(3), np.arange(3.0)).tau is None


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ConfigError, match="one length"):
        kendall_tau(np.zeros(3), np.zeros(4))
