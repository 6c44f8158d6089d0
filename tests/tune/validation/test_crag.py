"""CRAG's thresholds: exact against every pair, and what they say of a query."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.evaluation.crag import CragThresholds, name_verdicts
from fusion_bench.tune.crag import (
    assess_thresholds,
    calibration_bins,
    fit_thresholds,
    threshold_utility,
)

SCORES = np.array([0.9, 0.7, 0.5, 0.3, 0.1, math.nan])
TRUTH = np.array([True, True, False, True, False, False])


def test_verdicts_against_the_truth() -> None:
    rule = assess_thresholds(SCORES, TRUTH, CragThresholds(), 0.75)
    assert (rule.correct, rule.ambiguous, rule.incorrect) == ((2, 0), (0, 1), (1, 2))
    worth = threshold_utility(SCORES, TRUTH, CragThresholds(), 0.75)
    assert worth.tolist() == [1, 1, 0.75, 0, 1, 1]
    assert threshold_utility(SCORES, TRUTH, CragThresholds(0.6, 0.4), 0.75)[3] == 0, (
        "relevant, called incorrect"
    )
    assert threshold_utility(SCORES, ~TRUTH, CragThresholds(), 0.75)[0] == 0, (
        "not relevant, called correct"
    )


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=14),
    credit=st.sampled_from([0.5, 0.6, 0.75, 0.9]),
)
@settings(max_examples=60, deadline=None)
def test_no_pair_of_thresholds_is_better(rows: list[tuple[int, bool]], credit: float) -> None:
    scores = np.array([score / 8 for score, _ in rows])
    truth = np.array([relevant for _, relevant in rows])
    found = threshold_utility(
        scores, truth, fit_thresholds(scores, truth, credit=credit), credit
    ).sum()
    places = [-0.1, *(np.arange(9) / 8 + 1e-3), 1.1]
    every = [
        threshold_utility(scores, truth, CragThresholds(upper, lower), credit).sum()
        for lower, upper in itertools.combinations_with_replacement(places, 2)
    ]
    assert found == pytest.approx(max(every))


def test_without_credit_for_doubt_there_is_one_threshold() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    truth = rng.random(300) < scores
    one = fit_thresholds(scores, truth, credit=0.5)
    assert one.upper == one.lower
    assert abs(one.upper - 0.5) < 0.15


def test_the_credit_is_the_chance_at_which_it_dares_to_decide() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(20_000)
    truth = rng.random(20_000) < scores  # calibrated
    found = fit_thresholds(scores, truth, credit=0.8)
    assert abs(found.upper - 0.8) < 0.05
    assert abs(found.lower - 0.2) < 0.05


@pytest.mark.parametrize(("truth", "verdict"), [(True, "correct"), (False, "incorrect")])
def test_where_all_are_alike_one_verdict_is_enough(truth: bool, verdict: str) -> None:
    scores = np.array([0.2, 0.4, 0.6])
    found = fit_thresholds(scores, np.array([truth] * 3))
    assert name_verdicts(scores, found) == [verdict] * 3


@pytest.mark.parametrize("low", [0.0, 0.3, 1 / 3, 0.7])
@pytest.mark.parametrize("truth", list(itertools.product([False, True], repeat=3)))
def test_scores_next_to_each_other_are_told_apart(low: float, truth: tuple[bool, ...]) -> None:
    scores = np.array([low, np.nextafter(low, 1), np.nextafter(np.nextafter(low, 1), 1)])
    relevant = np.array(truth)
    for credit in (0.5, 0.75):
        found = fit_thresholds(scores, relevant, credit=credit)
        best = max(
            sum(credit if i <= row < j else float(relevant[row] == (row >= j)) for row in range(3))
            for i, j in itertools.combinations_with_replacement(range(4), 2)
        )
        assert threshold_utility(scores, relevant, found, credit).sum() == best


def test_no_score_at_all() -> None:
    nothing = np.array([math.nan, math.nan])
    assert fit_thresholds(nothing, np.array([True, False])) == CragThresholds(0.0, 0.0)
    assert calibration_bins(nothing, np.array([True, False])) == ()


def test_calibration_bins_hold_equally_many() -> None:
    rng = np.random.default_rng(2)
    scores = rng.random(1003)
    truth = rng.random(1003) < scores
    bins = calibration_bins(scores, truth)
    assert sum(one.queries for one in bins) == 1003
    assert max(one.queries for one in bins) - min(one.queries for one in bins) <= 1
    assert [one.score for one in bins] == sorted(one.score for one in bins)
    assert max(abs(one.score - one.share) for one in bins) < 0.15
