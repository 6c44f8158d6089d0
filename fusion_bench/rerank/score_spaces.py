"""Score spaces: one query's scores on the unit scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.normalize.squash import sigmoid


def to_unit_scale(scores: Sequence[float], space: ScoreSpace) -> FloatArray:
    """The scores as a blend reads them from a list.

    Args:
        scores: One query's scores.
        space: Their score space.

    Returns:
        Shape (n,), in [0, 1]: ``unbounded`` = min-max, ``order`` = (n+1−i)/n for the i-th, equal
        scores in the order given.
    """
    raw = np.array(scores, dtype=np.float64)
    if space == "logit":
        return sigmoid(raw)
    if space == "log_prob":
        return np.exp(raw)
    if space == "unbounded":
        spread = float(np.ptp(raw)) if len(raw) else 0.0
        return (raw - raw.min()) / spread if spread > 0 else np.ones(len(raw))
    if space == "order":
        return np.asarray((len(raw) + 1 - rank_positions(raw)) / max(len(raw), 1), dtype=np.float64)
    return raw


def rank_positions(scores: FloatArray) -> IntArray:
    """(n,): 1-based ranks of one query's scores; equal scores keep their order."""
    return positions(scores, np.array([0, len(scores)]))
