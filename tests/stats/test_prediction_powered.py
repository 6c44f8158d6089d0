"""Means under people's grades, from few of theirs and many of a machine's."""

import math

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.intervals import estimate_mean, t_quantile
from fusion_bench.stats.prediction_powered import (
    PoweredMean,
    estimate_powered_mean,
    fit_line,
    means_without_groups,
    plan_judging,
    satterthwaite_freedom,
)


def _draw(queries: int, *, correlation: float, seed: int = 3) -> tuple[FloatArray, FloatArray]:
    """People's values with mean .1, and a machine's, which lie 2 too high."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=(2, queries))
    people = 0.1 + correlation * shared + math.sqrt(1 - correlation**2) * own
    return people, shared + 2


def test_estimate_is_the_machine_mean_and_the_rectifier() -> None:
    people, machine = _draw(200, correlation=0.8)
    sampled = np.arange(0, 200, 8)

    found = estimate_powered_mean(people[sampled], machine, sampled)

    rectifier = (people - found.weight * machine)[sampled].mean()
    assert found.mean == pytest.approx(found.weight * machine.mean() + rectifier)


def test_variance_is_that_of_hc3_and_of_the_machine_mean() -> None:
    people, machine = _draw(60, correlation=0.5)
    sampled = np.arange(12)
    found = estimate_powered_mean(people[sampled], machine, sampled)

    design = np.column_stack([np.ones(12), machine[:12] - machine.mean()])
    inverse = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residuals = people[:12] - design @ (inverse @ design.T @ people[:12])
    hc3 = inverse @ (design.T * (residuals / (1 - leverage)) ** 2) @ design @ inverse
    model = inverse * (residuals @ residuals) / 10
    second = (found.weight * machine.std(ddof=1)) ** 2 / 60
    assert found.sample_variance == pytest.approx(max(hc3[0, 0], model[0, 0]))
    assert found.standard_error == pytest.approx(math.sqrt(found.sample_variance + second))
    freedom = satterthwaite_freedom(found.sample_variance, second, 10, 59)
    assert found.half_width == pytest.approx(t_quantile(freedom, 0.975) * found.standard_error)


def test_people_who_judged_everything_decide_alone() -> None:
    people, machine = _draw(40, correlation=0.6)

    found = estimate_powered_mean(people, machine, np.arange(40))

    assert found.mean == pytest.approx(people.mean())
    assert found.standard_error == pytest.approx(people.std(ddof=1) / math.sqrt(40), rel=0.1)


def test_machine_without_spread_leaves_people_alone() -> None:
    people, _ = _draw(12, correlation=0)

    found = estimate_powered_mean(people, np.full(50, 0.7), np.arange(12))

    assert found.weight == 0
    assert found.mean == pytest.approx(people.mean())
    assert found.low <= estimate_mean(people).low  # one degree of freedom less


def test_groups_widen_the_interval() -> None:
    people, machine = (np.repeat(values, 4) for values in _draw(40, correlation=0.5))
    sampled = np.arange(0, 80)

    alone = estimate_powered_mean(people[sampled], machine, sampled)
    grouped = estimate_powered_mean(people[sampled], machine, sampled, np.repeat(np.arange(40), 4))

    assert grouped.mean == alone.mean
    assert grouped.half_width > 1.7 * alone.half_width
    assert grouped.freedom < alone.freedom
    assert (grouped.people.groups, grouped.machine.groups) == (20, 40)


def test_order_of_the_queries_is_irrelevant() -> None:
    people, machine = _draw(50, correlation=0.4)
    sampled = np.array([4, 9, 16, 25, 36, 49])
    order = np.random.default_rng(5).permutation(50)
    place = np.argsort(order)[sampled][::-1]

    found = estimate_powered_mean(people[sampled], machine, sampled)
    other = estimate_powered_mean(people[sampled][::-1], machine[order], place)

    assert (other.low, other.high) == pytest.approx((found.low, found.high))


def test_p_and_interval_agree() -> None:
    people, machine = _draw(80, correlation=0.9)
    found = estimate_powered_mean(people[:20], machine, np.arange(20))

    edge = estimate_powered_mean(people[:20], machine, np.arange(20), alpha=found.p)

    assert min(abs(edge.low), abs(edge.high)) == pytest.approx(0, abs=1e-9)


def test_constant_values_have_no_width() -> None:
    found = estimate_powered_mean(np.zeros(5), np.zeros(9), np.arange(5))

    assert (found.mean, found.half_width, found.p) == (0, 0, 1)


def test_clipped_interval_stays_where_means_can_be() -> None:
    people, machine = _draw(20, correlation=0)

    found = estimate_powered_mean(4 * people[:5], machine, np.arange(5)).clip(-1, 1)

    assert (found.low, found.high) == (-1, 1)
    assert found.half_width > 1


def test_interval_covers_and_the_machine_alone_does_not() -> None:
    """The machine lies 2 too high, and its slope is not 1; docs/studies/judges.md has real ones."""
    runs, covered, naive, widths = 400, 0, 0, []
    for seed in range(runs):
        people, machine = _draw(120, correlation=0.9, seed=seed)
        found = estimate_powered_mean(people[:10], machine, np.arange(10))
        covered += found.low <= 0.1 <= found.high
        naive += found.machine.low <= 0.1 <= found.machine.high
        widths.append(found.half_width / (found.people.high - found.people.mean))
    assert covered >= 0.93 * runs
    assert naive == 0
    assert np.mean(widths) < 0.65


@pytest.mark.parametrize("sampled", [[0, 1, 2, 2], [0, 1, 2, 9], [-1, 0, 1, 2], [0, 1, 2]])
def test_positions_that_are_none_are_refused(sampled: list[int]) -> None:
    with pytest.raises(ConfigError, match="position"):
        estimate_powered_mean(np.zeros(4), np.zeros(9), np.array(sampled))


def test_too_few_groups_are_refused() -> None:
    groups = np.array([0, 0, 1, 2, 3])

    with pytest.raises(ConfigError, match=r"3 groups, .* 4 "):
        estimate_powered_mean(np.zeros(4), np.zeros(5), np.arange(4), groups)


@pytest.mark.parametrize("which", ["people", "machine"])
def test_values_that_are_no_numbers_are_refused(which: str) -> None:
    values = {"people": np.zeros(4), "machine": np.zeros(9)}
    values[which][2] = math.nan

    with pytest.raises(DataError, match="value 2 is nan"):
        estimate_powered_mean(values["people"], values["machine"], np.arange(4))


def test_freedom_of_a_sum_lies_between() -> None:
    assert satterthwaite_freedom(0.3, 0, 8, 299) == pytest.approx(8)
    assert satterthwaite_freedom(0, 0.3, 8, 299) == pytest.approx(299)
    assert satterthwaite_freedom(0, 0, 8, 299) == 8
    assert 8 < satterthwaite_freedom(0.3, 0.3, 8, 299) < 307


def test_record_names_what_it_holds() -> None:
    people, machine = _draw(50, correlation=0.4)

    found = estimate_powered_mean(people[:9], machine, np.arange(9))

    assert isinstance(found, PoweredMean)
    assert (found.people.queries, found.machine.queries) == (9, 50)
    assert found.people.mean == pytest.approx(people[:9].mean())


# ── how many more queries people would have to judge


def _estimate(people: int, queries: int, *, noise: float, seed: int = 7) -> PoweredMean:
    rng = np.random.default_rng(seed)
    machine = rng.normal(size=queries)
    values = machine + noise * rng.normal(size=queries)
    return estimate_powered_mean(values[:people], machine, np.arange(people))


def test_expected_width_at_hand_is_the_width_at_hand() -> None:
    estimate = _estimate(30, 400, noise=2)

    plan = plan_judging(estimate, (30, 60, 400))

    assert plan.expected[30] == pytest.approx(estimate.half_width)
    assert plan.expected[400] == pytest.approx(plan.least_half_width)
    assert plan.expected[60] < plan.expected[30]


def test_halving_needs_about_four_times_the_queries() -> None:
    """Where the machine's part is small."""
    estimate = _estimate(30, 100_000, noise=2)

    plan = plan_judging(estimate)

    assert plan.halving is not None
    assert 90 < plan.halving < 120
    assert plan_judging(estimate, (plan.halving,)).expected[plan.halving] <= plan.half_width / 2
    fewer = plan.halving - 1
    assert plan_judging(estimate, (fewer,)).expected[fewer] > plan.half_width / 2


