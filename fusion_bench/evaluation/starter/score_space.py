"""What the numbers of a rerank list most likely mean, by their values alone."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.rows.grouped_rows import count_within_queries
from fusion_bench.data.run import Run

#: Logits beyond this are none: their sigmoid is 0 or 1 in single precision.
MAX_LOGIT: Final = 17.0
#: Scores count as equal up to this.
SAME: Final = 1e-9


class ScoreSpaceGuess(NamedTuple):
    """A guess and the rule it rests on.

    Attributes:
        space: The score space.
        reason: What is true of every score: ``"every score lies in [0, 1]"``.
    """

    space: ScoreSpace
    reason: str


def guess_score_space(run: Run) -> ScoreSpaceGuess:
    """The score space of a rerank list; the first rule that fits.

    ``order``: the scores of a list of n count n, n−1 … 1, are 1, 1/2 … 1/n, or −1, −2 … −n.
    ``unit``: all lie in [0, 1]. ``log_prob``: none is above 0. ``logit``: both signs, and none
    beyond ±17. Anything else is ``unbounded``.
    """
    if _follow_ranks(run):
        return ScoreSpaceGuess("order", "the scores only count the ranks")
    low, high = float(run.scores.min()), float(run.scores.max())
    if low >= 0 and high <= 1:
        return ScoreSpaceGuess("unit", "every score lies in [0, 1]")
    if high <= 0:
        return ScoreSpaceGuess("log_prob", "no score is above 0")
    limits = f"the scores reach from {low:.4g} to {high:.4g}"
    if low < 0 and max(-low, high) <= MAX_LOGIT:
        return ScoreSpaceGuess("logit", f"{limits}, both signs and none beyond ±{MAX_LOGIT:g}")
    return ScoreSpaceGuess("unbounded", limits)


def _follow_ranks(run: Run) -> bool:
    """Whether every score is a function of its rank and of the length of its list."""
    sizes = np.diff(run.offsets)
    if sizes.max(initial=0) < 2:
        return False
    ranks = count_within_queries(run.offsets).astype(np.float64)
    length = np.repeat(sizes, sizes)
    candidates: tuple[FloatArray, ...] = (length + 1 - ranks, 1 / ranks, -ranks)
    return any(np.allclose(run.scores, values, rtol=0, atol=SAME) for values in candidates)
