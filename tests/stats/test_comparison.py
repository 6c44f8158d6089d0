"""Which answer the numbers of a comparison give."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import (
    Answer,
    Direction,
    check_skew,
    compute_skewness,
    decide_answer,
    has_few_changes,
    sign_test_p,
    unjudged_decide,
)
from fusion_bench.stats.comparison_family import (
    ComparedValues,
    FusionVerdict,
    compare_family,
    decide_fusion,
    find_first_group,
    find_superior,
)
from fusion_bench.stats.intervals import MeanEstimate, betting_bound, estimate_mean, t_quantile
from fusion_bench.stats.max_t import FamilyRow, RowResult, max_t
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids
from tests.stats.samples import normal

ROW = RowResult(
    estimate=estimate_mean(0.01 + 0.001 * normal(40)),
    p=0.01,
    p_floor=False,
    low=0.001,
    high=0.02,
    critical_value=2.0,
    decision="clear",
    is_within=False,
    within_decision="clear",
)
WORSE = replace(ROW, estimate=estimate_mean(-0.01 + 0.001 * normal(40)))


@pytest.mark.parametrize(
    ("row", "changed", "expected"),
    [
        (ROW, 40, "better"),
        (WORSE, 40, "worse"),
        (replace(ROW, p=0.05), 40, "better"),  # p ≤ α
        (replace(ROW, p=0.0501), 40, "not shown"),
        (replace(ROW, is_within=True), 40, "better, by less than min_gain"),
        (replace(WORSE, is_within=True), 40, "worse, by less than min_gain"),
        (replace(ROW, is_within=True, within_decision="open"), 40, "better"),
        (replace(ROW, p=0.2, is_within=True), 40, "equivalent"),
        (replace(ROW, p=0.2, is_within=True, within_decision="open"), 40, None),
        (replace(ROW, p=0.2, within_decision="open"), 40, None),
        (replace(ROW, decision="open"), 40, None),
        (replace(ROW, p=0.2, is_within=True), 9, "not shown"),  # too few changed queries
        (replace(ROW, is_within=True), 9, "better"),
        (replace(ROW, p=0.2, is_within=True), 10, "equivalent"),
        (replace(ROW, p=1.0, is_within=True), 0, "identical"),
    ],
)
def test_answers(row: RowResult, changed: int, expected: Answer | None) -> None:
    wanted = expected or "not shown (within simulation error)"
    assert decide_answer(row, changed=changed) == wanted


def test_few_groups_are_never_equivalent() -> None:
    groups = np.arange(40) // 3  # 14 groups
    row = replace(ROW, p=0.2, is_within=True, estimate=estimate_mean(normal(40), groups))
    assert decide_answer(row, changed=40) == "not shown"


def test_the_level_is_the_given_one() -> None:
    assert decide_answer(replace(ROW, p=0.02), changed=40, alpha=0.01) == "not shown"
    assert decide_answer(replace(ROW, p=0.08), changed=40, alpha=0.1) == "better"


@pytest.mark.parametrize(
    ("changed", "groups", "expected"),
    [(10, 20, False), (9, 20, True), (10, 19, True), (0, 100, True)],
)
def test_few_changes(changed: int, groups: int, expected: bool) -> None:
    assert has_few_changes(changed, groups) is expected


# ── skewed differences: what is withheld, and what is said beside the answer


def alone(values: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(len(values))


def rare_losses(gain: float, loss: float, count: int = 60, losses: int = 4) -> FloatArray:
    values = np.full(count, gain) + 0.001 * np.arange(count) / count
    values[:losses] = -loss
    return values


def test_gains_on_most_queries_and_large_losses_on_few_are_not_shown() -> None:
    """Sign flips and t find 0.02 in 56 queries clear; 4 losses of 0.05 do not change that."""
    difference = rare_losses(0.02, 0.05)
    base = np.full(60, 0.5)
    table = ComparedValues("m", {"a": base, "b": base + difference}, "a", tuple("q" * 60))
    table = ComparedValues("m", table.values, "a", tuple(f"q{i}" for i in range(60)), True)
    [[row]] = compare_family([table])
    assert row.p_adjusted is not None
    assert row.p_adjusted <= 0.05 < row.low + 0.05
    assert row.answer == "not shown"
    assert row.skew is not None
    assert (row.skew.is_against, row.skew.is_withheld) == (True, True)
    assert row.skew.bound == pytest.approx(betting_bound(row_difference(table), alpha=0.05))


def row_difference(table: ComparedValues) -> FloatArray:
    return table.values["b"] - table.values["a"]


def test_a_bound_above_0_carries_the_answer() -> None:
    difference = rare_losses(0.5, 0.3)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "better"
    assert skew is not None
    assert skew.bound is not None
    assert skew.bound > 0
    assert (skew.is_against, skew.is_withheld) == (True, False)


@pytest.mark.parametrize("small", ["", ", by less than min_gain"])
def test_worse_is_better_turned_around(small: str) -> None:
    difference = rare_losses(0.02, 0.05)
    better: Answer = f"better{small}"  # type: ignore[assignment]
    worse: Answer = f"worse{small}"  # type: ignore[assignment]
    answer, skew = check_skew(better, difference, alone(difference))
    turned, mirrored = check_skew(worse, -difference, alone(difference))
    assert (answer, turned) == ("not shown", "not shown")
    assert skew is not None
    assert mirrored is not None
    assert mirrored.bound == skew.bound
    assert mirrored.skewness == pytest.approx(-skew.skewness)


def test_skewness_in_the_direction_of_the_answer_withholds_nothing() -> None:
    difference = -rare_losses(0.001, 0.5)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "better"
    assert skew is not None
    assert (skew.is_against, skew.bound) == (False, None)
    assert skew.median == np.median(difference)
    assert skew.sign_p == pytest.approx(stats.binomtest(4, 60).pvalue)


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        ("not shown", rare_losses(0.02, 0.05)),
        ("equivalent", rare_losses(0.02, 0.05)),
        ("better", rare_losses(0.02, 0.05, count=100)),
        ("better", normal(60) + 1),
        ("better", np.full(20, 0.1)),
    ],
)
def test_elsewhere_nothing_is_said(answer: Answer, difference: FloatArray) -> None:
    assert check_skew(answer, difference, alone(difference)) == (answer, None)


def test_a_loss_beyond_1_has_no_bound() -> None:
    difference = rare_losses(2.0, 3.0)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "not shown"
    assert skew is not None
    assert skew.bound is None


def test_groups_count_as_one_value() -> None:
    difference = np.repeat(rare_losses(0.02, 0.05), 3)
    answer, skew = check_skew("better", difference, np.repeat(np.arange(60), 3))
    assert answer == "not shown"
    assert skew is not None
    assert check_skew("better", difference, alone(difference)) == ("better", None)  # 180 queries


def test_skewness_and_sign_test_are_scipy_s() -> None:
    values = np.concatenate([normal(40) ** 2, np.zeros(5), [-0.5, -0.25]])
    assert compute_skewness(values) == pytest.approx(stats.skew(values))
    assert sign_test_p(values) == pytest.approx(stats.binomtest(2, 42).pvalue)
    assert sign_test_p(np.zeros(3)) == 1.0
    assert compute_skewness(np.full(4, 0.1)) == 0.0
    assert math.isclose(sign_test_p(np.array([1.0, -1.0])), 1.0)


# ── when unjudged documents decide: one case a row


M = 0.01


def interval(low: float, high: float) -> MeanEstimate:
    any_estimate = estimate_mean(np.array([0.0, 1.0]))
    return replace(any_estimate, mean=(low + high) / 2, low=low, high=high)


@pytest.mark.parametrize(
    ("direction", "low", "high", "filled", "decides"),
    [
        (1, 0.1, 0.2, 0.1, False),
        (1, -0.2, 0.1, 0.1, False),  # over judged documents nothing is shown
        (1, -0.2, -0.1, 0.1, True),
        (1, 0.1, 0.2, -0.1, True),
        (1, 0.1, 0.2, 0.0, False),  # 0 has no sign
        (1, 0.1, 0.2, -1e-14, False),  # nor has float noise
        (1, 0.1, 0.2, None, False),
        (1, 0.1, 0.2, math.nan, True),
        (1, math.nan, math.nan, 0.1, False),  # one group: nothing is shown
        (-1, -0.2, -0.1, -0.1, False),
        (-1, 0.1, 0.2, -0.1, True),
        (-1, -0.2, 0.1, 0.1, True),
        (-1, -0.2, -0.1, math.nan, True),
        (0, -0.1, 0.1, 0.001, False),
        (0, 0.02, 0.1, 0.001, True),
        (0, -0.1, -0.02, 0.001, True),
        (0, 0.002, 0.1, 0.001, False),
        (0, -0.1, 0.1, 0.01, True),
        (0, -0.1, 0.1, -0.02, True),
        (0, -0.1, 0.1, None, False),
        (0, -0.1, 0.1, math.nan, True),
    ],
)
def test_better_worse_and_equivalent(
    direction: Direction, low: float, high: float, filled: float | None, decides: bool
) -> None:
    assert unjudged_decide(direction, interval(low, high), filled, M) is decides


@pytest.mark.parametrize(
    ("low", "high", "filled", "decides"),
    [
        (-0.1, 0.1, 0.0, False),
        (-0.1, 0.1, -0.009, False),
        (-0.1, 0.1, -0.01, True),
        (-0.1, -0.02, 0.0, True),
        (-0.1, -0.005, 0.0, False),
        (-0.1, 0.1, math.nan, True),
        (-0.1, 0.1, None, False),
    ],
)
def test_a_pass(low: float, high: float, filled: float | None, decides: bool) -> None:
    assert unjudged_decide(1, interval(low, high), filled, M, is_pass=True) is decides


@pytest.mark.parametrize("direction", [1, 0, -1])
def test_what_cannot_be_computed_vetoes_nothing(direction: Direction) -> None:
    assert not unjudged_decide(direction, None, None, M)
    assert not unjudged_decide(direction, None, None, M, is_pass=True)
    assert not unjudged_decide(direction, None, None, 0.0, is_pass=True)


# ── whether fusing pays: made data for each verdict, and the family


KEYS = tuple(f"q{i}" for i in range(60))


def near(mean: float, seed: int) -> FloatArray:
    """One system: values around a mean; systems are correlated."""
    return np.asarray(mean + 0.1 * normal(60, seed=100) + 0.03 * normal(60, seed=seed))


SOURCES = {"bm25": near(0.4, 1), "dense": near(0.5, 2)}


@pytest.mark.parametrize(
    ("fusions", "verdict", "pair"),
    [
        ({"rrf": near(0.6, 3), "sum": near(0.3, 4)}, "pays", ("rrf", "dense")),
        ({"rrf": near(0.45, 3), "sum": near(0.3, 4)}, "loses", ("rrf", "dense")),
        ({"rrf": near(0.5, 3), "sum": near(0.3, 4)}, "not shown", ("rrf", "dense")),
        ({"rrf": SOURCES["dense"]}, "not shown", ("rrf", "dense")),
    ],
)
def test_verdicts(
    fusions: dict[str, FloatArray], verdict: FusionVerdict, pair: tuple[str, str]
) -> None:
    answer = decide_fusion(fusions, SOURCES, KEYS, seed=1)
    assert (answer.verdict, answer.fusion, answer.source) == (verdict, *pair)


def test_the_family_is_fusions_times_sources() -> None:
    fusions = {"rrf": near(0.52, 3), "sum": near(0.49, 4)}
    rows = [FamilyRow(f - s, KEYS) for f in fusions.values() for s in SOURCES.values()]
    expected = max_t(rows, seed=5).rows[1]  # rrf − dense
    answer = decide_fusion(fusions, SOURCES, KEYS, seed=5)
    assert (answer.difference, answer.low, answer.high, answer.p_adjusted) == (
        expected.estimate.mean,
        expected.low,
        expected.high,
        expected.p,
    )


# ── the first group: against a slow loop over pairs and flips, with groups and trials, and edges


def compared(values: FloatArray, keys: tuple[str, ...] | None = None) -> ComparedValues:
    names = [f"s{i}" for i in range(len(values))]
    ids = keys or tuple(f"q{i}" for i in range(values.shape[1]))
    return ComparedValues("m", dict(zip(names, values, strict=True)), "s0", ids)


def slow_first_group(table: ComparedValues, seed: int, draws: int) -> set[str]:
    """Every pair alone, under flips of its own residuals."""
    codes = np.unique(table.keys, return_inverse=True)[1]
    ids = sorted(set(table.keys))
    flips = draw_flips(hash_group_ids(seed, ids), 0, draws)
    signs = [dict(zip(ids, np.where(c > 0, 1, -1), strict=True)) for c in flips.T]
    pairs, largest = {}, np.zeros(draws)
    for a, b in itertools.combinations(table.values, 2):
        difference = table.values[a] - table.values[b]
        pairs[a, b] = estimate_mean(difference, codes)
        residual = difference - difference.mean()
        for i, sign in enumerate(signs):
            flipped = estimate_mean(residual * [sign[key] for key in table.keys], codes)
            largest[i] = max(largest[i], abs(flipped.mean) / flipped.standard_error)
    t = {pair: each.mean / each.standard_error for pair, each in pairs.items()}
    values = [*largest, max(map(abs, t.values()))]
    c = sorted(values, reverse=True)[math.floor(0.05 * len(values)) - 1]
    worse = set()
    for (a, b), value in t.items():
        if abs(value) >= max(c, t_quantile(pairs[a, b].freedom, 0.975)):
            worse.add(a if value < 0 else b)
    return set(table.values) - worse


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_what_the_slow_loop_says(shift: float, grouped: bool) -> None:
    values = 0.2 * normal(5, 40, seed=4) + shift * np.arange(5)[:, None] + normal(1, 40, seed=9)
    keys = tuple(f"g{i // 3 if i < 30 else i}" for i in range(40)) if grouped else None
    table = compared(values, keys)
    assert set(find_first_group(table, seed=7, draws=199)) == slow_first_group(table, 7, 199)
    superior = find_superior(table, seed=7)
    assert [name for name in superior if not superior[name]] == [*find_first_group(table, seed=7)]
    means = {name: array.mean() for name, array in table.values.items()}
    assert all(means[high] > means[low] for low in superior for high in superior[low])


def test_the_highest_mean_is_always_in_it() -> None:
    for seed in range(20):
        values = normal(6, 30, seed=seed) * 0.2 + 0.1 * np.arange(6)[:, None]
        best = f"s{values.mean(axis=1).argmax()}"
        assert best in find_first_group(compared(values), seed=seed)


def test_it_names_the_systems_in_their_order_whatever_the_baseline() -> None:
    values = 0.1 * normal(4, 60, seed=1) + np.array([0.5, 0.1, 0.5, 0.0])[:, None]
    assert find_first_group(compared(values)) == ("s0", "s2")
    table = compared(values)
    assert find_first_group(table) == find_first_group(
        ComparedValues("m", table.values, "s3", table.keys)
    )


def test_trials_that_move_all_queries_keep_a_system_in_it() -> None:
    rng = np.random.default_rng(3)
    steady = 0.05 * rng.standard_normal(60) + 0.5
    trials = steady + 0.05 * rng.standard_normal((3, 60)) - np.array([0.0, 0.1, 0.2])[:, None]
    values = np.stack([steady, trials.mean(axis=0)])
    assert find_first_group(compared(values)) == ("s0",)
    names = compared(values)
    unsteady = ComparedValues("m", names.values, "s0", names.keys, repeats={"s1": trials})
    assert find_first_group(unsteady) == ("s0", "s1")


def test_edges() -> None:
    alike = np.tile(np.arange(10) / 10, (3, 1))
    assert find_first_group(compared(alike)) == ("s0", "s1", "s2")
    assert find_first_group(compared(alike[:1])) == ("s0",)
    assert find_first_group(compared(np.array([[0.2], [0.9]]))) == ("s0", "s1")  # no spread
    in_one_group = compared(0.1 * normal(2, 8), ("g",) * 8)
    assert find_first_group(in_one_group) == ("s0", "s1")
