"""Held-out gains that hold for new trials of the lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.trial_variance import add_trial_variance, make_trial_terms
from fusion_bench.tune.cross_fitting import CrossFit, cross_fit, widen_fit
from fusion_bench.tune.gains import (
    PairedValues,
    UntunedSystem,
    judge_family,
    judge_floor,
    paired_gain,
)

QUERIES = 40
RANDOM = np.random.default_rng(11)
DEFAULT = RANDOM.uniform(0.2, 0.6, QUERIES)
GAIN = RANDOM.normal(0.03, 0.02, QUERIES)
GROUPS = [f"q{n:02d}" for n in range(QUERIES)]
CODES = np.arange(QUERIES)
#: Whole trials move by this: a main effect, which no number of queries averages out.
MOVES = np.array([-0.03, 0.0, 0.03])[:, None]


def moved(scale: float) -> FloatArray:
    """(T, Q) differences with the mean ``GAIN``."""
    return np.asarray(GAIN + scale * MOVES)


def test_a_gain_without_a_trial_effect_is_the_plain_one() -> None:
    plain = paired_gain(DEFAULT + GAIN, DEFAULT)
    assert paired_gain(DEFAULT + GAIN, DEFAULT, trials=moved(0.0)) == plain
    row = PairedValues(DEFAULT + GAIN, DEFAULT, GROUPS)
    assert judge_family([replace(row, trials=moved(0.0))]) == judge_family([row])


def test_a_trial_effect_widens_gains_by_its_variance() -> None:
    terms = make_trial_terms([moved(1.0)], CODES)
    expected = add_trial_variance(estimate_mean(GAIN, CODES), terms)
    gain = paired_gain(DEFAULT + GAIN, DEFAULT, CODES, trials=moved(1.0))
    assert (gain.low, gain.high) == pytest.approx((expected.low, expected.high))
    row = PairedValues(DEFAULT + GAIN, DEFAULT, GROUPS)
    [plain] = judge_family([row])
    [judged] = judge_family([replace(row, trials=moved(1.0))])
    assert judged.difference == plain.difference
    assert judged.p > plain.p
    assert judged.low is not None
    assert plain.low is not None
    assert judged.low < plain.low


def make_fit(gain: float, level: float = 0.025) -> CrossFit:
    differences = np.stack([GAIN - GAIN.mean() + gain, RANDOM.normal(0, 0.02, QUERIES)])
    return cross_fit(differences, CODES % 4, GROUPS, level=level, flips=999, rule="best")


def test_a_cross_fitted_gain_is_widened_too() -> None:
    fit = make_fit(0.03)
    assert widen_fit(fit, (), CODES) is fit
    wide = widen_fit(fit, make_trial_terms([moved(1.0)], CODES), CODES)
    assert wide.mean == fit.mean
    assert wide.p > fit.p
    assert wide.interval[0] < fit.interval[0] < fit.interval[1] < wide.interval[1]


@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0])
def test_p_and_interval_of_a_widened_fit_agree(scale: float) -> None:
    terms = make_trial_terms([moved(scale)], CODES)
    answers = set()
    for gain in np.linspace(0.001, 0.12, 12):
        wide = widen_fit(make_fit(float(gain)), terms, CODES)
        excludes = wide.interval[0] > 0
        # One flip of 1,000 on either side is the step between the two.
        assert wide.p <= 0.05 if excludes else wide.p >= 0.048
        answers.add(excludes)
    assert answers == {True, False}


def test_the_floor_knows_which_trials_are_shared() -> None:
    tuned = DEFAULT + MOVES
    untuned = UntunedSystem("one", "system", DEFAULT + GAIN, tuned + GAIN, is_shared=True)

    def width(system: UntunedSystem) -> float:
        [row] = judge_floor(
            [system], DEFAULT, GROUPS, min_gain=0.005, alpha=0.05, seed=0, tuned_trials=tuned
        )
        assert row.low is not None
        assert row.high is not None
        return row.high - row.low

    shared, nested = width(untuned), width(replace(untuned, is_shared=False))
    assert nested > 2 * shared
    assert width(replace(untuned, trials=None)) > shared
