"""Correction of p-values for the number of comparisons."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError


def adjust_holm(p_values: FloatArray) -> FloatArray:
    """Holm's step-down adjusted p-values (Holm 1979), shape (C,), in the order given.

    The i-th smallest of C is multiplied by C − i + 1, never falls below a smaller one's, and stops
    at 1. Rejecting what is below α keeps the chance of any false rejection at or below α.
    """
    wrong = np.flatnonzero(~((p_values >= 0) & (p_values <= 1)))  # NaN is in no range
    if len(wrong):
        raise DataError(f"p-value {wrong[0]}: must be in [0, 1], not {p_values[wrong[0]]}")
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
