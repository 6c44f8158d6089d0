"""The line through the queries that both judged, and the line without each group."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.data.ordering import IntArray
from fusion_bench.stats.prediction_powered import fit_line, means_without_groups


def test_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    machine = rng.normal(size=9)
    people = 0.3 + 0.7 * machine + rng.normal(size=9)
    slope, intercept = np.polyfit(machine, people, 1)

    line = fit_line(people, machine, machine_mean=0.4)

    assert line.slope == pytest.approx(slope)
    assert line.mean == pytest.approx(intercept + slope * 0.4)
    residuals = people - intercept - slope * machine
    assert line.residual_squares == pytest.approx(residuals @ residuals)
    assert line.squared_distance == pytest.approx((0.4 - machine.mean()) ** 2 / (9 * machine.var()))


def test_machine_that_says_nothing_has_slope_0() -> None:
    people = np.array([0.1, 0.4, 0.3])

    line = fit_line(people, np.full(3, 0.1 + 0.2), machine_mean=0.9)

    assert (line.slope, line.squared_distance) == (0, 0)
    assert line.mean == pytest.approx(people.mean())


@pytest.mark.parametrize("groups", [np.arange(8), np.array([0, 1, 1, 2, 3, 2, 1, 0])])
def test_mean_without_a_group_is_that_of_the_other_queries(groups: IntArray) -> None:
    rng = np.random.default_rng(2)
    people, machine = rng.normal(size=(2, 8)) + 5

    means = means_without_groups(people, machine, 4.8, groups)

    each = [groups != group for group in range(groups.max() + 1)]
    expected = [fit_line(people[kept], machine[kept], 4.8).mean for kept in each]
    assert means == pytest.approx(expected)


def test_slope_that_rests_on_one_query_is_0_without_it() -> None:
    people = np.array([1.0, 0.0, 0.2, 0.4])
    machine = np.array([1.0, 0.0, 0.0, 0.0])

    means = means_without_groups(people, machine, 0.5, np.arange(4))

    assert means[0] == pytest.approx(0.2)
