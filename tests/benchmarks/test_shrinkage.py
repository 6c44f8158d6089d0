"""The simulation of shipped gains, on made values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulations.promise import Estimate, Promise
from benchmarks.simulations.shrinkage import Design, score_trials, simulate_design
from fusion_bench.tune.validation.trial_selection import shrunken_gains

RNG = np.random.default_rng(0)
DEFAULT = RNG.random(200)
VALUES = np.stack([DEFAULT, *(DEFAULT + RNG.normal(0.05, 0.1, 200) for _ in range(5))])


def test_trials_are_scored_as_tune_scores_them() -> None:
    expected = shrunken_gains(VALUES, DEFAULT)
    assert score_trials(VALUES - DEFAULT).tolist() == pytest.approx(expected.tolist())


def test_a_shipped_gain_is_too_high_and_the_shrunken_one_less() -> None:
    share, *means = simulate_design(Design("made", VALUES, 40), 100)
    assert isinstance(share, Promise)
    assert 10 < share.count < 90
    truth, plain, shrunken = (each.value for each in means if isinstance(each, Estimate))
    assert 0.02 < truth < 0.08
    assert shrunken < plain
    assert plain > 0
