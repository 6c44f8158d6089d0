"""Worlds in which the truth is known: nulls, planted gains, and queries that no rule has seen.

On a null the grades of a query are dealt anew to its candidates. A setting's expected nDCG@10 is
then the mean grade times the discounts of the ranks that it fills, over the ideal, and every
setting fills as many ranks: no true gain differs from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from benchmarks.studies.choice_rules.grid import Grid
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray

#: Which candidates the grades are dealt to.
Deal: TypeAlias = Literal["pool", "contenders"]
#: No planted setting needs a greater share of the queries.
MOST: Final = 0.9


@dataclass(frozen=True, eq=False)
class World:
    """What a rule sees, and the truth that it does not.

    Attributes:
        runs: The queries, without candidates.
        values: Shape (T, Q): nDCG@10 of every setting.
        truth: Shape (T,): its true gain over the default.
    """

    runs: AlignedRuns
    values: FloatArray
    truth: FloatArray


def deal_grades(grid: Grid, deal: Deal, rng: np.random.Generator) -> FloatArray:
    """(Q, P): each query's grades, permuted over its candidates."""
    mask = grid.pool if deal == "pool" else grid.contenders
    gains = grid.gains.copy()
    for row, allowed in zip(gains, mask, strict=True):
        places = np.flatnonzero(allowed)
        row[places] = row[rng.permutation(places)]
    return gains


def expected_gains(grid: Grid, means: FloatArray) -> FloatArray:
    """(T,): expected gain over the default, where candidates have these mean grades, (Q, P)."""
    expected = grid.evaluate(means).mean(axis=1)
    return np.asarray(expected - expected[grid.default])


def mean_grades(grid: Grid, deal: Deal) -> FloatArray:
    """(Q, P): the mean grade of each candidate over all permutations."""
    mask = grid.pool if deal == "pool" else grid.contenders
    means = (grid.gains * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
    return np.where(mask, means[:, None], grid.gains)


def draw_null(grid: Grid, runs: AlignedRuns, deal: Deal, rng: np.random.Generator) -> World:
    """No setting is better than another."""
    values = grid.evaluate(deal_grades(grid, deal, rng))
    return World(runs, values, expected_gains(grid, mean_grades(grid, deal)))


def plant_gain(grid: Grid, runs: AlignedRuns, gain: float, rng: np.random.Generator) -> World:
    """A setting has a true gain; those of the others, which may be greater, follow.

    Raises:
        ValueError: No setting can have that gain.
    """
    for setting in rng.permutation(len(grid.top)).tolist():
        full = planted_gains(grid, setting)
        if full[setting] * MOST > gain:
            share = gain / full[setting]
            values = grid.evaluate(plant_grades(grid, setting, share, rng))
            return World(runs, values, share * full)
    raise ValueError(f"no setting can gain {gain}")


def plant_grades(grid: Grid, setting: int, share: float, rng: np.random.Generator) -> FloatArray:
    """(Q, P): a null, but on a share of the queries the setting's first document is the best."""
    gains, places = deal_grades(grid, "contenders", rng), grid.top[setting, :, 0]
    for q in np.flatnonzero(rng.random(len(gains)) < share).tolist():
        allowed = np.flatnonzero(grid.contenders[q])
        best = int(rng.choice(allowed[gains[q, allowed] == gains[q, allowed].max()]))
        gains[q, [best, places[q]]] = gains[q, [places[q], best]]
    return gains


def planted_gains(grid: Grid, setting: int) -> FloatArray:
    """(T,): expected gains where the setting's first document always has the best grade.

    The other grades of a query are then dealt evenly to its other contenders.
    """
    mask, means = grid.contenders, mean_grades(grid, "contenders")
    counts, greatest = mask.sum(axis=1), np.where(mask, grid.gains, 0.0).max(axis=1)
    totals = np.where(mask, means, 0.0).sum(axis=1)
    rest = (totals - greatest) / np.maximum(counts - 1, 1)
    planted = np.where(mask, rest[:, None], means)
    planted[np.arange(len(planted)), grid.top[setting, :, 0]] = greatest
    return expected_gains(grid, planted)


def hide_half(grid: Grid, runs: AlignedRuns, rng: np.random.Generator) -> World:
    """The real grades; a random half of the groups is seen, and the other half judges."""
    codes = number_by_appearance(runs.groups)[0]
    order = rng.permutation(int(codes.max()) + 1)
    seen: BoolArray = np.isin(codes, order[: (len(order) + 1) // 2])
    values = grid.evaluate(grid.gains)
    means = values[:, ~seen].mean(axis=1)
    return World(runs.subset(seen), values[:, seen], means - means[grid.default])
