"""Comparisons with a baseline: families, identical systems, records."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.comparison_family import (
    ComparedValues,
    compare_family,
    compare_with_baseline,
)
from fusion_bench.stats.corrections import Correction, adjust_holm
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.power import detectable_difference

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
    differences = [values[row.candidate] - values["base"] for row in found]
    keys = tuple(map(str, range(QUERIES)))
    family = max_t([FamilyRow(row, keys, 0.005) for row in differences], seed=3)
    for row, difference, expected in zip(found, differences, family.rows, strict=True):
        estimate = estimate_mean(difference)
        assert (row.measure, row.baseline) == ("nDCG@10", "base")
        assert (row.difference, row.low, row.high) == (estimate.mean, expected.low, expected.high)
        assert (row.p_adjusted, row.p_floor) == (expected.p, expected.p_floor)
        assert row.p == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)
        assert row.critical_value == expected.critical_value >= family.critical_value
        assert row.baseline_mean == pytest.approx(values["base"].mean())
        assert row.candidate_mean - row.baseline_mean == pytest.approx(row.difference)
        assert row.wins == (difference > 0).sum()
        assert row.losses == (difference < 0).sum()
        assert row.wins + row.ties + row.losses == row.queries == row.groups == QUERIES
        assert row.effect_size == pytest.approx(difference.mean() / difference.std(ddof=1))
        assert row.min_detectable_difference == detectable_difference(
            row.standard_error, row.critical_value, freedom=row.freedom
        )
        assert (row.standard_error, row.freedom) == (estimate.standard_error, QUERIES - 1)
    assert [row.answer for row in found][:2] == ["better", "not shown"]


def test_groups_and_level_are_handed_on() -> None:
    values, groups = systems(), np.arange(QUERIES) // 3
    (row, *_) = compare_with_baseline(
        "m", values, "base", groups=groups, primary=True, alpha=0.1, seed=9
    )
    differences = [values[name] - values["base"] for name in ("better", "alike", "slightly")]
    keys = tuple(map(str, groups))
    family = max_t([FamilyRow(d, keys, 0.005) for d in differences], seed=9, alpha=0.1)
    expected = family.rows[0]
    assert (row.low, row.high, row.groups) == (expected.low, expected.high, 20)
    assert (row.p_adjusted, row.freedom) == (expected.p, 19)
    named = [f"group {code}" for code in groups]
    again = compare_with_baseline("m", values, "base", groups=named, primary=True, seed=9)
    assert again[0].difference == row.difference


def test_collections_are_one_family() -> None:
    values = systems()
    tables = [
        ComparedValues("m", values, "base", tuple(f"{name}{i}" for i in range(QUERIES)))
        for name in ("a", "b")
    ]
    alone, both = compare_family(tables[:1])[0], compare_family(tables)
    assert len(both) == 2
    for one, two in zip(alone, both[0], strict=True):
        assert (one.difference, one.p) == (two.difference, two.p)
        assert one.critical_value < two.critical_value
        assert one.low > two.low


def test_corrections() -> None:
    values = systems()
    corrections: list[Correction] = ["max_t", "holm", "none"]
    found = {
        correction: compare_with_baseline(
            "m", values, "base", primary=True, correction=correction, seed=3
        )
        for correction in corrections
    }
    plain = [row.p_adjusted for row in found["none"] if row.p_adjusted is not None]
    assert [row.p_adjusted for row in found["holm"]] == adjust_holm(np.array(plain)).tolist()
    for names in zip(*found.values(), strict=True):
        family, holm, none = names
        assert none.p_adjusted <= (family.p_adjusted or 0)
        assert (holm.low, holm.high) == (none.low, none.high)
        assert none.high < family.high
        assert none.min_detectable_difference < (family.min_detectable_difference or 0)
        assert none.min_detectable_difference < (holm.min_detectable_difference or 0)
        for row in names:  # no answer beside an interval that says otherwise
            if row.answer in ("better", "worse"):
                assert row.low >= 0 or row.high <= 0
    with pytest.raises(UnknownNameError, match="unknown correction 'bonferroni'"):
        compare_with_baseline("m", values, "base", primary=True, correction="bonferroni")  # type: ignore[arg-type]


def test_other_measures_have_t_intervals() -> None:
    values = systems()
    for row in compare_with_baseline("m", values, "base", primary=False):
        difference = values[row.candidate] - values["base"]
        estimate = estimate_mean(difference)
        assert (row.low, row.high) == (estimate.low, estimate.high)
        assert row.p == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)
        assert (row.p_adjusted, row.answer, row.p_floor) == (None, None, False)


@pytest.mark.parametrize("primary", [True, False])
def test_intervals_stay_where_values_can_be(primary: bool) -> None:
    values = {"base": np.zeros(5), "x": np.array([1.0, 1.0, 1.0, 1.0, 0.0])}
    (row,) = compare_with_baseline("m", values, "base", primary=primary, is_bounded=True)
    (free,) = compare_with_baseline("m", values, "base", primary=primary)
    assert row.high == 1.0 < free.high or math.isnan(free.high)
    assert -1 <= row.low <= row.difference <= row.high <= 1


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
    assert twice[-1] == alone[-1].model_copy(update={"candidate": "again"})


@pytest.mark.parametrize("primary", [True, False])
def test_a_copy_of_the_baseline_is_no_comparison(primary: bool) -> None:
    values = systems()
    alone = compare_with_baseline("m", values, "base", primary=primary)
    copy = compare_with_baseline(
        "m", {"copy": values["base"] + 1e-15} | values, "base", primary=primary
    )
    assert copy[1:] == alone
    row = copy[0]
    assert (row.p, row.p_adjusted) == (1.0, 1.0 if primary else None)
    assert (row.wins, row.ties, row.losses) == (0, QUERIES, 0)
    assert (row.difference, row.low, row.high, row.min_detectable_difference) == (0, 0, 0, None)
    assert row.answer == ("identical" if primary else None)


def test_negative_zero_is_zero() -> None:
    values = {"base": np.full(9, 0.5), "a": np.zeros(9), "b": -np.zeros(9), "c": np.arange(9) / 8}
    found = {row.candidate: row for row in compare_with_baseline("m", values, "base", primary=True)}
    assert found["a"].p_adjusted == found["b"].p_adjusted


def test_nothing_to_test() -> None:
    base = np.ones(4)
    assert compare_with_baseline("m", {"base": base}, "base", primary=True) == ()
    (row,) = compare_with_baseline("m", {"base": base, "same": base}, "base", primary=True)
    assert row.p_adjusted == 1.0


def test_float_noise_is_no_difference() -> None:
    base = np.linspace(0, 1, 50)
    noisy = base + 1e-14
    noisy[3] += 0.5
    (row,) = compare_with_baseline("m", {"base": base, "noisy": noisy}, "base", primary=True)
    assert (row.wins, row.ties, row.losses) == (1, 49, 0)
    assert row.p_adjusted == 1.0  # one changed query has no sign to weigh against
    assert (row.answer, row.few_changes) == ("not shown", True)


def test_one_query_shows_nothing() -> None:
    (row,) = compare_with_baseline(
        "m", {"a": np.array([0.1]), "b": np.array([0.9])}, "a", primary=True
    )
    assert (row.p, row.min_detectable_difference) == (1.0, None)
    assert math.isnan(row.low)
    assert math.isnan(row.high)
    assert row.answer == "not shown"


def test_the_family_wise_level_holds() -> None:
    """Five systems that are no better: one is declared better or worse in at most α of runs."""
    random, keys = np.random.default_rng(5), tuple(map(str, range(20)))
    trials, wrong = 100, 0
    for _ in range(trials):
        base = random.random(20)
        values = {"base": base}
        for i in range(5):
            values[str(i)] = base + random.normal(size=20) * random.choice([0.01, 0.1])
        rows = [FamilyRow(values[str(i)] - base, keys) for i in range(5)]
        family = max_t(rows, seed=1, alpha=0.1, first_draws=500, most_draws=500)
        wrong += any(row.p <= 0.1 for row in family.rows)
    bounds = stats.binomtest(wrong, trials).proportion_ci(0.999)
    assert bounds.low <= 0.1
    assert wrong / trials > 0.02  # max-T is nearly exact, not idle


def test_refusals_name_the_place() -> None:
    values = systems()
    with pytest.raises(UnknownNameError, match=r"m:.*'bas'.*'base'"):
        compare_with_baseline("m", values, "bas", primary=True)
    with pytest.raises(ConfigError, match=r"compare m: system 'short'.*\(3,\).*\(60,\)"):
        compare_with_baseline("m", values | {"short": np.ones(3)}, "base", primary=True)
    with pytest.raises(ConfigError, match="value per query"):
        compare_with_baseline("m", {"base": np.ones((2, 2))}, "base", primary=True)
    with pytest.raises(ConfigError, match=r"1.*1,000,000"):
        compare_with_baseline("m", values, "base", primary=True, resamples=2_000_000)


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


def test_importing_costs_no_scipy() -> None:
    code = "import sys, fusion_bench.stats.comparison_family; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
