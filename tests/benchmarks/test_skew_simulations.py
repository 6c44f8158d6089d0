"""The simulations of skewed differences and of the first group draw what they say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.simulations import first_group, skew


@pytest.mark.parametrize("kind", skew.FAMILIES)
def test_differences_have_the_mean_that_is_said(kind: str) -> None:
    values = skew.draw_differences(np.random.default_rng(1), kind, 40_000)
    assert values.shape == (skew.FAMILIES[kind], 40_000)
    expected = 0.1 if kind == "gain" else 0.0
    assert values.mean() == pytest.approx(expected, abs=0.005)
    assert values.min() > -1.05


def test_symmetric_answers_stay_and_skewed_ones_go() -> None:
    gains = np.full(40, 0.02) + 0.001 * np.arange(40)
    assert skew.is_kept(gains)
    assert not skew.is_kept(np.append(gains, [-0.3, -0.3]))


@pytest.mark.parametrize("kind", first_group.KINDS)
def test_the_first_system_is_a_best_one_and_differences_have_one_spread(kind: str) -> None:
    means = first_group.true_means(kind, 10)
    assert means[0] == means.max() == 0
    values = first_group.draw_values(np.random.default_rng(1), means, 40_000)
    assert values.mean(axis=1) == pytest.approx(means, abs=0.01)
    assert (values[0] - values[5]).std() == pytest.approx(first_group.SPREAD, rel=0.03)
    assert values[3].std() == pytest.approx(first_group.SD, rel=0.03)
