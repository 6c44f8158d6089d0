"""Trials and queries as two sources of chance."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import ComparedValues, compare_alone, compare_family
from fusion_bench.stats.corrections import Correction
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.repeat_variance import (
    RepeatSpread,
    RepeatTerm,
    add_repeat_variance,
    count_disagreements,
    make_repeat_terms,
    measure_repeat_spread,
    move_quantile,
    plan_narrowing,
    split_variance,
)
from tests.stats.samples import binomial_bounds, normal
from tests.stats.trial_cases import crossed


def test_variance_and_freedom_by_hand() -> None:
    spread = RepeatSpread(3, (0.1, 0.2, 0.3), between=0.009, within=0.003, within_freedom=60.0)
    by_queries = MeanEstimate(0.5, 0.0, 1.0, 0.2, 0.04, 25, 25, 24.0)
    estimate = add_repeat_variance(by_queries, (RepeatTerm(spread, 1 / 3),))
    variance = 0.0016 + 0.002
    freedom = variance**2 / (0.0016**2 / 24 + 0.003**2 / 2 + 0.001**2 / 60)
    assert estimate.standard_error == pytest.approx(0.06)
    assert estimate.repeat_variance == pytest.approx(0.002)
    assert estimate.freedom == pytest.approx(freedom)
    assert estimate.high - 0.5 == pytest.approx(0.06 * t_quantile(freedom, 0.975))
    assert estimate.design_effect == pytest.approx(1)  # of groups only


def test_a_limit_alone_is_all_the_variance_where_queries_do_not_differ() -> None:
    sides = np.array([[0.0] * 6, [1.0] * 6]), None
    by_queries = estimate_mean(np.full(6, 0.5))
    estimate = add_repeat_variance(by_queries, make_repeat_terms(sides))
    [term] = make_repeat_terms(sides)
    assert term.is_limit
    assert estimate.freedom == by_queries.freedom == 5
    assert estimate.standard_error == pytest.approx(math.sqrt(term.variance))
    assert estimate.high - 0.5 == pytest.approx(t_quantile(5, 0.975) * math.sqrt(term.variance))


def test_without_trials_or_without_their_effect_the_estimate_is_the_same_object() -> None:
    by_queries = estimate_mean(normal(30))
    steady = np.repeat(normal(1, 30, seed=2), 3, axis=0)
    assert add_repeat_variance(by_queries, make_repeat_terms((None, None))) is by_queries
    assert add_repeat_variance(by_queries, make_repeat_terms((steady, None))) is by_queries
    assert make_repeat_terms((normal(1, 30), None)) == ()


def test_a_system_of_one_trial_is_fixed_or_borrows() -> None:
    values = crossed(4, 30, trial_sd=1.0, seed=1)
    fixed, borrowed = (
        make_repeat_terms((values, None), borrow=borrow)[0] for borrow in (False, True)
    )
    assert (fixed.factor, borrowed.factor) == (0.25, 1.25)
    assert fixed.spread == borrowed.spread == measure_repeat_spread(values)


@pytest.mark.parametrize(("trials", "ratio"), [(2, 27.9596873), (3, 6.15312938)])
def test_few_trials_against_a_fixed_list_add_their_upper_limit(trials: int, ratio: float) -> None:
    """(T − 1) ÷ the .15 quantile of χ² with T − 1 degrees of freedom, by tables."""
    values = crossed(trials, 30, trial_sd=0.1, seed=1)
    [term] = make_repeat_terms((None, values))
    spread = measure_repeat_spread(values)
    expected = ratio * spread.between / trials - spread.within / trials
    assert term.variance == pytest.approx(expected, rel=1e-6)
    by_queries = estimate_mean(values.mean(axis=0))
    estimate = add_repeat_variance(by_queries, (term,))
    assert estimate.freedom == by_queries.freedom == 29
    assert estimate.standard_error**2 == pytest.approx(by_queries.standard_error**2 + expected)


def test_a_chance_of_no_effect_does_not_drop_the_limit() -> None:
    values = crossed(2, 30, residual_sd=0.1, seed=4)
    spread = measure_repeat_spread(values)
    assert spread.variance == 0 < spread.between
    assert make_repeat_terms((values, None))[0].variance > 0


@pytest.mark.parametrize(
    ("sides", "borrow"),
    [
        ((crossed(4, 30, trial_sd=1.0), None), False),
        ((crossed(3, 30, trial_sd=1.0), None), True),
        ((crossed(3, 30, trial_sd=1.0), crossed(3, 30, trial_sd=1.0, seed=1)), False),
        ((crossed(3, 30, trial_sd=1.0),), False),
    ],
)
def test_other_designs_add_the_estimate(sides: tuple[FloatArray | None], borrow: bool) -> None:
    assert not any(term.is_limit for term in make_repeat_terms(sides, borrow=borrow))


def test_two_systems_add_both_terms() -> None:
    first, second = (crossed(3, 30, trial_sd=1.0, seed=seed) for seed in (1, 2))
    terms = make_repeat_terms((first, second))
    estimate = add_repeat_variance(estimate_mean(normal(30)), terms)
    assert estimate.repeat_variance == pytest.approx(
        (measure_repeat_spread(first).variance + measure_repeat_spread(second).variance) / 3
    )


def test_the_freedom_is_not_below_that_of_the_trials() -> None:
    spread = RepeatSpread(3, (0.0, 0.0, 0.0), between=1.0, within=0.99, within_freedom=2.0)
    estimate = add_repeat_variance(
        MeanEstimate(0.0, 0.0, 0.0, 1.0, 1e-6, 9, 9, 8.0), (RepeatTerm(spread, 1 / 3),)
    )
    assert estimate.freedom == 2


def test_one_group_stays_unknown() -> None:
    groups = np.zeros(5, dtype=np.int64)
    values = crossed(3, 5, trial_sd=1.0)
    estimate = estimate_mean(values.mean(axis=0), groups)
    assert add_repeat_variance(estimate, make_repeat_terms((values,), groups)) is estimate


@pytest.mark.parametrize("t", [0.0, math.inf])
def test_the_ends_of_a_quantile_stay(t: float) -> None:
    assert move_quantile(t, 5, 50) == t


def test_a_quantile_keeps_its_tail() -> None:
    assert move_quantile(t_quantile(7, 0.999), 7, 90) == pytest.approx(t_quantile(90, 0.999))


def covers(values: FloatArray, truth: float, groups: IntArray | None = None) -> bool:
    """Whether the interval of the means over trials holds the true mean."""
    terms = make_repeat_terms((values,), groups)
    estimate = add_repeat_variance(estimate_mean(values.mean(axis=0), groups), terms)
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("trial_sd", [0.0, 0.05])
def test_intervals_cover_for_new_trials_and_queries(trial_sd: float) -> None:
    draws = 600
    hits = sum(
        covers(crossed(3, 40, query_sd=0.2, trial_sd=trial_sd, seed=seed), 0.0)
        for seed in range(draws)
    )
    low, high = binomial_bounds(hits, draws)
    assert low <= 0.97
    assert high >= 0.93


@pytest.mark.parametrize("trial_sd", [0.0, 0.05])
def test_intervals_cover_where_queries_come_in_groups(trial_sd: float) -> None:
    """A group's queries share their values, and what a trial does to them."""
    draws, groups = 400, np.repeat(np.arange(30), [1] * 10 + [2] * 10 + [4] * 10)
    hits = 0
    for seed in range(draws):
        shared = crossed(3, 30, query_sd=0.2, trial_sd=trial_sd, seed=seed)[:, groups]
        alone = crossed(3, len(groups), query_sd=0.1, seed=draws + seed)
        hits += covers(shared + alone, 0.0, groups)
    low, high = binomial_bounds(hits, draws)
    assert low <= 0.97
    assert high >= 0.93


