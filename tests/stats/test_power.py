"""How many queries a difference needs."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kurtosis, nct, t

from fusion_bench.api.power import assume_spread
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.power import (
    SampleSize,
    compute_power,
    critical_value,
    detectable_difference,
    estimate_kurtosis,
    estimate_spread,
    needed_queries,
    plan_rule,
    power_by_queries,
    round_queries,
    sidak_tail,
    upper_tail,
)
from tests.examples import examples

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
@settings(max_examples=examples(10))
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


def test_a_long_tail_raises_the_upper_end_alone() -> None:
    # Bonett's interval with κ·(1 + 2·(κ − 1)/n) and Student's quantile with n/κ − 1 freedoms.
    raised = 20 * (1 + 2 * 19 / 200)
    correction = 200 / (200 - 1.959964)
    error = correction * math.sqrt((raised - 197 / 200) / 199)
    factor = correction * math.exp(t.ppf(0.975, 200 / 20 - 1) * error)
    size = needed_queries(0.02, 0.2, queries=200, changed=200, kurtosis=20.0)
    assert size is not None
    assert size.high is not None
    normal = needed_queries(0.02, 0.2 * math.sqrt(factor), queries=200, changed=200, kurtosis=3)
    assert normal is not None
    assert size.high == pytest.approx(normal.queries, rel=0.02)
    assert size.low == 430  # 785 · 1.0099 · exp(−1.96 · .3122), rounded down


def test_a_tail_too_long_for_an_upper_end_gives_a_lower_bound() -> None:
    size = needed_queries(0.02, 0.2, queries=60, changed=60, kurtosis=45.0)
    assert size is not None
    assert (size.low, size.high, size.at_least) == (None, None, True)


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
@settings(max_examples=examples(15))
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


# ── spreads: each number against the functions and formulas that it stands for


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


# ── plans of queries: each number against the functions and formulas that it stands for


RULE = ("ship", 0.02)


def test_sidak_is_student_for_one_and_grows() -> None:
    assert sidak_tail(1) == pytest.approx(0.025)
    assert (1 - 2 * sidak_tail(7, 0.1)) ** 7 == pytest.approx(0.9)


@pytest.mark.parametrize(("systems", "alpha"), [(0, 0.05), (1, 0.0), (1, 1.0)])
def test_sidak_refuses(systems: int, alpha: float) -> None:
    with pytest.raises(ConfigError):
        sidak_tail(systems, alpha)


def test_a_rule_on_queries_at_hand() -> None:
    plan = plan_rule(*RULE, assume_spread(0.2, 400), [0.02, 0.03])
    critical = t.ppf(0.98, 399)
    assert plan.critical_value == pytest.approx(critical)
    assert plan.tail == 0.02
    for each in plan.differences:
        assert each.power == pytest.approx(nct.sf(critical, 399, each.difference / 0.01))
        assert each.needed is not None
        at_needed = power_by_queries(
            plan, assume_spread(0.2, 400), each.difference, each.needed.queries
        )
        assert 0.8 <= at_needed < 0.83
    assert plan.detectable == pytest.approx(0.01 * (critical + 0.843), rel=0.001)


def test_the_critical_value_of_a_family_replaces_the_tail() -> None:
    spread = assume_spread(0.2, 400)
    plan = plan_rule("better or worse", 0.025, spread, [0.02], critical=3.0)
    assert plan.critical_value == 3.0
    assert plan.tail == pytest.approx(t.sf(3.0, 399))


def test_without_queries_nothing_is_at_hand() -> None:
    plan = plan_rule(*RULE, assume_spread(0.2), [0.02])
    assert (plan.detectable, plan.differences[0].power) == (None, None)
    assert plan.differences[0].needed is not None
    assert plan.differences[0].needed.low is None


def test_no_critical_value_shows_nothing() -> None:
    spread = estimate_spread(np.array([0.1, -0.2, 0.3, 0.0, 0.2]))
    plan = plan_rule("better or worse", 0.025, spread, [0.02], critical=math.inf)
    assert (plan.detectable, plan.differences[0].needed) == (None, None)
    assert plan.differences[0].power == 0
    assert math.isnan(power_by_queries(plan, spread, 0.02, 100))


@pytest.mark.parametrize("differences", [[], [0.0], [-0.1], [math.nan], [math.inf]])
def test_refuses_differences(differences: list[float]) -> None:
    with pytest.raises(ConfigError, match="difference"):
        plan_rule(*RULE, assume_spread(0.2), differences)
