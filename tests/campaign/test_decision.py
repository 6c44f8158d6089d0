"""The decision of one ask: levels, the test on the held-out queries, what gain it finds."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from fusion_bench.campaign.decision import (
    HeldOutTest,
    Tails,
    detectable_gain,
    is_screened,
    phase_share,
    run_held_out_test,
)
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import BETS, betting_bound, clopper_pearson, estimate_mean
from tests.stats.samples import normal

SHARE = 0.05 / 1000


def differences(queries: int, gain: float, *, seed: int = 0) -> FloatArray:
    """Heavy-tailed differences around a mean gain, in range."""
    draws = np.random.default_rng(seed).standard_t(4, queries)
    return np.clip(0.08 * draws + gain, -1, 1)


def run(
    difference: FloatArray,
    groups: IntArray | None = None,
    *,
    share: float = SHARE,
    min_gain: float = 0.005,
    is_bounded: bool = True,
    tails: Tails = "bounded",
) -> HeldOutTest:
    return run_held_out_test(
        difference, groups, share=share, min_gain=min_gain, is_bounded=is_bounded, tails=tails
    )


def test_one_phase_has_the_whole_level_for_all_asks() -> None:
    assert phase_share(1, ships=1, asks=1000, level=0.05) == 0.05 / 1000


@pytest.mark.parametrize(("phase", "quantile"), [(1, 4.06), (2, 5.57), (3, 6.57)])
def test_quantiles_of_three_phases_of_a_thousand_asks(phase: int, quantile: float) -> None:
    share = phase_share(phase, ships=3, asks=1000, level=0.05)
    assert -NormalDist().inv_cdf(share) == pytest.approx(quantile, abs=0.005)


@pytest.mark.parametrize(("ships", "asks"), [(1, 1), (1, 40), (2, 7), (4, 30), (9, 9)])
def test_the_union_bound_over_times_phases_and_asks_is_the_level(ships: int, asks: int) -> None:
    """Every time of earlier ships has its own fixed sequence of at most ``asks`` candidates."""
    total = sum(
        phase_share(phase, ships=ships, asks=asks, level=0.1) * asks * math.comb(asks, phase - 1)
        for phase in range(1, ships + 1)
    )
    assert total == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("phase", "ships", "asks", "level"),
    [(0, 1, 9, 0.05), (2, 1, 9, 0.05), (1, 10, 9, 0.05), (1, 1, 9, 0.0), (1, 1, 9, 1.0)],
)
def test_impossible_phases_are_refused(phase: int, ships: int, asks: int, level: float) -> None:
    with pytest.raises(ConfigError, match=r"level|phase"):
        phase_share(phase, ships=ships, asks=asks, level=level)


def test_a_clear_gain_ships() -> None:
    assert run(differences(800, 0.05)).ships


@pytest.mark.parametrize("tails", ["bounded", "t"])
@pytest.mark.parametrize(
    "difference",
    [
        differences(800, 0.0),
        -differences(800, 0.05),
        np.zeros(800),
    ],
    ids=["no gain", "loss", "unchanged"],
)
def test_the_rest_is_kept(difference: FloatArray, tails: Tails) -> None:
    assert not run(difference, tails=tails, share=0.05, min_gain=0.005).ships


@pytest.mark.parametrize("count", [19, 20])
def test_fewer_than_twenty_groups_are_kept(count: int) -> None:
    gains = np.linspace(0.3, 0.9, count)
    assert run(gains, share=0.05).ships == (count == 20)
    assert run(np.repeat(gains, 3), np.arange(3 * count) // 3, share=0.05).ships == (count == 20)


@pytest.mark.parametrize("count", [9, 10])
def test_fewer_than_ten_changed_queries_are_kept(count: int) -> None:
    changed = np.concatenate([np.full(count, 0.9), np.zeros(30)])
    assert run(changed, share=0.05).ships == (count == 10)


def test_a_gain_below_the_least_is_kept() -> None:
    difference = differences(800, 0.05)
    mean = float(difference.mean())
    assert not run(difference, min_gain=mean + 1e-6).ships
    assert run(difference, min_gain=mean - 1e-6).ships


def test_a_measure_without_range_has_no_e_value() -> None:
    difference = differences(800, 0.05)
    assert run(difference, is_bounded=False).log_e_value == -math.inf
    assert not run(difference, is_bounded=False).ships
    assert run(difference, is_bounded=False, tails="t").ships
    difference[0] = -1.5
    assert run(difference).log_e_value == -math.inf


def test_t_alone_is_students_t_at_the_share() -> None:
    difference = differences(400, 0.03)
    p = float(stats.ttest_1samp(difference, 0, alternative="greater").pvalue)
    assert run(difference, share=p * 1.001, tails="t").ships
    assert not run(difference, share=p * 0.999, tails="t").ships


def test_groups_count_as_units() -> None:
    difference, groups = differences(900, 0.05), np.arange(900) // 9
    found = run(difference, groups)
    estimate = estimate_mean(difference, groups)
    t = found.critical_mean / estimate.standard_error
    assert (found.groups, found.changed) == (100, 900)
    assert t == pytest.approx(stats.t.isf(SHARE, 99))


@pytest.mark.parametrize("size", [1, 3])
def test_e_value_is_the_mean_capital(size: int) -> None:
    difference = differences(300, 0.04)
    groups = np.arange(300) // size
    capital = np.mean([np.prod(1 + bet * difference) for bet in BETS])
    if size == 3:
        sums = difference.reshape(-1, 3).mean(axis=1)
        capital = np.mean([np.prod(1 + bet * sums) for bet in BETS])
    found = run(difference, groups)
    assert found.log_e_value == pytest.approx(math.log(capital))
    exceeds = betting_bound(difference, groups, alpha=SHARE) > 0
    assert exceeds == (found.log_e_value > -math.log(SHARE))


def test_mean_e_value_of_an_exact_null_is_at_most_one() -> None:
    """All signs of twelve differences: the mean e-value is exactly the mean over the flips."""
    sizes = np.linspace(0.05, 0.95, 12)
    flips = np.array(list(product((-1, 1), repeat=12)))
    values = [math.exp(run(sign * sizes).log_e_value) for sign in flips]
    assert np.mean(values) == pytest.approx(1.0)


@pytest.mark.slow
def test_rare_losses_do_not_ship_where_student_does() -> None:
    """Wins of .05 on 30 % and losses of .75 on 2 % of 400 queries: the true mean is 0."""
    random = np.random.default_rng(3)
    draws = random.choice([0.05, -0.75, 0.0], p=[0.3, 0.02, 0.68], size=(4000, 400))
    student = sum(run(each, min_gain=0.0, tails="t").ships for each in draws)
    both = sum(run(each, min_gain=0.0).ships for each in draws)
    assert clopper_pearson(student, 4000)[0] > 5 * SHARE
    assert clopper_pearson(both, 4000)[0] <= SHARE


def test_the_order_of_queries_changes_no_answer() -> None:
    difference, groups = differences(600, 0.03), np.arange(600) // 4
    order = np.random.default_rng(1).permutation(600)
    first, second = run(difference, groups), run(difference[order], groups[order])
    assert second.log_e_value == pytest.approx(first.log_e_value)
    assert second.critical_mean == pytest.approx(first.critical_mean)


@pytest.mark.parametrize("p", [0.15, 0.25])
def test_screening_is_one_sided_at_a_fifth(p: float) -> None:
    values = normal(50, seed=5)
    values -= values.mean()
    t = stats.t.isf(p, 49)
    shifted = values + t * values.std(ddof=1) / math.sqrt(50)
    assert is_screened(shifted) == (p > 0.2)


@pytest.mark.parametrize("difference", [np.zeros(30), np.array([0.3]), np.full(30, -0.1)])
def test_what_is_not_better_is_screened(difference: FloatArray) -> None:
    assert is_screened(difference)


def test_a_constant_gain_is_not_screened() -> None:
    assert not is_screened(np.full(30, 0.1))


@pytest.mark.parametrize("tails", ["bounded", "t"])
@pytest.mark.parametrize(("queries", "size"), [(833, 1), (300, 1), (900, 3)])
def test_the_detectable_gain_ships_in_eight_of_ten(queries: int, size: int, tails: Tails) -> None:
    """Groups of a size with one value a group: the design effect is the size."""
    tuning = np.repeat(differences(400, 0.0, seed=2), size)
    gain = detectable_gain(
        tuning, np.arange(len(tuning)) // size, queries=queries, share=SHARE, tails=tails
    )
    assert gain is not None
    random = np.random.default_rng(4)
    values, groups = tuning[::size] - tuning.mean() + gain, np.arange(queries) // size
    ships = sum(
        run(np.repeat(random.choice(values, queries // size), size), groups, tails=tails).ships
        for _ in range(600)
    )
    assert 0.73 < ships / 600 < 0.87


def test_the_detectable_gain_falls_with_queries_and_rises_with_asks() -> None:
    tuning = differences(300, 0.02)

    def gain(queries: int, asks: int, tails: Tails = "bounded") -> float:
        found = detectable_gain(tuning, queries=queries, share=0.05 / asks, tails=tails)
        assert found is not None
        return found

    assert gain(2000, 100) < gain(500, 100) < gain(500, 1000)
    assert gain(500, 100, "t") < gain(500, 100)


@pytest.mark.parametrize(("difference", "queries"), [(np.zeros(50), 500), (normal(50), 19)])
def test_no_gain_is_detectable(difference: FloatArray, queries: int) -> None:
    assert detectable_gain(difference, queries=queries, share=SHARE) is None
