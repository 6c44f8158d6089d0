"""Which trades of value for effort no other one dominates."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.tune.validation.splits import BoolArray


def is_efficient(effort: FloatArray, value: FloatArray) -> BoolArray:
    """Which points no other point dominates.

    A point dominates another if it takes no more of any kind of effort, has no lower value, and
    differs.

    Args:
        effort: Shape (P, A): A kinds of effort for each point; less is better.
        value: Shape (P,): more is better.

    Returns:
        Shape (P,). Of equal points all are kept.
    """
    no_more = (effort[:, None] <= effort[None]).all(axis=2)
    less = (effort[:, None] < effort[None]).any(axis=2)
    no_worse, better = value[:, None] >= value[None], value[:, None] > value[None]
    return np.asarray(~(no_more & no_worse & (less | better)).any(axis=0))
