"""Levels of looks: spent without a plan, and by a plan."""

from collections.abc import Sequence
from statistics import NormalDist

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.stats.look_levels import (
    _START,
    look_level,
    planned_levels,
    power_at_level,
    query_factor,
    spent_level,
)


def test_the_levels_of_the_looks_are_those_of_the_specification() -> None:
    assert [look_level(j) for j in (1, 2, 3, 4)] == pytest.approx([0.02, 0.0025, 0.00125, 0.000625])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.01])
def test_all_looks_together_spend_half_of_alpha(alpha: float) -> None:
    assert sum(look_level(j, alpha) for j in range(1, 60)) == pytest.approx(alpha / 2)


def test_a_look_at_the_whole_level_loses_no_power_and_needs_no_more_queries() -> None:
    assert power_at_level(0.025) == pytest.approx(0.8)
    assert query_factor(0.025) == pytest.approx(1)
    assert power_at_level(0.0) == 0


@pytest.mark.parametrize("level", [0.02, 0.0025, 0.000625])
def test_so_many_more_queries_restore_the_power(level: float) -> None:
    reach = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    shift = reach * query_factor(level) ** 0.5
    assert NormalDist().cdf(shift + NormalDist().inv_cdf(level)) == pytest.approx(0.8)
    assert power_at_level(level) < 0.8


#: Lan & DeMets's O'Brien–Fleming spending at two-sided .05, equally spaced (Reboussin et al. 2000).
PRINTED = {
    2: (2.963, 1.969),
    3: (3.710, 2.511, 1.993),
    4: (4.333, 2.963, 2.359, 2.014),
    5: (4.877, 3.357, 2.680, 2.290, 2.031),
}
#: Jennison & Turnbull 2000, table 2.3: O'Brien–Fleming's constant at two-sided .05, power any.
OBRIEN_FLEMING = {2: 1.977, 3: 2.004, 4: 2.024, 5: 2.040, 10: 2.087}
#: The same book, table 2.1: Pocock's.
POCOCK = {2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413, 10: 2.555}


@pytest.mark.parametrize("looks", PRINTED)
def test_the_boundaries_are_the_printed_ones(looks: int) -> None:
    levels = planned_levels([k / looks for k in range(1, looks + 1)])
    boundaries = [-NormalDist().inv_cdf(level) for level in levels]
    assert boundaries == pytest.approx(PRINTED[looks], abs=6e-4)


@pytest.mark.parametrize("looks", OBRIEN_FLEMING)
def test_published_constants_spend_the_level(looks: int) -> None:
    times = [k / looks for k in range(1, looks + 1)]
    falling = [OBRIEN_FLEMING[looks] / time**0.5 for time in times]
    # Two-sided constants: the chance to pass both sides is negligible.
    assert crossing_probability(times, falling) == pytest.approx(0.025, abs=6e-5)
    flat = [POCOCK[looks]] * looks
    assert crossing_probability(times, flat) == pytest.approx(0.025, abs=1.2e-4)


def crossing_probability(times: Sequence[float], boundaries: Sequence[float]) -> float:
    """Chance that the z statistic without drift reaches a boundary at any look."""
    survivors, spent = _START, 0.0
    for time, boundary in zip(times, boundaries, strict=True):
        spent += survivors.crossing(time, boundary)
        survivors = survivors.advance(time, boundary)
    return spent


def test_one_look_at_all_queries_has_the_whole_level() -> None:
    assert planned_levels([1.0]) == pytest.approx([0.025])
    assert planned_levels([1.7]) == pytest.approx([0.025])


@pytest.mark.parametrize("times", [[0.2, 0.21, 0.5], [0.01, 0.02, 0.9, 1.0], [0.5]])
def test_the_boundaries_spend_what_the_function_allows(times: list[float]) -> None:
    levels = planned_levels(times, 0.025)
    boundaries = [-NormalDist().inv_cdf(level) for level in levels]
    allowed = spent_level(times[-1])
    assert crossing_probability(times, boundaries) == pytest.approx(allowed, abs=1e-6)


@pytest.mark.parametrize("times", [[0.5, 0.5], [0.0, 1.0], [1.0, 1.2], [0.6, 0.4]])
def test_fractions_must_increase_up_to_1(times: list[float]) -> None:
    with pytest.raises(ConfigError, match="must increase"):
        planned_levels(times)
