"""The slope of people's values on the machine's, and the mean without each group in turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray

#: The machine's values are equal, but for rounding, where their squared deviations sum to less.
NO_SPREAD = 1e-20


class Line(NamedTuple):
    """People's values as a line of the machine's, by least squares.

    Attributes:
        slope: b; 0 where the machine's values are all equal.
        mean: Its height at the machine's mean over all queries: ȳ + b·(F̄ − f̄).
        squared_distance: (F̄ − f̄)² ÷ Σ(f − f̄)²; 0 where the machine's values are all equal.
        residual_squares: Σ(y − line)².
    """

    slope: float
    mean: float
    squared_distance: float
    residual_squares: float


def fit_line(people: FloatArray, machine: FloatArray, machine_mean: float) -> Line:
    """Fit the line through the queries that both judged.

    Args:
        people: y, shape (n,).
        machine: f, shape (n,), the same queries.
        machine_mean: F̄, over all queries that the machine judged.
    """
    y, f = people - people.mean(), machine - machine.mean()
    squares = float(f @ f)
    distance = machine_mean - float(machine.mean())
    slope = float(y @ f) / squares if squares > NO_SPREAD else 0.0
    return Line(
        slope=slope,
        mean=float(people.mean()) + slope * distance,
        squared_distance=distance**2 / squares if squares > NO_SPREAD else 0.0,
        residual_squares=float(((y - slope * f) ** 2).sum()),
    )


def means_without_groups(
    people: FloatArray, machine: FloatArray, machine_mean: float, groups: IntArray
) -> FloatArray:
    """The height of the line at the machine's mean, fitted without each group in turn.

    Args:
        people: y, shape (n,).
        machine: f, shape (n,), the same queries.
        machine_mean: F̄, over all queries that the machine judged, those of the group included.
        groups: Shape (n,): codes 0 … G−1, each used; G is at least 2.

    Returns:
        Shape (G,).
    """
    y, f = people - people.mean(), machine - machine.mean()

    def sums_without(values: FloatArray) -> FloatArray:
        return np.asarray(values.sum() - np.bincount(groups, weights=values))

    count = sums_without(np.ones_like(y))
    y_mean, f_mean = sums_without(y) / count, sums_without(f) / count
    squares = sums_without(f * f) - count * f_mean**2
    products = sums_without(y * f) - count * y_mean * f_mean
    has_spread = squares > NO_SPREAD
    slopes = np.where(has_spread, products / np.where(has_spread, squares, 1.0), 0.0)
    distance = machine_mean - float(machine.mean()) - f_mean
    return np.asarray(float(people.mean()) + y_mean + slopes * distance)