@pytest.mark.parametrize(("people", "ratio"), [(10, 6.1), (200, 1.5)])
def test_range_of_the_number_is_wide_where_few_queries_say_it(people: int, ratio: float) -> None:
    plan = plan_judging(_estimate(people, 100_000, noise=2))

    least, most = plan.added_range
    assert least is not None
    assert plan.added is not None
    assert plan.halving == people + plan.added
    assert most is not None
    assert least < plan.added < most
    assert (people + most) / (people + least) == pytest.approx(ratio, abs=0.1)


def test_end_of_the_range_may_be_out_of_reach() -> None:
    plan = plan_judging(_estimate(20, 130, noise=3))

    assert plan.halving is not None
    assert plan.added_range[1] is None


def test_planned_width_comes_about() -> None:
    widths = [
        (
            plan_judging(_estimate(25, 500, noise=1, seed=seed), (100,)).expected[100],
            _estimate(100, 500, noise=1, seed=seed).half_width,
        )
        for seed in range(60)
    ]
    planned, measured = np.mean(widths, axis=0)
    assert planned == pytest.approx(measured, rel=0.08)


def test_nothing_halves_what_only_more_queries_would() -> None:
    plan = plan_judging(_estimate(80, 100, noise=0.5))

    assert plan.halving is None
    assert plan.least_half_width > plan.half_width / 2


