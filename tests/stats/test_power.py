"""The minimum detectable difference: its formula, and the power that it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.power import minimum_detectable_difference
from fusion_bench.stats.randomization_tests import (
    randomization_p_values,
)
from tests.stats.samples import normal


def test_detectable_is_the_formula() -> None:
    found = estimate_mean(normal(30))
    quantiles = stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)
    assert minimum_detectable_difference(found) == pytest.approx(quantiles * found.standard_error)
    groups = np.arange(30) % 6
    by_group = estimate_mean(normal(30), groups)
    quantiles = stats.t.ppf(0.95, 5) + stats.t.ppf(0.9, 5)
    found_by_group = minimum_detectable_difference(by_group, alpha=0.1, power=0.9)
    assert found_by_group == pytest.approx(quantiles * by_group.standard_error)


@pytest.mark.parametrize("queries", [20, 60])
def test_power_at_the_detectable_difference_is_as_promised(queries: int) -> None:
    trials = 2000
    unit = MeanEstimate(0, 0, 0, 1, 1 / math.sqrt(queries), queries, queries)
    shift = minimum_detectable_difference(unit)
    assert shift is not None
    found = [estimate_mean(row) for row in normal(trials, queries, seed=40) + shift]
    power = sum(not e.low <= 0 <= e.high for e in found) / trials
    assert power == pytest.approx(0.8, abs=0.03)


def test_power_of_the_randomisation_test_is_as_promised() -> None:
    unit = MeanEstimate(0, 0, 0, 1, 1 / math.sqrt(60), 60, 60)
    shift = minimum_detectable_difference(unit)
    assert shift is not None
    p_values = randomization_p_values(normal(2000, 60, seed=41) + shift, resamples=2000)
    assert (p_values <= 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_nothing_is_detectable_without_spread() -> None:
    assert minimum_detectable_difference(estimate_mean(np.full(9, 0.1))) is None
    assert minimum_detectable_difference(estimate_mean(np.array([0.1]))) is None
    assert (
        minimum_detectable_difference(estimate_mean(normal(4), np.zeros(4, dtype=np.int64))) is None
    )
