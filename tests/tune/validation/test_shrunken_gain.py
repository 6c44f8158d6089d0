"""The shrunken gain: the formula by hand, and what it tends to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.tune.validation.shrunken_gain import shrink_gain
from tests.report.tuning.cases import gain


def test_with_equal_spread_it_is_the_mean_of_all_queries_and_ten_losing_ones() -> None:
    sd = 0.2
    tuning = gain(0.05, 0, 1, sd=sd, queries=20, groups=20)
    held_out = gain(0.12, 0, 1, sd=sd, queries=30, groups=30)
    result = shrink_gain(tuning, held_out)
    assert result is not None
    assert result.difference == pytest.approx((20 * 0.05 + 30 * 0.12 - 10 * sd) / 60)
    assert result.prior_mean == pytest.approx((20 * 0.05 - 10 * sd) / 30)
    assert result.prior_sd == pytest.approx(sd / math.sqrt(30))
    assert result.weight == pytest.approx(30 / 60)


def test_groups_count_as_one_query_each() -> None:
    tuning = gain(0.05, 0, 1, sd=0.4, queries=80, groups=20)
    alone = gain(0.05, 0, 1, sd=0.2, queries=20, groups=20)
    held_out = gain(0.1, 0, 1)
    assert shrink_gain(tuning, held_out) == shrink_gain(alone, held_out)


@pytest.mark.parametrize("sd", [None, 0.0])
def test_without_a_spread_nothing_is_shrunken(sd: float | None) -> None:
    assert shrink_gain(gain(0.1, None, None, sd=sd), gain(0.1, 0, 1)) is None
    assert shrink_gain(gain(0.1, 0, 1), gain(0.1, None, None, sd=sd)) is None


@given(t=st.floats(-0.2, 0.2), d=st.floats(-0.2, 0.2), sd=st.floats(0.01, 1))
def test_it_lies_between_the_prior_and_the_held_out_gain(t: float, d: float, sd: float) -> None:
    result = shrink_gain(gain(t, 0, 1, sd=sd), gain(d, 0, 1))
    assert result is not None
    low, high = sorted((result.prior_mean, d))
    assert low - 1e-12 <= result.difference <= high + 1e-12
    assert 0 < result.weight < 1