# ── the spread of trials against a slow analysis of variance, and against known components


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
    spread, parts = measure_repeat_spread(values), split_variance(values)
    assert parts is not None
    assert spread.between == pytest.approx(of_trials / queries)
    assert spread.within == pytest.approx(residual / queries)
    assert spread.within_freedom == (trials - 1) * (queries - 1)
    assert parts.residual == pytest.approx(residual)
    assert parts.repeats == pytest.approx(max(of_trials - residual, 0) / queries)
    assert parts.queries == pytest.approx(max(of_queries - residual, 0) / trials)


def test_many_trials_and_queries_give_the_components_they_were_drawn_from() -> None:
    values = crossed(200, 400, query_sd=0.3, trial_sd=0.05, residual_sd=0.1, seed=4)
    parts = split_variance(values)
    assert parts is not None
    sds = np.sqrt([parts.queries, parts.repeats, parts.residual])
    assert sds == pytest.approx([0.3, 0.05, 0.1], rel=0.15)
    assert sum(parts.shares) == pytest.approx(1)


def test_identical_trials_have_no_spread() -> None:
    values = np.repeat(normal(1, 50, seed=3), 3, axis=0)
    spread, parts = measure_repeat_spread(values), split_variance(values)
    assert (spread.between, spread.variance, spread.sd) == (0, 0, 0)
    assert spread.within == 0
    assert parts is not None
    assert parts.shares == (1, 0, 0)


