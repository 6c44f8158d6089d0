"""How many more queries people would have to judge."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.stats.prediction_powered import PoweredMean, estimate_powered_mean, plan_judging


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
