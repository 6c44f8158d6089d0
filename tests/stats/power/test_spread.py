"""Spreads: each number against the functions and formulas that it stands for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.power import assume_spread, estimate_kurtosis, estimate_spread


def test_an_estimated_spread_has_the_standard_error_of_the_mean() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 5)
    values = rng.normal(size=20)[groups] + rng.normal(size=100) * (rng.random(100) < 0.7)
    for codes in (None, groups):
        spread, mean = estimate_spread(values, codes), estimate_mean(values, codes)
        assert spread.standard_error == pytest.approx(mean.standard_error)
        assert spread.freedom == mean.freedom
    assert estimate_spread(values).design_effect == 1
    assert estimate_spread(values, groups).design_effect > 2
    assert estimate_spread(values).changed == (values != 0).sum()


def test_with_groups_the_interval_of_a_number_of_queries_is_that_of_the_groups() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 5)
    values = rng.normal(size=20)[groups] + rng.normal(size=100)
    spread = estimate_spread(values, groups)
    assert spread.groups == 20
    assert spread.kurtosis == pytest.approx(
        estimate_kurtosis(np.bincount(groups, values - values.mean()).astype(np.float64))
    )
    sizes = [
        each.needed_queries(0.2, None)
        for each in (spread, replace(spread, groups=100), replace(spread, groups=None))
    ]
    widths = [size.high - size.low for size in sizes if size and size.high and size.low]
    assert widths[0] > widths[2] > widths[1]


@pytest.mark.parametrize(
    ("given", "effect", "freedom"),
    [
        ({}, 1, None),
        ({"queries": 400}, 1, 399),
        ({"queries": 400, "groups": 100}, 4, 99),
        ({"queries": 400, "groups": 100, "design_effect": 1.5}, 1.5, 99),
        ({"queries": 400, "design_effect": 4}, 4, 99),
        ({"design_effect": 4}, 4, None),
    ],
)
def test_assumed_spreads(given: dict[str, Any], effect: float, freedom: float | None) -> None:
    spread = assume_spread(0.2, **given)
    assert (spread.design_effect, spread.freedom, spread.changed) == (effect, freedom, None)


@pytest.mark.parametrize(
    ("sd", "given"),
    [
        (0.0, {}),
        (math.nan, {}),
        (0.2, {"queries": 1}),
        (0.2, {"groups": 5}),
        (0.2, {"queries": 5, "groups": 6}),
        (0.2, {"queries": 5, "groups": 1}),
        (0.2, {"design_effect": 0.0}),
    ],
)
def test_refuses_assumptions(sd: float, given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        assume_spread(sd, **given)
