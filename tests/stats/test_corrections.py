"""Holm's correction against an obvious loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.stats.corrections import adjust_holm


def loop_holm(p_values: list[float]) -> list[float]:
    """Smallest level at which the step-down procedure rejects each: its definition."""
    adjusted = []
    for own in p_values:
        worst = 0.0
        for other in p_values:
            if other <= own:
                still_there = sum(p >= other for p in p_values)
                worst = max(worst, other * still_there)
        adjusted.append(min(1.0, worst))
    return adjusted


@settings(deadline=None)
@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.5])), max_size=12))
def test_holm_is_the_obvious_loop(p_values: list[float]) -> None:
    array = np.array(p_values, dtype=np.float64)
    found = adjust_holm(array)
    assert found.tolist() == loop_holm(p_values)
    assert (found >= array).all()
    assert array.tolist() == p_values
    order = np.argsort(array, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_holm_worked() -> None:
    found = adjust_holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert found.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf])
def test_holm_refuses_what_is_no_probability(wrong: float) -> None:
    with pytest.raises(DataError, match="p-value 1"):
        adjust_holm(np.array([0.5, wrong]))