def test_a_negative_estimate_is_zero() -> None:
    values = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    spread = measure_repeat_spread(values)
    assert spread.between == 0
    assert spread.within > 0
    assert spread.variance == 0


def test_groups_widen_what_the_queries_alone_explain() -> None:
    # Residuals that a group of 4 queries shares: four times the variance of independent ones.
    shared = np.repeat(normal(200, 30, seed=5), 4, axis=1)
    groups = np.repeat(np.arange(30), 4)
    alone, grouped = measure_repeat_spread(shared), measure_repeat_spread(shared, groups)
    assert grouped.within == pytest.approx(4 * alone.within, rel=0.05)
    assert grouped.within_freedom == 199 * 29
    assert grouped.variance < alone.variance


def test_groups_of_one_query_change_nothing() -> None:
    values = crossed(3, 20, trial_sd=0.1, seed=6)
    assert measure_repeat_spread(values, np.arange(20)) == measure_repeat_spread(values)


def test_one_group_tells_no_spread_over_queries() -> None:
    spread = measure_repeat_spread(normal(3, 5), np.zeros(5, dtype=np.int64))
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
        measure_repeat_spread(values)


def test_disagreements_of_the_first_two_trials_and_of_any() -> None:
    values = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.3, 0.4 + 1e-15], [0.1, 0.2, 0.9, 0.4]])
    assert count_disagreements(values, noise=1e-12) == (1, 2)


# ── families in which systems have trials: nothing changes without them, and answers agree with p


QUERIES = 40
KEYS = tuple(map(str, range(QUERIES)))


def table(systems: dict[str, FloatArray], baseline: str = "base") -> ComparedValues:
    """Systems by their trials, shape (T, Q) each."""
    values = {name: trials.mean(axis=0) for name, trials in systems.items()}
    repeated = {name: trials for name, trials in systems.items() if len(trials) > 1}
    return ComparedValues("m", values, baseline, KEYS, repeats=repeated)


def systems(trial_sd: float, *, shift: float = 0.0, seed: int = 0) -> dict[str, FloatArray]:
    """A baseline and two systems of three trials each, on queries that they share."""
    shared = crossed(1, QUERIES, residual_sd=0.0, seed=seed + 100)
    return {
        name: shared
        + shift * i
        + crossed(3, QUERIES, query_sd=0.1, trial_sd=trial_sd, seed=seed + i)
        for i, name in enumerate(("base", "first", "second"))
    }


def compare(values: ComparedValues, correction: Correction = "max_t") -> tuple[Comparison, ...]:
    return compare_family([values], correction=correction, seed=3, resamples=2_000)[0]


@pytest.mark.parametrize("correction", ["max_t", "holm", "none"])
def test_trials_without_an_effect_leave_every_number_as_it_was(correction: Correction) -> None:
    steady = {name: np.repeat(v[:1], 3, axis=0) for name, v in systems(0.0, shift=0.05).items()}
    with_repeats = table(steady)
    without = ComparedValues("m", with_repeats.values, "base", KEYS)
    for row, plain in zip(
        compare(with_repeats, correction), compare(without, correction), strict=True
    ):
        assert (row.trial_share, plain.trial_share) == (0.0, None)
        names = ("low", "high", "p", "p_adjusted", "critical_value", "answer", "freedom")
        assert [getattr(row, n) for n in names] == [getattr(plain, n) for n in names]


