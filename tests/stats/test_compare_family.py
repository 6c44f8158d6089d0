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
    compare_family,
    compare_tables,
    compare_with_baseline,
)
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.values import MeasuredValues, Pair, ValueTable

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
    found = compare_with_baseline("nDCG@10", values, "base", seed=3)
    assert [row.candidate for row in found] == ["better", "alike", "slightly"]
    differences = [values[row.candidate] - values["base"] for row in found]
    keys = tuple(map(str, range(QUERIES)))
    family = infer_family([Pair.from_arrays(row, keys=keys) for row in differences], seed=3)
    for row, difference, expected in zip(found, differences, family, strict=True):
        assert (row.measure, row.baseline) == ("nDCG@10", "base")
        assert (row.difference, row.low, row.high) == (expected.mean, expected.low, expected.high)
        assert (row.p, row.standard_error) == (expected.p, expected.error)
        assert row.critical_value == expected.critical[0]
        assert row.baseline_mean == pytest.approx(values["base"].mean())
        assert row.candidate_mean - row.baseline_mean == pytest.approx(row.difference)
        assert row.wins == (difference > 0).sum()
        assert row.losses == (difference < 0).sum()
        assert row.wins + row.ties + row.losses == row.queries == row.groups == QUERIES
        assert row.effect_size == pytest.approx(difference.mean() / difference.std(ddof=1))
        assert row.standard_error == pytest.approx(difference.std(ddof=1) / QUERIES**0.5)
        assert row.min_detectable_difference == expected.detectable
        assert row.loss_share == expected.loss_share
    assert [row.answer for row in found][:2] == ["better", "not shown"]


def test_groups_and_level_are_handed_on() -> None:
    values, groups = systems(), np.arange(QUERIES) // 3
    (row, *_) = compare_with_baseline("m", values, "base", groups=groups, alpha=0.1, seed=9)
    differences = [values[name] - values["base"] for name in ("better", "alike", "slightly")]
    keys = tuple(map(str, groups))
    expected = infer_family(
        [Pair.from_arrays(d, keys=keys) for d in differences], seed=9, alpha=0.1
    )[0]
    assert (row.low, row.high, row.p, row.groups) == (expected.low, expected.high, expected.p, 20)
    named = [f"group {code}" for code in groups]
    again = compare_with_baseline("m", values, "base", groups=named, seed=9)
    assert again[0].difference == row.difference


def test_collections_are_one_family() -> None:
    values = systems()
    systems_ = {name: {"m": MeasuredValues(each)} for name, each in values.items()}
    tables = [
        ValueTable(systems_, "base", ("m",), tuple(f"{name}{i}" for i in range(QUERIES)))
        for name in ("a", "b")
    ]
    alone, both = (
        compare_family(tables[0].pairs("m")),
        compare_tables(tables, min_gain=0.005, seed=0, alpha=0.05),
    )
    assert [len(each) for each in both] == [len(alone)] * 2
    for one, two in zip(alone, both[0], strict=True):
        assert one.difference == two.difference
        assert one.p <= two.p
        assert one.critical_value < two.critical_value
        assert one.low > two.low


def test_order_of_candidates_changes_no_number() -> None:
    values = systems()
    turned = {name: values[name] for name in reversed(values)}
    assert compare_with_baseline("m", turned, "base") == tuple(
        reversed(compare_with_baseline("m", values, "base"))
    )


def test_identical_systems_count_once() -> None:
    values = systems()
    alone = compare_with_baseline("m", values, "base")
    twice = compare_with_baseline("m", values | {"again": values["slightly"].copy()}, "base")
    assert twice[:-1] == alone
    assert twice[-1] == alone[-1].model_copy(update={"candidate": "again"})


def test_a_copy_of_the_baseline_is_no_comparison() -> None:
    values = systems()
    alone = compare_with_baseline("m", values, "base")
    copy = compare_with_baseline("m", {"copy": values["base"] + 1e-15} | values, "base")
    assert copy[1:] == alone
    row = copy[0]
    assert row.p == 1.0
    assert (row.wins, row.ties, row.losses) == (0, QUERIES, 0)
    assert (row.difference, row.low, row.high, row.min_detectable_difference) == (0, 0, 0, None)
    assert row.answer == "identical"


def test_float_noise_is_no_difference() -> None:
    base = np.linspace(0, 1, 50)
    noisy = base + 1e-14
    noisy[3] += 0.5
    (row,) = compare_with_baseline("m", {"base": base, "noisy": noisy}, "base")
    assert (row.wins, row.ties, row.losses) == (1, 49, 0)
    assert row.p == 1.0  # one changed query has no sign to weigh against
    assert row.answer == "not shown"


def test_one_query_shows_nothing() -> None:
    (row,) = compare_with_baseline("m", {"a": np.array([0.1]), "b": np.array([0.9])}, "a")
    assert (row.p, row.min_detectable_difference) == (1.0, None)
    assert math.isnan(row.low)
    assert math.isnan(row.high)
    assert row.answer == "not shown"


def test_the_family_wise_level_holds() -> None:
    """Five systems that are no better: one is declared better or worse in at most α of runs."""
    random, keys = np.random.default_rng(5), tuple(map(str, range(20)))
    trials, wrong = 60, 0
    for _ in range(trials):
        rows = [
            Pair.from_arrays(random.normal(size=20) * random.choice([0.01, 0.1]), keys=keys)
            for _ in range(5)
        ]
        wrong += any(row.p <= 0.1 for row in infer_family(rows, seed=1, alpha=0.1))
    bounds = stats.binomtest(wrong, trials).proportion_ci(0.999)
    assert bounds.low <= 0.1
    assert wrong > 0  # the rule is not idle


def test_refusals_name_the_place() -> None:
    values = systems()
    with pytest.raises(UnknownNameError, match=r"m:.*'bas'.*'base'"):
        compare_with_baseline("m", values, "bas")
    with pytest.raises(ConfigError, match=r"compare m: system 'short'.*\(3,\).*\(60,\)"):
        compare_with_baseline("m", values | {"short": np.ones(3)}, "base")
    with pytest.raises(ConfigError, match="value per query"):
        compare_with_baseline("m", dict.fromkeys(("base", "other"), np.ones((2, 2))), "base")


@pytest.mark.parametrize("name", ["base", "alike"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_is_refused(name: str, wrong: float) -> None:
    values = systems()
    values[name][17] = wrong
    with pytest.raises(DataError, match=rf"compare m: system '{name}', query index 17"):
        compare_with_baseline("m", values, "base")


def test_importing_costs_no_scipy() -> None:
    code = "import sys, fusion_bench.stats.comparison_family; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
