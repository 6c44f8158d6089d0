"""The efficient points are those that no comparison of pairs excludes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.tune.pareto import is_efficient

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
