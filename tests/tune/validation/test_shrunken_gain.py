"""The shrunken gain: the gain given that it passed its test."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from fusion_bench.report.tuning_records import Gain
from fusion_bench.tune.trial_selection import shrink_gain
from tests.report.tuning_cases import gain


def passed(difference: float, error: float, critical: float) -> Gain:
    """A gain with an interval of ``critical`` standard errors to each side."""
    width = critical * error
    return gain(difference, difference - width, difference + width, sd=error * 10, queries=100)


@pytest.mark.parametrize("z", [2.9, 3.5, 4.5])
def test_the_gain_is_the_mean_of_what_passes_under_the_shrunken_one(z: float) -> None:
    error, critical = 0.01, 2.1
    shrunken = shrink_gain(passed(z * error, error, critical))
    assert shrunken is not None
    true = norm(shrunken, error)
    above, _ = quad(lambda d: d * true.pdf(d), critical * error, shrunken + 12 * error)
    assert above / true.sf(critical * error) == pytest.approx(z * error, abs=1e-8)


@given(error=st.floats(1e-4, 0.2), critical=st.floats(1.96, 40), margin=st.floats(0, 40))
def test_it_lies_between_the_lower_end_and_the_gain(
    error: float, critical: float, margin: float
) -> None:
    found = passed((critical + margin) * error, error, critical)
    shrunken = shrink_gain(found)
    assert shrunken is not None
    assert found.low is not None
    assert found.low <= shrunken <= found.difference


def test_a_gain_at_the_critical_value_is_shrunken_to_the_end_of_the_interval() -> None:
    assert shrink_gain(gain(0.05, 0.0, 0.1)) == 0.0


def test_a_sure_gain_stays() -> None:
    assert shrink_gain(passed(0.2, 0.02, 2.1)) == pytest.approx(0.2, abs=1e-6)


def test_a_sure_gain_of_few_queries_keeps_its_size() -> None:
    """The mean of 24 cross-fitted queries, +.212 [+.128, +.297], once became +.097."""
    found = gain(0.212, 0.128, 0.297, sd=0.041 * math.sqrt(24), queries=24, groups=24)
    assert shrink_gain(found) == pytest.approx(0.21, abs=0.005)


def test_without_an_interval_nothing_is_shrunken() -> None:
    assert shrink_gain(gain(0.1, None, None)) is None
    assert shrink_gain(gain(0.1, 0.05, 0.15, sd=None)) is None


def test_a_gain_that_is_the_same_on_every_query_is_not_shrunken() -> None:
    assert shrink_gain(gain(0.1, 0.1, 0.1, sd=0.0)) == 0.1