@pytest.mark.parametrize("correction", ["max_t", "holm", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_the_interval_without_zero_is_the_small_p(correction: Correction, seed: int) -> None:
    rows = compare(table(systems(0.03, shift=0.05, seed=10 * seed)), correction)
    for row in rows:
        assert row.p_adjusted is not None
        assert row.p_adjusted >= row.p
        if correction != "holm":  # its intervals are not adjusted
            assert (row.p_adjusted <= 0.05) == (row.low > 0 or row.high < 0)


def test_an_effect_of_trials_widens_the_interval_of_its_systems_only() -> None:
    values = systems(0.0, shift=0.05)
    values["second"] = values["second"] + np.array([[-0.2], [0.0], [0.2]])
    values["base"] = values["base"][:1]
    unsteady = compare(table(values))
    flat = ComparedValues("m", table(values).values, "base", KEYS)
    plain = compare(flat)
    assert unsteady[1].trial_share is not None
    assert unsteady[1].trial_share > 0.5
    assert unsteady[1].high - unsteady[1].low > 1.5 * (plain[1].high - plain[1].low)
    assert unsteady[1].freedom == plain[1].freedom  # three trials of one side: an upper limit
    assert unsteady[0].freedom == plain[0].freedom


def test_a_measure_that_decides_nothing_has_the_same_variance() -> None:
    values = systems(0.1, shift=0.05)
    (alone, _), (family, _) = compare_alone(table(values)), compare(table(values))
    assert alone.standard_error == family.standard_error
    assert alone.freedom == family.freedom
    assert alone.p == family.p
    spreads = [measure_repeat_spread(values[name]) for name in ("first", "base")]
    mean_difference = values["first"].mean(axis=0) - values["base"].mean(axis=0)
    variance = stats.sem(mean_difference) ** 2 + sum(spread.variance for spread in spreads) / 3
    assert alone.standard_error == pytest.approx(np.sqrt(variance))


def test_one_row_of_trials_has_students_interval() -> None:
    values = {name: trials for name, trials in systems(0.1).items() if name != "second"}
    (row,) = compare(table(values))
    assert row.critical_value >= stats.t.ppf(0.975, row.freedom) - 1e-9
    assert row.critical_value == pytest.approx(stats.t.ppf(0.975, row.freedom), rel=0.1)


def test_the_critical_value_of_flips_is_carried_over_by_its_tail() -> None:
    """Of 32 flips the largest t decides, which lies far above Student's quantile."""
    difference = np.array([0.3, 0.1, 0.4, 0.1, 0.5])
    keys = tuple(map(str, range(5)))
    spread = RepeatSpread(3, (0.0, 0.1, 0.2), between=0.01, within=0.001, within_freedom=18.0)
    row = FamilyRow(difference, keys, None, (RepeatTerm(spread, 1 / 3),))
    family = max_t([row], seed=1)
    [result] = family.rows
    freedom = result.estimate.freedom
    assert family.critical_value > stats.t.ppf(0.975, 4)
    tail = stats.t.sf(family.critical_value, 4)
    assert result.critical_value == pytest.approx(stats.t.isf(tail, freedom))
    assert result.critical_value > stats.t.ppf(0.975, freedom)


def test_systems_of_the_same_means_and_other_trials_are_two_rows() -> None:
    values = systems(0.0, shift=0.05)
    moved = values["first"] + np.array([[-0.3], [0.0], [0.3]])
    both = {"base": values["base"][:1], "first": values["first"], "second": moved}
    first, second = compare(table(both), "holm")
    assert first.difference == pytest.approx(second.difference)
    assert first.p < second.p


def test_trials_of_other_queries_are_refused() -> None:
    values = systems(0.0)
    broken = ComparedValues(
        "m", table(values).values, "base", KEYS, repeats={"base": np.ones((3, 0))}
    )
    with pytest.raises(DataError):
        compare(broken)


# ── plans of trials and queries against the intervals that such data then have


def estimate(error: float) -> MeanEstimate:
    """Of 100 queries."""
    return MeanEstimate(0.0, 0.0, 0.0, 0.2, error, 100, 100, 99.0)


def test_the_plan_of_what_is_there_is_the_interval_that_is_there() -> None:
    values = crossed(3, 60, trial_sd=0.05, seed=2)
    by_queries = estimate_mean(values.mean(axis=0))
    plan = plan_narrowing(by_queries, [measure_repeat_spread(values)])
    whole = add_repeat_variance(by_queries, make_repeat_terms((values,)))
    assert plan is not None
    assert whole.repeat_variance > 0
    assert plan.now == pytest.approx((whole.high - whole.low) / 2)


@pytest.mark.parametrize("trials", [2, 3])
def test_the_plan_of_few_trials_against_a_fixed_list_has_their_upper_limit(trials: int) -> None:
    values = crossed(trials, 60, trial_sd=0.05, seed=2)
    by_queries = estimate_mean(values.mean(axis=0))
    plan = plan_narrowing(by_queries, [measure_repeat_spread(values)], is_fixed=True)
    whole = add_repeat_variance(by_queries, make_repeat_terms((values, None)))
    assert plan is not None
    assert plan.now == pytest.approx((whole.high - whole.low) / 2)
    assert plan.all_trials <= plan.one_trial < plan.now


def test_an_effect_of_trials_asks_for_trials() -> None:
    spread = RepeatSpread(3, (0.0, 0.05, 0.1), between=0.0026, within=0.0001, within_freedom=198)
    plan = plan_narrowing(estimate(0.01), [spread])
    assert plan is not None
    assert plan.prefers_repeats
    assert plan.one_trial < plan.more_queries
    assert plan.more_queries == plan.all_queries == plan.now
    assert plan.all_queries > plan.all_trials > 0
    assert plan.added_queries == 34  # 100 answers more, of 3 a query


def test_without_an_effect_of_trials_queries_help_more() -> None:
    spread = RepeatSpread(3, (0.0, 0.0, 0.0), between=0.0, within=0.0001, within_freedom=198)
    plan = plan_narrowing(estimate(0.02), [spread])
    assert plan is not None
    assert not plan.prefers_repeats
    assert plan.all_queries == 0


def test_one_more_trial_divides_what_trials_do_on_single_queries() -> None:
    spread = RepeatSpread(3, (0.0, 0.0, 0.0), between=0.0, within=0.0006, within_freedom=198)
    plan = plan_narrowing(estimate(0.02), [spread])
    assert plan is not None
    error = math.sqrt(0.0004 - 0.0006 / 3 + 0.0006 / 4)
    assert plan.one_trial == pytest.approx(t_quantile(99, 0.975) * error)
    least = math.sqrt(0.0004 - 0.0006 / 3)
    assert plan.all_trials == pytest.approx(t_quantile(99, 0.975) * least)


def test_two_systems_pay_for_their_trials_together() -> None:
    spreads = [measure_repeat_spread(crossed(count, 100, seed=count)) for count in (2, 4)]
    plan = plan_narrowing(estimate(0.02), spreads)
    assert plan is not None
    assert plan.added_queries == 34  # 2 × 100 answers more, of 2 + 4 a query


def test_nothing_to_plan() -> None:
    assert plan_narrowing(estimate(0.02), []) is None
    spread = measure_repeat_spread(normal(3, 100))
    assert plan_narrowing(estimate(math.nan), [spread]) is None


def test_more_trials_come_close_to_the_plan() -> None:
    """The plan of one more trial, averaged, is the interval that one more trial has."""
    planned, measured = [], []
    for seed in range(200):
        values = crossed(4, 50, query_sd=0.1, trial_sd=0.1, seed=seed)
        first = values[:3]
        plan = plan_narrowing(estimate_mean(first.mean(axis=0)), [measure_repeat_spread(first)])
        assert plan is not None
        planned.append(plan.one_trial)
        by_queries = estimate_mean(values.mean(axis=0))
        whole = add_repeat_variance(by_queries, make_repeat_terms((values,)))
        measured.append((whole.high - whole.low) / 2)
    assert np.median(planned) == pytest.approx(np.median(measured), rel=0.15)
