from __future__ import annotations

from statistics import NormalDist

import pytest

from fusion_bench.stats.look_levels import look_level, power_at_level, query_factor


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
