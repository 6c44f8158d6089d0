"""The front and the area below it are what a look at every pair and every cell says they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.tune.pareto.dominance import hypervolume, is_efficient

Point = tuple[tuple[int, int], int]
POINTS = st.lists(st.tuples(st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(0, 5)))


def beats(one: Point, other: Point) -> bool:
    pairs = zip(one[0], other[0], strict=True)
    return one != other and all(a <= b for a, b in pairs) and one[1] >= other[1]


@given(POINTS)
@settings(max_examples=60, deadline=None)
def test_what_is_on_the_front_is_what_nothing_beats(points: list[Point]) -> None:
    effort = np.array([effort for effort, _ in points], dtype=float).reshape(len(points), 2)
    found = is_efficient(effort, np.array([value for _, value in points], dtype=float))
    assert found.tolist() == [not any(beats(p, one) for p in points) for one in points]


@given(POINTS, st.integers(0, 5), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_the_hypervolume_is_the_number_of_unit_cells_that_some_point_beats(
    points: list[Point], most: int, least: int
) -> None:
    cells = sum(
        any(effort[0] <= x and value >= y + 1 for effort, value in points)
        for x in range(most)
        for y in range(least, 6)
    )
    effort = np.array([effort[0] for effort, _ in points], dtype=float)
    value = np.array([value for _, value in points], dtype=float)
    assert hypervolume(effort, value, most=most, least=least) == cells


def test_more_points_never_cover_less_and_beaten_ones_change_nothing() -> None:
    effort, value = np.array([0.0, 10.0, 20.0]), np.array([0.5, 0.4, 0.7])
    whole = hypervolume(effort, value, most=50.0, least=0.3)
    assert whole == 0.2 * 20 + (0.7 - 0.3) * 30
    on = is_efficient(effort[:, None], value)
    assert on.tolist() == [True, False, True]
    assert hypervolume(effort[on], value[on], most=50.0, least=0.3) == whole
