"""The simulation of shipped gains, on made values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.simulations.page import RESULTS, read_result
from benchmarks.studies.simulations.promise import Estimate, Promise
from benchmarks.studies.simulations.shrinkage import Design, score_trials, simulate_design
from fusion_bench.tune.trial_selection import shrunken_gains

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


def test_the_stored_errors_of_the_shrunken_gain_are_small() -> None:
    """At most .012, or 40 % of the plain gain's, within two standard errors of the simulation."""
    stored = read_result(RESULTS / "shrinkage.json")
    assert stored.draws >= 2_000
    rows = {(row.design, row.quantity.split(",")[0]): row for row in stored.estimates}
    for (design, quantity), row in rows.items():
        if quantity == "error of the shrunken gain":
            plain = rows[design, "error of the plain gain"].value
            excess = abs(row.value) - max(0.012, 0.4 * abs(plain))
            assert excess <= 2 * row.standard_error, design


def test_a_sure_gain_stays_within_a_tenth_of_a_standard_error() -> None:
    stored = read_result(RESULTS / "shrinkage.json")
    sure = [row.design for row in stored.promises if row.share >= 0.99]
    assert sure
    for design in sure:
        truth, plain, shrunken = (row.value for row in stored.estimates if row.design == design)
        error = truth / 5  # the true gain is five standard errors
        assert abs(plain - shrunken) <= 0.1 * error, design
