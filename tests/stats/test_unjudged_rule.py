"""When unjudged documents decide: one case a row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.stats.comparison import Direction, unjudged_decide
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean

M = 0.01


def interval(low: float, high: float) -> MeanEstimate:
    any_estimate = estimate_mean(np.array([0.0, 1.0]))
    return replace(any_estimate, mean=(low + high) / 2, low=low, high=high)


@pytest.mark.parametrize(
    ("direction", "low", "high", "filled", "decides"),
    [
        (1, 0.1, 0.2, 0.1, False),
        (1, -0.2, 0.1, 0.1, False),  # over judged documents nothing is shown
        (1, -0.2, -0.1, 0.1, True),
        (1, 0.1, 0.2, -0.1, True),
        (1, 0.1, 0.2, 0.0, False),  # 0 has no sign
        (1, 0.1, 0.2, -1e-14, False),  # nor has float noise
        (1, 0.1, 0.2, None, False),
        (1, 0.1, 0.2, math.nan, True),
        (1, math.nan, math.nan, 0.1, False),  # one group: nothing is shown
        (-1, -0.2, -0.1, -0.1, False),
        (-1, 0.1, 0.2, -0.1, True),
        (-1, -0.2, 0.1, 0.1, True),
        (-1, -0.2, -0.1, math.nan, True),
        (0, -0.1, 0.1, 0.001, False),
        (0, 0.02, 0.1, 0.001, True),
        (0, -0.1, -0.02, 0.001, True),
        (0, 0.002, 0.1, 0.001, False),
        (0, -0.1, 0.1, 0.01, True),
        (0, -0.1, 0.1, -0.02, True),
        (0, -0.1, 0.1, None, False),
        (0, -0.1, 0.1, math.nan, True),
    ],
)
def test_better_worse_and_equivalent(
    direction: Direction, low: float, high: float, filled: float | None, decides: bool
) -> None:
    assert unjudged_decide(direction, interval(low, high), filled, M) is decides


@pytest.mark.parametrize(
    ("low", "high", "filled", "decides"),
    [
        (-0.1, 0.1, 0.0, False),
        (-0.1, 0.1, -0.009, False),
        (-0.1, 0.1, -0.01, True),
        (-0.1, -0.02, 0.0, True),
        (-0.1, -0.005, 0.0, False),
        (-0.1, 0.1, math.nan, True),
        (-0.1, 0.1, None, False),
    ],
)
def test_a_pass(low: float, high: float, filled: float | None, decides: bool) -> None:
    assert unjudged_decide(1, interval(low, high), filled, M, is_pass=True) is decides


@pytest.mark.parametrize("direction", [1, 0, -1])
def test_what_cannot_be_computed_vetoes_nothing(direction: Direction) -> None:
    assert not unjudged_decide(direction, None, None, M)
    assert not unjudged_decide(direction, None, None, M, is_pass=True)
    assert not unjudged_decide(direction, None, None, 0.0, is_pass=True)
