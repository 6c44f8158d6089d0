"""Is there a relevant document in the top k? CRAG's thresholds and ``min_score`` as classifiers.

A query's score is its best rerank score on the unit scale. At ``upper`` or above the verdict is
``correct`` (use what was found), below ``lower`` it is ``incorrect`` (look elsewhere), between them
``ambiguous``. Source: Yan, Gu, Zhu and Ling 2024, "Corrective Retrieval Augmented Generation"; the
0.7 and 0.3 are CONV-03-05's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError

__all__ = [
    "CragThresholds",
    "CragVerdict",
    "ScoreBin",
    "VerdictCounts",
    "calibration_bins",
    "count_verdicts",
    "fit_thresholds",
    "threshold_utility",
]

BoolArray: TypeAlias = NDArray[np.bool_]
CragVerdict: TypeAlias = Literal["correct", "ambiguous", "incorrect"]


@dataclass(frozen=True)
class CragThresholds:
    """Where the verdict changes; ``lower`` is at most ``upper``."""

    upper: float = 0.7
    lower: float = 0.3

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ConfigError(
                f"thresholds: lower must not be above upper, given {self.lower} and {self.upper}"
            )

    def verdict(self, score: float) -> CragVerdict:
        """The verdict on one query; a query without any score (NaN) is ``incorrect``."""
        if score >= self.upper:
            return "correct"
        return "ambiguous" if score >= self.lower else "incorrect"


@dataclass(frozen=True)
class VerdictCounts:
    """Queries by verdict and truth.

    Attributes:
        correct: (with, without) a relevant document among those called correct.
        ambiguous: The same among those called ambiguous.
        incorrect: The same among those called incorrect.
    """

    correct: tuple[int, int]
    ambiguous: tuple[int, int]
    incorrect: tuple[int, int]


@dataclass(frozen=True)
class ScoreBin:
    """Queries of about the same score.

    Attributes:
        score: Their mean score.
        share: The share of them that has a relevant document.
        queries: How many they are.
    """

    score: float
    share: float
    queries: int


def threshold_utility(
    scores: FloatArray, relevant: BoolArray, thresholds: CragThresholds, credit: float
) -> FloatArray:
    """(Q,): 1 where the verdict is right, 0 where it is wrong, ``credit`` where it is ambiguous.

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,): whether there is a relevant document.
        thresholds: The rule.
        credit: What not deciding is worth, above 0 and below 1.
    """
    correct, ambiguous = scores >= thresholds.upper, scores >= thresholds.lower
    right = np.where(correct, relevant, ~relevant)
    return np.where(ambiguous & ~correct, credit, right.astype(np.float64))


def fit_thresholds(
    scores: FloatArray, relevant: BoolArray, *, credit: float = 0.75
) -> CragThresholds:
    """The thresholds of greatest mean utility, exactly.

    With ``credit`` c the best rule says ``correct`` where the chance of a relevant document is at
    least c and ``incorrect`` where it is at most 1 − c (Chow 1970, "On optimum recognition error
    and reject tradeoff"). At 0.5 nothing is gained by not deciding: both thresholds are one, which
    is what ``min_score`` should be.

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,).
        credit: What not deciding is worth, from 0.5 to below 1.

    Returns:
        Thresholds half-way between neighbouring scores; of equally good ones the narrowest zone of
        doubt, then the lowest.
    """
    if not 0.5 <= credit < 1:
        raise ConfigError(f"credit: must be from 0.5 to below 1, not {credit}")
    there = np.isfinite(scores)
    order = np.argsort(scores[there], kind="stable")
    ranked, truth = scores[there][order], relevant[there][order]
    cuts = _distinct_cuts(ranked)
    # i scores called incorrect, those from j on called correct: below[i] + c·(j−i) + above[j].
    below = np.concatenate([[0], np.cumsum(~truth)])[cuts]
    above = np.concatenate([np.cumsum(truth[::-1])[::-1], [0]])[cuts]
    start = below - credit * cuts
    best = np.maximum.accumulate(start)
    # The last i of equal worth: the narrowest zone. Then the first j.
    lower = np.array(
        [np.flatnonzero(start[: j + 1] >= best[j] - 1e-9)[-1] for j in range(len(cuts))]
    )
    total = best + credit * cuts + above
    upper = int(np.flatnonzero(total >= total.max() - 1e-9)[0])
    return CragThresholds(
        _threshold_at(ranked, cuts[upper]), _threshold_at(ranked, cuts[lower[upper]])
    )


def _distinct_cuts(ranked: FloatArray) -> NDArray[np.int64]:
    """Numbers of scores below a threshold that can be told apart: none, …, all."""
    inner = np.flatnonzero(np.diff(ranked) > 0) + 1
    return np.concatenate([[0], inner, [len(ranked)]]).astype(np.int64)


def _threshold_at(ranked: FloatArray, count: int) -> float:
    """A threshold with so many scores below it."""
    if len(ranked) == 0:
        return 0.0
    if count == 0:
        return min(0.0, float(ranked[0]))
    if count == len(ranked):
        return float(np.nextafter(ranked[-1], np.inf))
    return float((ranked[count - 1] + ranked[count]) / 2)


def count_verdicts(
    scores: FloatArray, relevant: BoolArray, thresholds: CragThresholds
) -> VerdictCounts:
    """Count verdicts against the truth."""
    verdicts = [thresholds.verdict(score) for score in scores.tolist()]

    def pair(verdict: CragVerdict) -> tuple[int, int]:
        chosen = np.array([own == verdict for own in verdicts], dtype=bool)
        return int((chosen & relevant).sum()), int((chosen & ~relevant).sum())

    return VerdictCounts(pair("correct"), pair("ambiguous"), pair("incorrect"))


def calibration_bins(
    scores: FloatArray, relevant: BoolArray, *, bins: int = 10
) -> tuple[ScoreBin, ...]:
    """Bins of equally many queries by score: a calibrated score equals the share of its bin."""
    there = np.flatnonzero(np.isfinite(scores))
    order = there[np.argsort(scores[there], kind="stable")]
    parts = np.array_split(order, min(bins, max(len(order), 1)))
    return tuple(
        ScoreBin(float(scores[part].mean()), float(relevant[part].mean()), len(part))
        for part in parts
        if len(part)
    )
