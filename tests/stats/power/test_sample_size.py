"""Numbers of queries and detectable differences against a search by the exact noncentral t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kurtosis, nct, t

from fusion_bench.errors import ConfigError
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.power import (
    SampleSize,
    compute_power,
    critical_value,
    detectable_difference,
    estimate_kurtosis,
    needed_queries,
    round_queries,
    upper_tail,
)

#: More digits than rounding hides.
SMALL = 99


def slow_queries(effect: float, tail: float, power: float) -> int:
    """The first N whose power reaches the asked one."""
    number = 2
    while nct.sf(t.ppf(1 - tail, number - 1), number - 1, effect * math.sqrt(number)) < power:
        number += 1
    return number


@given(
    effect=st.floats(0.4, 1.5),
    tail=st.sampled_from([0.025, 0.02, 0.001]),
    power=st.floats(0.6, 0.95),
)
@settings(max_examples=10, deadline=None)
def test_needed_queries_is_the_first_number_with_that_power(
    effect: float, tail: float, power: float
) -> None:
    critical = critical_value(tail, 199)
    size = needed_queries(
        effect, 1.0, queries=200, changed=200, kurtosis=3, critical=critical, power=power
    )
    assert size is not None
    exact = slow_queries(effect, tail, power)
    assert abs(size.queries - exact) <= 1 if exact <= SMALL else size.queries >= exact


def test_published_topic_set_size() -> None:
    # Sakai 2016: α = .05, power .8, effect size .5: 34 topics for the paired t test.
    size = needed_queries(0.5, 1.0, queries=100, changed=100, kurtosis=None)
    assert size is not None
    assert size.queries == 34


def test_interval_has_the_ends_of_the_variance() -> None:
    size = needed_queries(0.02, 0.2, queries=500, changed=400, kurtosis=3.0)
    assert size == SampleSize(queries=790, low=690, high=900, at_least=False)
    assert str(size) == "790 [690, 900]"
    wider = needed_queries(0.02, 0.2, queries=500, changed=400, kurtosis=30.0)
    assert wider is not None
    assert wider.low is not None
    assert wider.low < 690


def test_groups_need_more_queries_by_the_design_effect() -> None:
    plain = needed_queries(0.01, 0.2, queries=600, changed=400, kurtosis=3)
    grouped = needed_queries(0.01, 0.2, queries=600, changed=400, kurtosis=3, design_effect=3)
    assert plain is not None
    assert grouped is not None
    assert grouped.queries == pytest.approx(3 * plain.queries, rel=0.05)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"changed": 29}, "at least 420"),
        ({"changed": 30}, "790 ["),
    ],
)
def test_few_changed_queries_give_a_lower_bound(cells: dict[str, int], expected: str) -> None:
    size = needed_queries(0.02, 0.2, **{"queries": 50, "kurtosis": 6, **cells})
    assert expected in str(size)


@pytest.mark.parametrize(("sd", "queries"), [(0.0, 50), (math.nan, 50), (0.2, 1)])
def test_without_spread_nothing_is_known(sd: float, queries: int) -> None:
    assert needed_queries(0.02, sd, queries=queries, changed=40, kurtosis=3) is None


def test_out_of_reach_is_none() -> None:
    assert needed_queries(1e-9, 0.2, queries=50, changed=40, kurtosis=3) is None


@pytest.mark.parametrize(
    ("difference", "power", "message"),
    [
        (0.0, 0.8, "difference"),
        (math.nan, 0.8, "difference"),
        (0.1, 1.0, "power"),
        (0.1, 0.5, "power"),
    ],
)
def test_refuses(difference: float, power: float, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        needed_queries(difference, 0.2, queries=50, changed=40, kurtosis=3, power=power)


@given(freedom=st.floats(2, 1e5), critical=st.floats(1.5, 5), power=st.floats(0.55, 0.99))
@settings(max_examples=15, deadline=None)
def test_detectable_difference_has_that_power(
    freedom: float, critical: float, power: float
) -> None:
    difference = detectable_difference(0.01, critical, freedom=freedom, power=power)
    assert difference is not None
    assert nct.sf(critical, freedom, difference / 0.01) == pytest.approx(power, abs=1e-5)
    assert compute_power(difference, 0.01, critical, freedom=freedom) == pytest.approx(
        power, abs=1e-5
    )


@pytest.mark.parametrize("error", [0.0, math.nan])
def test_no_difference_is_detectable_without_spread(error: float) -> None:
    assert detectable_difference(error, 2, freedom=9) is None


def test_kurtosis_is_the_plain_one_where_symmetric() -> None:
    values = np.concatenate([np.linspace(-1, 1, 41), [-3, 3]])
    assert estimate_kurtosis(values) == pytest.approx(kurtosis(values, fisher=False))


@pytest.mark.parametrize("values", [np.zeros(9), np.arange(4.0)])
def test_kurtosis_needs_spread_and_five_values(values: np.ndarray) -> None:
    assert estimate_kurtosis(values) is None


@given(st.floats(1, 1e9))
def test_rounding_keeps_two_digits_outward(queries: float) -> None:
    low, high = round_queries(queries, up=False), round_queries(queries, up=True)
    assert low <= queries <= high
    assert len(str(low).rstrip("0")) <= 2
    assert high <= 1.1 * queries + 1


def test_tails_and_critical_values_are_inverse() -> None:
    assert upper_tail(critical_value(0.01, 7), 7) == pytest.approx(0.01)


def test_the_randomization_test_has_the_power_of_a_detectable_difference() -> None:
    critical = critical_value(0.025, 59)
    shift = detectable_difference(1 / math.sqrt(60), critical, freedom=59)
    values = np.random.default_rng(41).standard_normal((2000, 60)) + (shift or 0.0)
    p = randomization_p_values(values, resamples=2000)
    assert (p <= 0.05).mean() == pytest.approx(0.8, abs=0.03)
