"""Trials and queries as two sources of chance."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import compare_family
from fusion_bench.stats.intervals import estimate_mean, t_quantile
from fusion_bench.stats.repeat_variance import (
    count_disagreements,
    repeat_means,
    split_variance,
    widen_estimate,
)
from fusion_bench.stats.values import MeasuredValues, Pair
from tests.stats.samples import binomial_bounds, normal
from tests.stats.trial_cases import crossed


def test_a_widened_interval_by_hand() -> None:
    values = crossed(3, 30, trial_sd=0.2, seed=1)
    by_queries = estimate_mean(values.mean(axis=0))
    widened = widen_estimate(by_queries, repeat_means([values]), alpha=0.05)
    means = values.mean(axis=1)
    added = means.var(ddof=1) / 3
    half = math.hypot(
        t_quantile(29, 0.975) * by_queries.standard_error, t_quantile(2, 0.975) * math.sqrt(added)
    )
    assert widened.repeat_variance == pytest.approx(added)
    assert widened.high - widened.mean == pytest.approx(half)
    assert widened.standard_error**2 == pytest.approx(by_queries.standard_error**2 + added)
    assert widened.design_effect == pytest.approx(1)  # of groups only


def test_without_trials_or_without_their_effect_the_estimate_is_the_same_object() -> None:
    by_queries = estimate_mean(normal(30))
    steady = np.repeat(normal(1, 30, seed=2), 3, axis=0)
    for sides in ((None, None), (steady, None), (normal(1, 30), None)):
        assert widen_estimate(by_queries, repeat_means(sides), alpha=0.05) is by_queries


def test_one_group_stays_unknown() -> None:
    values = crossed(3, 5, trial_sd=1.0)
    estimate = estimate_mean(values.mean(axis=0), np.zeros(5, dtype=np.int64))
    assert widen_estimate(estimate, repeat_means([values]), alpha=0.05) is estimate


def test_repeats_of_one_list_are_compared_with_themselves() -> None:
    first, second = crossed(3, 20, trial_sd=1.0), crossed(3, 20, trial_sd=1.0, seed=1)
    lists = frozenset({"runs/a"})

    def pair(*sides: FloatArray, shared: bool) -> Pair:
        names = lists if shared else frozenset()
        one, two = (MeasuredValues(side.mean(axis=0), side, names) for side in sides)
        return Pair(one, two, tuple(map(str, range(20))))

    assert len(pair(first, second, shared=False).repeats) == 2
    [difference] = pair(first, second, shared=True).repeats
    assert difference == pytest.approx((first - second).mean(axis=1))
    assert len(pair(first, second[:2], shared=True).repeats) == 2
    assert len(pair(first, second[:1], shared=True).repeats) == 1


@pytest.mark.parametrize("trial_sd", [0.0, 0.05])
def test_intervals_cover_for_new_trials_and_queries(trial_sd: float) -> None:
    draws, hits = 600, 0
    for seed in range(draws):
        values = crossed(3, 40, query_sd=0.2, trial_sd=trial_sd, seed=seed)
        estimate = estimate_mean(values.mean(axis=0))
        estimate = widen_estimate(estimate, repeat_means([values]), alpha=0.05)
        hits += estimate.low <= 0 <= estimate.high
    assert binomial_bounds(hits, draws)[1] >= 0.94


# ── the parts of the variance against a slow analysis of variance, and against known components


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
def test_shares_are_those_of_the_mean_squares(trials: int, queries: int) -> None:
    values = crossed(trials, queries, trial_sd=0.5, seed=trials)
    of_queries, of_trials, residual = slow_mean_squares(values)
    parts = np.array(
        [
            max(of_queries - residual, 0) / trials,
            max(of_trials - residual, 0) / queries,
            residual,
        ]
    )
    assert split_variance(values) == pytest.approx(tuple(parts / parts.sum()))


def test_many_trials_and_queries_give_the_shares_they_were_drawn_from() -> None:
    values = crossed(200, 400, query_sd=0.3, trial_sd=0.05, residual_sd=0.1, seed=4)
    known = np.array([0.3, 0.05, 0.1]) ** 2
    assert split_variance(values) == pytest.approx(tuple(known / known.sum()), rel=0.3)


def test_identical_trials_have_no_spread() -> None:
    values = np.repeat(normal(1, 50, seed=3), 3, axis=0)
    assert split_variance(values) == (1, 0, 0)
    assert split_variance(np.zeros((3, 5))) == (0, 0, 0)


def test_a_negative_estimate_is_zero() -> None:
    values = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    assert split_variance(values) == (0, 0, 1)


def test_one_query_has_no_shares() -> None:
    assert split_variance(normal(3, 1)) is None


def test_disagreements_of_the_first_two_trials_and_of_any() -> None:
    values = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.3, 0.4 + 1e-15], [0.1, 0.2, 0.9, 0.4]])
    assert count_disagreements(values, noise=1e-12) == (1, 2)


# ── families in which systems have trials: nothing changes without them, and answers agree with p


QUERIES = 40
KEYS = tuple(map(str, range(QUERIES)))


def pairs(systems: dict[str, FloatArray], *, repeated: bool = True) -> list[Pair]:
    values = {
        name: MeasuredValues(trials.mean(axis=0), trials if repeated else None)
        for name, trials in systems.items()
    }
    return [Pair(values[name], values["base"], KEYS) for name in values if name != "base"]


def systems(trial_sd: float, *, shift: float = 0.0, seed: int = 0) -> dict[str, FloatArray]:
    shared = crossed(1, QUERIES, residual_sd=0.0, seed=seed + 100)
    return {
        name: shared
        + shift * i
        + crossed(3, QUERIES, query_sd=0.1, trial_sd=trial_sd, seed=seed + i)
        for i, name in enumerate(("base", "first", "second"))
    }


def compare(family: list[Pair]) -> list[Comparison]:
    return compare_family(family, seed=3)


def test_trials_without_an_effect_leave_every_number_as_it_was() -> None:
    steady = {name: np.repeat(v[:1], 3, axis=0) for name, v in systems(0.0, shift=0.05).items()}
    with_repeats, without = (compare(pairs(steady, repeated=each)) for each in (True, False))
    for row, plain in zip(with_repeats, without, strict=True):
        assert (row.trial_share, plain.trial_share) == (0.0, None)
        names = ("low", "high", "p", "critical_value", "answer")
        assert [getattr(row, n) for n in names] == [getattr(plain, n) for n in names]


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_without_zero_is_the_small_p(seed: int) -> None:
    for row in compare(pairs(systems(0.03, shift=0.05, seed=10 * seed))):
        assert (row.p <= 0.05) == (row.low > 0 or row.high < 0)


def test_an_effect_of_trials_widens_the_interval_of_its_systems_only() -> None:
    values = systems(0.0, shift=0.05)
    values["second"] = values["second"] + np.array([[-0.2], [0.0], [0.2]])
    values["base"] = values["base"][:1]
    values["first"] = values["first"][:1]
    unsteady = compare(pairs(values))
    plain = compare(pairs(values, repeated=False))
    assert unsteady[1].trial_share is not None
    assert unsteady[1].trial_share > 0.5
    assert unsteady[1].high - unsteady[1].low > 1.5 * (plain[1].high - plain[1].low)
    assert (unsteady[0].low, unsteady[0].high) == (plain[0].low, plain[0].high)


def test_the_standard_error_is_over_queries_and_the_share_is_of_trials() -> None:
    values = systems(0.1, shift=0.05)
    row = compare(pairs(values))[0]
    difference = values["first"].mean(axis=0) - values["base"].mean(axis=0)
    error = stats.sem(difference) ** 2
    added = sum(values[name].mean(axis=1).var(ddof=1) / 3 for name in ("first", "base"))
    assert row.standard_error == pytest.approx(math.sqrt(error))
    assert row.trial_share == pytest.approx(added / (added + error))


def test_systems_of_the_same_means_and_other_trials_are_two_rows() -> None:
    values = systems(0.0, shift=0.3)
    moved = values["first"] + np.array([[-0.3], [0.0], [0.3]])
    both = {"base": values["base"][:1], "first": values["first"], "second": moved}
    first, second = compare(pairs(both))
    assert first.difference == pytest.approx(second.difference)
    assert first.p < second.p
