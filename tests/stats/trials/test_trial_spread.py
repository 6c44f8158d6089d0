"""The spread of trials against a slow analysis of variance, and against known components."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.trial_variance import (
    count_disagreements,
    measure_trial_spread,
    split_variance,
)
from tests.stats.samples import normal
from tests.stats.trials.cases import crossed


def slow_mean_squares(values: FloatArray) -> tuple[float, float, float]:
    """Of queries, trials and residual, by the sums of the textbook."""
    trials, queries = values.shape
    mean = values.mean()
    by_query = [values[:, q].mean() for q in range(queries)]
    by_trial = [values[t].mean() for t in range(trials)]
    residual = 0.0
    for t, q in product(range(trials), range(queries)):
        residual += (values[t, q] - by_query[q] - by_trial[t] + mean) ** 2
    return (
        trials * sum((each - mean) ** 2 for each in by_query) / (queries - 1),
        queries * sum((each - mean) ** 2 for each in by_trial) / (trials - 1),
        residual / ((trials - 1) * (queries - 1)),
    )


@pytest.mark.parametrize(("trials", "queries"), [(2, 7), (3, 40), (5, 3)])
def test_components_are_those_of_the_mean_squares(trials: int, queries: int) -> None:
    values = crossed(trials, queries, trial_sd=0.5, seed=trials)
    of_queries, of_trials, residual = slow_mean_squares(values)
    spread, parts = measure_trial_spread(values), split_variance(values)
    assert parts is not None
    assert spread.between == pytest.approx(of_trials / queries)
    assert spread.within == pytest.approx(residual / queries)
    assert spread.within_freedom == (trials - 1) * (queries - 1)
    assert parts.residual == pytest.approx(residual)
    assert parts.trials == pytest.approx(max(of_trials - residual, 0) / queries)
    assert parts.queries == pytest.approx(max(of_queries - residual, 0) / trials)


def test_many_trials_and_queries_give_the_components_they_were_drawn_from() -> None:
    values = crossed(200, 400, query_sd=0.3, trial_sd=0.05, residual_sd=0.1, seed=4)
    parts = split_variance(values)
    assert parts is not None
    sds = np.sqrt([parts.queries, parts.trials, parts.residual])
    assert sds == pytest.approx([0.3, 0.05, 0.1], rel=0.15)
    assert sum(parts.shares) == pytest.approx(1)


def test_identical_trials_have_no_spread() -> None:
    values = np.repeat(normal(1, 50, seed=3), 3, axis=0)
    spread, parts = measure_trial_spread(values), split_variance(values)
    assert (spread.between, spread.variance, spread.sd) == (0, 0, 0)
    assert spread.within == 0
    assert parts is not None
    assert parts.shares == (1, 0, 0)


def test_a_negative_estimate_is_zero() -> None:
    values = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    spread = measure_trial_spread(values)
    assert spread.between == 0
    assert spread.within > 0
    assert spread.variance == 0


def test_groups_widen_what_the_queries_alone_explain() -> None:
    # Residuals that a group of 4 queries shares: four times the variance of independent ones.
    shared = np.repeat(normal(200, 30, seed=5), 4, axis=1)
    groups = np.repeat(np.arange(30), 4)
    alone, grouped = measure_trial_spread(shared), measure_trial_spread(shared, groups)
    assert grouped.within == pytest.approx(4 * alone.within, rel=0.05)
    assert grouped.within_freedom == 199 * 29
    assert grouped.variance < alone.variance


def test_groups_of_one_query_change_nothing() -> None:
    values = crossed(3, 20, trial_sd=0.1, seed=6)
    assert measure_trial_spread(values, np.arange(20)) == measure_trial_spread(values)


def test_one_group_tells_no_spread_over_queries() -> None:
    spread = measure_trial_spread(normal(3, 5), np.zeros(5, dtype=np.int64))
    assert math.isnan(spread.within)
    assert spread.variance == 0


def test_one_query_has_no_components() -> None:
    assert split_variance(normal(3, 1)) is None


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        (normal(1, 5), ConfigError, "at least 2, not 1"),
        (np.empty((3, 0)), DataError, "at least one query"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), DataError, "must be finite"),
    ],
)
def test_unusable_trials_are_refused(
    values: FloatArray, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        measure_trial_spread(values)


def test_disagreements_of_the_first_two_trials_and_of_any() -> None:
    values = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.3, 0.4 + 1e-15], [0.1, 0.2, 0.9, 0.4]])
    assert count_disagreements(values, noise=1e-12) == (1, 2)
