"""Checks against slow and obvious versions of themselves."""

from math import inf, nan

import numpy as np
import pytest
from scipy.stats import t as student

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.measures._base import is_bounded
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.intervals import betting_bound
from fusion_bench.stats.values import Pair
from tests.texts import names_in_order


def contest(
    difference: FloatArray, groups: list[int] | None = None, *, name: str = "RR", m: float = 0.05
) -> Check:
    size = len(difference)
    keys = tuple(f"q{code}" for code in (range(size) if groups is None else groups))
    pair = Pair.from_arrays(
        np.asarray(difference, float), keys=keys, measure=name, is_bounded=is_bounded(name)
    )
    return Check("c", None, m, pair)


def made(seed: int, mean: float = 0.0, size: int = 60) -> FloatArray:
    return np.random.default_rng(seed).normal(mean, 0.2, size).clip(-1, 1)


def test_the_ends_are_those_of_the_inference() -> None:
    groups = (np.arange(60) // 3).tolist()
    checks = [contest(made(5, -0.1), groups), contest(made(6), groups, name="AP")]
    found = run_checks(checks, seed=3)
    rows = infer_family([check.pair for check in checks], seed=3, alpha=0.05)
    for result, row in zip(found, rows, strict=True):
        assert result.difference == row.mean
        assert result.lower_end == row.lower_bound(0.05)
        assert (result.upper_end, result.p) == (row.high, row.p)
        assert result.groups == 20
    assert [result.status for result in found] == ["regressed", "pass"]


def test_the_rates_are_shares_of_the_draws() -> None:
    difference, m = made(5, size=80), 0.05
    [found] = run_checks([contest(difference, m=m)], seed=3)
    [row] = infer_family([contest(difference, m=m).pair], seed=3, alpha=0.05)
    lower, upper = row.one_sided(0.05)[0] * row.errors, row.critical[1] * row.errors
    assert found.pass_rate == np.mean(row.shifts - lower > -m)
    assert found.false_pass_rate == np.mean(row.shifts - lower > 0)
    assert found.regressed_rate == np.mean((row.shifts < -m) & (row.shifts + upper < 0))
    assert found.min_detectable_drop is not None

    def power(drop: float) -> float:
        means = row.shifts - drop
        return float(np.mean((means < -m) & (means + upper < 0)))

    draw = 1 / len(row.shifts)
    assert power(found.min_detectable_drop - 1e-9) <= 0.8 + draw
    assert power(found.min_detectable_drop + 1e-9) >= 0.8


def test_what_may_be_unseen_is_how_far_the_betting_bound_lies_below_the_mean() -> None:
    quiet, noisy = np.zeros(100), made(5, size=100)
    quiet[:2] = [-0.1, 0.1]
    for difference in (quiet, noisy):
        [found] = run_checks([contest(difference)])
        bound = betting_bound(difference, alpha=0.05)
        assert found.unseen_loss == pytest.approx(difference.mean() - bound)
        assert (found.unseen_loss or 0) > 0.029  # 3/n
    [beyond] = run_checks([contest(noisy * 40, name="Judged cost")])
    assert beyond.unseen_loss is None


def test_all_checks_are_one_family_without_those_with_an_error() -> None:
    bad, noise = contest(made(5, -0.1), name="a"), contest(made(9), name="b")
    alone, two, three = (
        run_checks(family)[0]
        for family in ([bad], [bad, noise], [bad, noise, contest(np.array([nan]))])
    )
    assert alone.p is not None
    assert two.p is not None
    assert two.p >= alone.p
    assert three.p == two.p
    assert three.lower_end == two.lower_end == alone.lower_end  # each check is tested alone
    assert two.upper_end is not None
    assert alone.upper_end is not None
    assert two.upper_end > alone.upper_end


def test_several_candidates_share_the_level() -> None:
    checks = [contest(made(5, -0.03))]
    [one], [ten] = run_checks(checks), run_checks(checks, runs=10)
    [row] = infer_family([checks[0].pair], alpha=0.005)
    assert ten.lower_end == row.lower_bound(0.005)
    assert one.lower_end is not None
    assert ten.lower_end < one.lower_end
    assert ten.upper_end == row.high


def test_float_noise_is_no_change() -> None:
    [found] = run_checks([contest(np.full(30, -1e-15))])
    assert (found.changed, found.losses, found.p, found.status) == (0, 0, 1, "unchanged")
    assert found.min_detectable_drop is None
    assert found.false_pass_rate is None
    assert not found.has_few_changes


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_is_a_fault(bad: float) -> None:
    [found] = run_checks([contest(np.array([0.1, bad, 0.2]))])
    assert names_in_order(str(found.error), "1 of 3", "candidate", "not finite")
    assert found.status == "inconclusive"
    assert (found.difference, found.lower_end, found.p) == (None, None, None)


def test_five_lost_and_four_won_of_a_hundred_is_no_regression() -> None:
    difference = np.zeros(100)
    difference[:9] = [-1.0] * 5 + [1.0] * 4
    [found] = run_checks([contest(difference, m=0.005)])
    assert found.status == "inconclusive"
    assert found.p == 1.0  # exact: all flips of an odd number of ±1 reach 1
    assert found.has_few_changes


def test_few_changed_queries_are_decided_by_student_and_by_exact_flips() -> None:
    difference = np.zeros(400)
    difference[:2] = [-0.1, 0.1]
    lost = np.zeros(60)
    lost[:8] = -0.5
    few, fell = run_checks([contest(difference, m=0.005), contest(lost, m=0.005)])
    error = difference.std(ddof=1) / 20
    assert few.lower_end == pytest.approx(-student.ppf(0.95, 399) * error)
    assert (few.status, few.has_few_changes, few.upper_end) == ("pass", True, None)
    assert fell.p == pytest.approx(2 * 2 / 2**8)  # two checks, two of 256 flips
    assert (fell.status, fell.has_few_changes, fell.pass_rate) == ("regressed", True, None)
