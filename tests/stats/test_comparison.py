"""Which answer the numbers of a comparison give."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Answer, decide_answer
from fusion_bench.stats.comparison_family import (
    FusionVerdict,
    decide_fusion,
    find_first_group,
)
from fusion_bench.stats.inference import RowInference, Units, draw_counts, find_rivals, infer_family
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.unjudged import Direction, unjudged_decide
from fusion_bench.stats.values import MeasuredValues, Pair, ValueTable
from tests.stats.samples import normal

M = 0.01
ROW = RowInference(0.01, 0.001, 40, 40, low=0.001, high=0.02, p=0.01)
INSIDE = replace(ROW, mean=0.004, high=0.008)
NONE = replace(ROW, low=math.nan, high=math.nan)


def mirror(row: RowInference) -> RowInference:
    return replace(row, mean=-row.mean, low=-row.high, high=-row.low)


@pytest.mark.parametrize(
    ("row", "changed", "expected"),
    [
        (ROW, 40, "better"),
        (mirror(ROW), 40, "worse"),
        (replace(ROW, p=0.05), 40, "better"),  # p ≤ α
        (replace(ROW, p=0.0501), 40, "not shown"),
        (INSIDE, 40, "better, by less than min_gain"),
        (mirror(INSIDE), 40, "worse, by less than min_gain"),
        (replace(INSIDE, p=0.2, low=-0.002), 40, "equivalent"),
        (replace(INSIDE, p=0.2, low=-0.011), 40, "not shown"),
        (replace(INSIDE, p=0.2, low=-0.002, high=0.01), 40, "not shown"),  # m itself is a gain
        (NONE, 9, "better"),
        (replace(NONE, p=0.2), 9, "not shown"),  # without an interval nothing is equivalent
        (replace(ROW, p=1.0), 0, "identical"),
        (RowInference(0.0, 0.0, 40, 0, low=0.0, high=0.0), 4, "not shown"),  # groups cancel
    ],
)
def test_answers(row: RowInference, changed: int, expected: Answer) -> None:
    assert decide_answer(row, changed=changed, min_gain=M) == expected


def test_the_level_is_the_given_one() -> None:
    assert decide_answer(replace(ROW, p=0.02), changed=40, min_gain=M, alpha=0.01) == "not shown"
    assert decide_answer(replace(ROW, p=0.08), changed=40, min_gain=M, alpha=0.1) == "better"


# ── when unjudged documents decide: one case a row


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


def paired(fusions: dict[str, FloatArray]) -> dict[tuple[str, str], Pair]:
    return {
        (fusion, source): Pair.from_arrays(values, alone, KEYS)
        for fusion, values in fusions.items()
        for source, alone in SOURCES.items()
    }


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
    answer = decide_fusion(paired(fusions), seed=1)
    assert (answer.verdict, answer.fusion, answer.source) == (verdict, *pair)


def test_the_family_is_fusions_times_sources() -> None:
    fusions = {"rrf": near(0.52, 3), "sum": near(0.49, 4)}
    rows = [Pair.from_arrays(f - s, keys=KEYS) for f in fusions.values() for s in SOURCES.values()]
    expected = infer_family(rows, seed=5)[1]  # rrf − dense
    answer = decide_fusion(paired(fusions), seed=5)
    assert (answer.difference, answer.low, answer.high, answer.p) == pytest.approx(
        (expected.mean, expected.low, expected.high, expected.p), abs=1e-12
    )


# ── the first group: against a slow loop over pairs and draws, with groups and trials, and edges


def compared(values: FloatArray, keys: tuple[str, ...] | None = None) -> ValueTable:
    names = [f"s{i}" for i in range(len(values))]
    ids = keys or tuple(f"q{i}" for i in range(values.shape[1]))
    systems = {name: {"m": MeasuredValues(row)} for name, row in zip(names, values, strict=True)}
    return ValueTable(systems, "s0", ("m",), ids)


def slow_first_group(table: ValueTable, seed: int, alpha: float = 0.05) -> set[str]:
    """Every pair alone, in units of the quantile of its own |t*|."""
    units, values = Units.from_keys(table.keys), table.values_of("m")
    counts = draw_counts(units.digest, len(units.sizes), seed, 10_000).astype(float)
    n, g = units.sizes, len(units.sizes)
    t, own, drawn_t = {}, [], []
    for a, b in itertools.combinations(values, 2):
        sums = np.bincount(units.codes, values[a].values - values[b].values, g)
        mean = sums.sum() / n.sum()
        drawn = (counts @ sums) / (counts @ n)
        error = np.sqrt(g / (g - 1) * ((sums - mean * n) ** 2).sum()) / n.sum()
        squares = [
            float(count @ (sums - m * n) ** 2) for count, m in zip(counts, drawn, strict=True)
        ]
        errors = np.sqrt(g / (g - 1) * np.array(squares)) / (counts @ n)
        strayed = np.abs((drawn - mean) / errors)
        own.append(np.sort(strayed)[-math.floor(10_001 * alpha)])
        t[a, b] = mean / error
        drawn_t.append(strayed)
    least = max(float(np.median(own)), t_quantile(g - 1, 1 - alpha / 2))
    scales = [max(each / 1.2, least) for each in own]
    scaled = [strayed / scale for strayed, scale in zip(drawn_t, scales, strict=True)]
    t = {pair: value / scale for (pair, value), scale in zip(t.items(), scales, strict=True)}
    c = max(np.sort(np.max(scaled, axis=0))[-math.floor(10_001 * alpha)], 1.0)
    worse = {a if value < 0 else b for (a, b), value in t.items() if abs(value) > c}
    return set(values) - worse


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_what_the_slow_loop_says(shift: float, grouped: bool) -> None:
    values = 0.2 * normal(5, 40, seed=4) + shift * np.arange(5)[:, None] + normal(1, 40, seed=9)
    keys = tuple(f"g{i // 3 if i < 30 else i}" for i in range(40)) if grouped else None
    table = compared(values, keys)
    assert set(find_first_group(table, seed=7)) == slow_first_group(table, 7)
    superior = find_rivals(table.values_of("m"), table.keys, seed=7)
    assert [name for name in superior if not superior[name]] == [*find_first_group(table, seed=7)]
    means = {name: each.values.mean() for name, each in table.values_of("m").items()}
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
    assert find_first_group(table) == find_first_group(replace(table, baseline="s3"))


def test_trials_that_move_all_queries_keep_a_system_in_it() -> None:
    rng = np.random.default_rng(3)
    steady = 0.05 * rng.standard_normal(60) + 0.5
    trials = steady + 0.05 * rng.standard_normal((3, 60)) - np.array([0.0, 0.1, 0.2])[:, None]
    values = np.stack([steady, trials.mean(axis=0)])
    assert find_first_group(compared(values)) == ("s0",)
    table = compared(values)
    systems = {**table.systems, "s1": {"m": MeasuredValues(values[1], trials)}}
    unsteady = replace(table, systems=systems)
    assert find_first_group(unsteady) == ("s0", "s1")


def test_edges() -> None:
    alike = np.tile(np.arange(10) / 10, (3, 1))
    assert find_first_group(compared(alike)) == ("s0", "s1", "s2")
    assert find_first_group(compared(alike[:1])) == ("s0",)
    assert find_first_group(compared(np.array([[0.2], [0.9]]))) == ("s0", "s1")  # no spread
    in_one_group = compared(0.1 * normal(2, 8), ("g",) * 8)
    assert find_first_group(in_one_group) == ("s0", "s1")
