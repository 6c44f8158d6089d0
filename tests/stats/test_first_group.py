"""The first group: against a slow loop over pairs and flips, with groups and trials, and edges."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison_family import ComparedValues, find_first_group
from fusion_bench.stats.intervals import estimate_mean, t_quantile
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids
from tests.stats.samples import normal


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
    unsteady = ComparedValues("m", names.values, "s0", names.keys, trials={"s1": trials})
    assert find_first_group(unsteady) == ("s0", "s1")


def test_edges() -> None:
    alike = np.tile(np.arange(10) / 10, (3, 1))
    assert find_first_group(compared(alike)) == ("s0", "s1", "s2")
    assert find_first_group(compared(alike[:1])) == ("s0",)
    assert find_first_group(compared(np.array([[0.2], [0.9]]))) == ("s0", "s1")  # no spread
    in_one_group = compared(0.1 * normal(2, 8), ("g",) * 8)
    assert find_first_group(in_one_group) == ("s0", "s1")