def test_people_alone_need_more_queries_where_the_machine_helps() -> None:
    assert plan_judging(_estimate(40, 2_000, noise=0.3)).people_alone > 200
    assert plan_judging(_estimate(40, 2_000, noise=30)).people_alone < 45


def test_sizes_that_no_sample_can_have_are_left_out() -> None:
    assert set(plan_judging(_estimate(40, 100, noise=1), (20, 80, 160)).expected) == {80}


def test_constant_values_leave_nothing_to_halve() -> None:
    plan = plan_judging(estimate_powered_mean(np.zeros(6), np.zeros(9), np.arange(6)))

    assert (plan.half_width, plan.least_half_width, plan.people_alone) == (0, 0, 6)
    assert plan.halving is None


# ── the line through the queries that both judged, and the line without each group


def test_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    machine = rng.normal(size=9)
    people = 0.3 + 0.7 * machine + rng.normal(size=9)
    slope, intercept = np.polyfit(machine, people, 1)

    line = fit_line(people, machine, machine_mean=0.4)

    assert line.slope == pytest.approx(slope)
    assert line.mean == pytest.approx(intercept + slope * 0.4)
    residuals = people - intercept - slope * machine
    assert line.residual_squares == pytest.approx(residuals @ residuals)
    assert line.squared_distance == pytest.approx((0.4 - machine.mean()) ** 2 / (9 * machine.var()))


def test_machine_that_says_nothing_has_slope_0() -> None:
    people = np.array([0.1, 0.4, 0.3])

    line = fit_line(people, np.full(3, 0.1 + 0.2), machine_mean=0.9)

    assert (line.slope, line.squared_distance) == (0, 0)
    assert line.mean == pytest.approx(people.mean())


@pytest.mark.parametrize("groups", [np.arange(8), np.array([0, 1, 1, 2, 3, 2, 1, 0])])
def test_mean_without_a_group_is_that_of_the_other_queries(groups: IntArray) -> None:
    rng = np.random.default_rng(2)
    people, machine = rng.normal(size=(2, 8)) + 5

    means = means_without_groups(people, machine, 4.8, groups)

    each = [groups != group for group in range(groups.max() + 1)]
    expected = [fit_line(people[kept], machine[kept], 4.8).mean for kept in each]
    assert means == pytest.approx(expected)


def test_slope_that_rests_on_one_query_is_0_without_it() -> None:
    people = np.array([1.0, 0.0, 0.2, 0.4])
    machine = np.array([1.0, 0.0, 0.0, 0.0])

    means = means_without_groups(people, machine, 0.5, np.arange(4))

    assert means[0] == pytest.approx(0.2)
