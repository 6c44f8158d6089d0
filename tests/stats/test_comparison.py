"""Comparison records: families, identical systems, verdicts."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.comparison import Answer, Comparison, compare_with_baseline, decide_answer
from fusion_bench.stats.intervals import estimate_mean, minimum_detectable_difference
from fusion_bench.stats.randomization_tests import adjust_holm, randomization_p_values

QUERIES = 60


def systems() -> dict[str, FloatArray]:
    random = np.random.default_rng(1)
    base = random.random(QUERIES)
    return {
        "better": base + 0.1 + 0.1 * random.normal(size=QUERIES),
        "base": base,
        "alike": base + 0.1 * random.normal(size=QUERIES),
        "slightly": base + 0.03 + 0.1 * random.normal(size=QUERIES),
    }


def test_every_number_is_what_statistics_says() -> None:
    values = systems()
    found = compare_with_baseline("nDCG@10", values, "base", primary=True, seed=3)
    assert [row.candidate for row in found] == ["better", "alike", "slightly"]
    matrix = np.stack([values[row.candidate] - values["base"] for row in found])
    p_values = randomization_p_values(matrix, seed=3)
    assert [row.p for row in found] == p_values.tolist()
    assert [row.p_holm for row in found] == adjust_holm(p_values).tolist()
    for row, difference in zip(found, matrix, strict=True):
        one = estimate_mean(difference)
        assert (row.measure, row.baseline) == ("nDCG@10", "base")
        assert (row.difference, row.low, row.high) == (one.mean, one.low, one.high)
        assert row.baseline_mean == pytest.approx(values["base"].mean())
        assert row.candidate_mean == pytest.approx(values[row.candidate].mean())
        assert row.candidate_mean - row.baseline_mean == pytest.approx(row.difference)
        assert row.wins == (difference > 0).sum()
        assert row.losses == (difference < 0).sum()
        assert row.wins + row.ties + row.losses == row.queries == row.groups == QUERIES
        assert row.min_detectable_difference == minimum_detectable_difference(one)
    assert [decide_answer(row, None) for row in found][:2] == ["better", "no difference shown"]


def test_groups_and_level_are_handed_on() -> None:
    values, groups = systems(), np.arange(QUERIES) // 4
    (row, *_) = compare_with_baseline(
        "m", values, "base", groups=groups, primary=True, alpha=0.1, seed=9
    )
    difference = values["better"] - values["base"]
    one = estimate_mean(difference, groups, alpha=0.1)
    assert (row.low, row.high, row.groups) == (one.low, one.high, 15)
    assert row.p == randomization_p_values(difference[None], groups, seed=9)[0]
    assert row.min_detectable_difference == minimum_detectable_difference(one, alpha=0.1)


def test_other_measures_stay_unadjusted() -> None:
    primary = compare_with_baseline("m", systems(), "base", primary=True)
    other = compare_with_baseline("m", systems(), "base", primary=False)
    assert [row.p_holm for row in other] == [None, None, None]
    assert [dataclasses.replace(row, p_holm=None) for row in primary] == list(other)


def test_order_of_candidates_changes_no_number() -> None:
    values = systems()
    turned = {name: values[name] for name in reversed(values)}
    assert compare_with_baseline("m", turned, "base", primary=True) == tuple(
        reversed(compare_with_baseline("m", values, "base", primary=True))
    )


def test_the_seed_decides_and_nothing_else() -> None:
    first = compare_with_baseline("m", systems(), "base", primary=True, seed=1)
    assert compare_with_baseline("m", systems(), "base", primary=True, seed=1) == first
    assert compare_with_baseline("m", systems(), "base", primary=True, seed=2) != first


def test_identical_systems_count_once() -> None:
    values = systems()
    alone = compare_with_baseline("m", values, "base", primary=True)
    twice = compare_with_baseline(
        "m", values | {"again": values["slightly"].copy()}, "base", primary=True
    )
    assert twice[:-1] == alone
    assert twice[-1] == dataclasses.replace(alone[-1], candidate="again")


@pytest.mark.parametrize("primary", [True, False])
def test_a_copy_of_the_baseline_is_no_comparison(primary: bool) -> None:
    values = systems()
    alone = compare_with_baseline("m", values, "base", primary=primary)
    copy = compare_with_baseline(
        "m", {"copy": values["base"] + 1e-15} | values, "base", primary=primary
    )
    assert copy[1:] == alone
    row = copy[0]
    assert (row.p, row.p_holm) == (1.0, 1.0 if primary else None)
    assert (row.wins, row.ties, row.losses) == (0, QUERIES, 0)
    assert (row.difference, row.low, row.high, row.min_detectable_difference) == (0, 0, 0, None)
    assert decide_answer(row, None) == "identical"


def test_negative_zero_is_zero() -> None:
    values = {"base": np.full(9, 0.5), "a": np.zeros(9), "b": -np.zeros(9), "c": np.arange(9) / 8}
    found = {row.candidate: row for row in compare_with_baseline("m", values, "base", primary=True)}
    assert found["a"].p_holm == found["b"].p_holm == pytest.approx(2 * found["a"].p)


def test_nothing_to_test() -> None:
    base = np.ones(4)
    assert compare_with_baseline("m", {"base": base}, "base", primary=True) == ()
    (row,) = compare_with_baseline("m", {"base": base, "same": base}, "base", primary=True)
    assert row.p_holm == 1.0


def test_float_noise_is_no_difference() -> None:
    base = np.linspace(0, 1, 50)
    noisy = base + 1e-14
    noisy[3] += 0.5
    (row,) = compare_with_baseline("m", {"base": base, "noisy": noisy}, "base", primary=True)
    assert (row.wins, row.ties, row.losses) == (1, 49, 0)
    assert row.p == 1.0  # one changed query has no sign to weigh against
    assert decide_answer(row, None) == "no difference shown"


def test_one_query_shows_nothing() -> None:
    (row,) = compare_with_baseline(
        "m", {"a": np.array([0.1]), "b": np.array([0.9])}, "a", primary=True
    )
    assert (row.p, row.min_detectable_difference) == (1.0, None)
    assert math.isnan(row.low)
    assert math.isnan(row.high)
    assert decide_answer(row, None) == "no difference shown"


def test_the_family_wise_level_holds() -> None:
    """Five systems that are no better: one is declared better or worse in at most α of runs."""
    random = np.random.default_rng(5)
    trials, wrong = 300, 0
    for _ in range(trials):
        base = random.random(20)
        values = {"base": base}
        for i in range(5):
            values[str(i)] = base + random.normal(size=20) * random.choice([0.01, 0.1])
        rows = compare_with_baseline("m", values, "base", primary=True, alpha=0.1)
        wrong += any(decide_answer(row, None, alpha=0.1) in ("better", "worse") for row in rows)
    bounds = stats.binomtest(wrong, trials).proportion_ci(0.999)
    assert bounds.low <= 0.1
    assert wrong / trials > 0.04  # independent nulls: Holm is nearly exact, not idle


def test_more_than_fifty_systems_get_more_resamples() -> None:
    values = {str(i): np.full(40, 1.0 + i) for i in range(60)} | {"base": np.zeros(40)}
    rows = compare_with_baseline("m", values, "base", primary=True)
    assert {row.p for row in rows} == {1 / 12_001}


def test_refusals_name_the_place() -> None:
    values = systems()
    with pytest.raises(UnknownNameError, match=r"compare m: unknown baseline 'bas'.*'base'"):
        compare_with_baseline("m", values, "bas", primary=True)
    with pytest.raises(ConfigError, match=r"compare m: system 'short'.*\(3,\).*\(60,\)"):
        compare_with_baseline("m", values | {"short": np.ones(3)}, "base", primary=True)
    with pytest.raises(ConfigError, match="one value per query"):
        compare_with_baseline("m", {"base": np.ones((2, 2))}, "base", primary=True)
    with pytest.raises(ConfigError, match="need at least 10,000"):
        compare_with_baseline("m", values, "base", primary=True, resamples=9_999)
    compare_with_baseline("m", values, "base", primary=True, resamples=10_001)


@pytest.mark.parametrize("name", ["base", "alike"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_is_refused(name: str, wrong: float) -> None:
    values = systems()
    values[name][17] = wrong
    with pytest.raises(DataError, match=rf"compare m: system '{name}', query index 17"):
        compare_with_baseline("m", values, "base", primary=True)


def test_inputs_are_not_written() -> None:
    values, groups = systems(), np.arange(QUERIES) // 2
    before = {name: array.copy() for name, array in values.items()}
    for array in (*values.values(), groups):
        array.setflags(write=False)
    compare_with_baseline("m", values, "base", groups=groups, primary=True)
    assert all((values[name] == before[name]).all() for name in values)


def row_with(
    difference: float = 0.1, p: float = 0.01, p_holm: float | None = 0.02, changed: int = 5
) -> Comparison:
    wins, losses = (changed, 0) if difference > 0 else (0, changed)
    return Comparison(
        measure="m",
        baseline="a",
        candidate="b",
        baseline_mean=0.5,
        candidate_mean=0.5 + difference,
        difference=difference,
        low=math.nan,
        high=math.nan,
        p=p,
        p_holm=p_holm,
        wins=wins,
        ties=10 - changed,
        losses=losses,
        min_detectable_difference=None,
        queries=10,
        groups=10,
    )


@pytest.mark.parametrize(
    ("row", "judged", "expected"),
    [
        (row_with(), None, "better"),
        (row_with(difference=-0.1), None, "worse"),
        (row_with(p_holm=0.05), None, "no difference shown"),  # α itself is not below α
        (row_with(p_holm=0.2), None, "no difference shown"),  # the adjusted p decides …
        (row_with(p_holm=None), None, "better"),  # … where there is one
        (row_with(p=0.2, p_holm=None), None, "no difference shown"),
        (row_with(p_holm=math.nan), None, "no difference shown"),
        (row_with(difference=0.0), None, "no difference shown"),
        (row_with(difference=1e-13), None, "no difference shown"),
        (row_with(), 0.05, "better"),
        (row_with(), -0.05, "no verdict"),
        (row_with(difference=-0.1), 0.05, "no verdict"),
        (row_with(difference=-0.1), -0.05, "worse"),
        (row_with(p_holm=0.9), -0.05, "no verdict"),  # said of every row, not only of sure ones
        (row_with(), 0.0, "better"),
        (row_with(), -1e-13, "better"),  # float noise has no sign
        (row_with(difference=1e-13), -0.05, "no difference shown"),
        (row_with(), math.nan, "no verdict"),  # could not be measured: nothing is claimed
        (row_with(changed=0, difference=0.0, p=1.0, p_holm=1.0), None, "identical"),
        (row_with(changed=0, difference=0.0, p=1.0, p_holm=1.0), -0.05, "identical"),
    ],
)
def test_verdict(row: Comparison, judged: float | None, expected: Answer) -> None:
    assert decide_answer(row, judged) == expected


def test_verdict_uses_the_level_it_is_given() -> None:
    assert decide_answer(row_with(p_holm=0.02), None, alpha=0.01) == "no difference shown"
    assert decide_answer(row_with(p_holm=0.08), None, alpha=0.1) == "better"


def test_importing_costs_no_scipy() -> None:
    code = "import sys, fusion_bench.stats.comparison; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
