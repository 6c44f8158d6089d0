"""The bound that assumes no more than the range, against a slow version of itself."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.stats.intervals import BETS, betting_bound

differences = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), min_size=1, max_size=9)


def slow_capital(values: list[float], reach: float, mean: float) -> float:
    """The mean over the bets of the product of 1 + λ(v − μ)."""
    bets = [share / (mean + reach) for share in BETS.tolist()]
    return math.fsum(float(np.prod(1 + bet * (np.array(values) - mean))) for bet in bets) / len(
        bets
    )


def slow_bound(values: list[float], reach: float, alpha: float) -> float:
    """The smallest of many μ that leaves the capital below 1/α."""
    grid = np.linspace(-reach, max(values), 4_001)[1:].tolist()
    return float(next(mean for mean in grid if slow_capital(values, reach, mean) < 1 / alpha))


@given(differences, st.sampled_from([0.05, 0.005]))
@settings(max_examples=15, deadline=None)
def test_the_bound_is_the_smallest_mean_that_leaves_the_capital_small(
    values: list[float], alpha: float
) -> None:
    bound = betting_bound(np.array(values), alpha=alpha)
    assert bound <= np.mean(values)
    if max(values) > -1:
        assert bound == pytest.approx(slow_bound(values, 1.0, alpha), abs=1e-3)


def test_groups_are_units_with_the_range_that_follows() -> None:
    groups = np.array([0, 0, 0, 1, 1, 2])
    values = np.array([-0.5, 0.0, 0.1, 0.2, 0.2, -0.1])
    units = [-0.4 / 2, 0.4 / 2, -0.1 / 2]  # sums ÷ mean size 2; the largest group has 3
    bound = betting_bound(values, groups, alpha=0.5)
    assert bound == pytest.approx(slow_bound(units, 1.5, 0.5), abs=1e-3)


def test_the_order_of_queries_is_irrelevant() -> None:
    values = np.random.default_rng(3).uniform(-1, 1, 50)
    bounds = {round(betting_bound(part, alpha=0.05), 12) for part in (values, values[::-1])}
    assert len(bounds) == 1


@pytest.mark.parametrize(("m", "fewest"), [(0.005, 598), (0.01, 299), (0.02, 149)])
def test_no_sample_of_so_few_queries_shows_a_drop_below_m(m: float, fewest: int) -> None:
    # With losses of 1 on a share m, fewer queries hold none of them in over 5 % of the samples.
    assert (1 - m) ** (fewest - 1) > 0.05 >= (1 - m) ** fewest
    assert betting_bound(np.zeros(fewest - 1), alpha=0.05) <= -m
    assert betting_bound(np.zeros(2 * fewest), alpha=0.05) > -m


def test_a_true_drop_is_passed_as_rarely_as_promised() -> None:
    """Every sample of two outcomes, by its exact probability: the mean is −.25 exactly."""
    size, share, wrong = 8, 0.25, 0.0
    for losses in range(size + 1):
        values = np.array([-1.0] * losses + [0.0] * (size - losses))
        weight = math.comb(size, losses) * share**losses * (1 - share) ** (size - losses)
        wrong += weight * (betting_bound(values, alpha=0.2) > -share)
    assert wrong <= 0.2


def test_a_loss_of_more_than_1_has_no_bound() -> None:
    assert math.isnan(betting_bound(np.array([0.5, -1.5]), alpha=0.05))


def test_the_bound_never_exceeds_the_t_bound_of_the_extremes() -> None:
    for values in product((-1.0, 1.0), repeat=3):
        assert -1 <= betting_bound(np.array(values), alpha=0.05) <= np.mean(values)
