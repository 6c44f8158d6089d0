"""Which trades of value for effort nothing beats, and how much of the plane they cover."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.tune.validation.splits import BoolArray

__all__ = ["hypervolume", "is_efficient"]


def is_efficient(effort: FloatArray, value: FloatArray) -> BoolArray:
    """Which points no other point beats.

    A point beats another if it takes no more of any kind of effort, is worth no less, and differs.

    Args:
        effort: Shape (P, A): what each point takes, of A kinds; less is better.
        value: Shape (P,): what it is worth.

    Returns:
        Shape (P,). Of equal points all are kept.
    """
    no_more = (effort[:, None] <= effort[None]).all(axis=2)
    less = (effort[:, None] < effort[None]).any(axis=2)
    no_worse, better = value[:, None] >= value[None], value[:, None] > value[None]
    return np.asarray(~(no_more & no_worse & (less | better)).any(axis=0))


def hypervolume(effort: FloatArray, value: FloatArray, *, most: float, least: float) -> float:
    """Area that the points beat, between the worst effort and the worst value.

    Divided by ``most`` it is what the best affordable point gains over ``least``, on average over
    budgets between 0 and ``most``.

    Source: Zitzler and Thiele 1998, "Multiobjective optimization using evolutionary algorithms",
    the size of the space covered.

    Args:
        effort: Shape (P,), 0 or more.
        value: Shape (P,).
        most: Effort of the reference point; what takes more counts for nothing.
        least: Value of the reference point; what is worth less counts for nothing.
    """
    inside = (effort <= most) & (value >= least)
    order = np.lexsort((-value[inside], effort[inside]))
    left = np.append(effort[inside][order], most)
    height = np.maximum.accumulate(value[inside][order]) - least
    return float((np.diff(left) * height).sum())
