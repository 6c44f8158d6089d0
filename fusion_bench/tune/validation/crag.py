"""Is there a relevant document in the top k? CRAG's thresholds and ``min_score`` as classifiers.

A query's score is its best rerank score on the unit scale. At ``upper`` or above the verdict is
``correct``, below ``lower`` it is ``incorrect``, between them
``ambiguous``. Source: Yan, Gu, Zhu and Ling 2024, "Corrective Retrieval Augmented Generation"; the
0.7 and 0.3 come from CONV-03-05.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.report.tuning_records import CalibrationBin

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


def threshold_utility(
    scores: FloatArray, relevant: BoolArray, thresholds: CragThresholds, credit: float
) -> FloatArray:
    """(Q,): 1 where the verdict is right, 0 where it is wrong, ``credit`` where it is ambiguous.

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,): whether there is a relevant document.
        thresholds: The rule.
        credit: Utility of ``ambiguous``, above 0 and below 1.
    """
    correct, ambiguous = scores >= thresholds.upper, scores >= thresholds.lower
    right = np.where(correct, relevant, ~relevant)
    return np.where(ambiguous & ~correct, credit, right.astype(np.float64))


def fit_thresholds(
    scores: FloatArray, relevant: BoolArray, *, credit: float = 0.75
) -> CragThresholds:
    """The thresholds of greatest mean utility, exactly.

    With ``credit`` c the best rule says ``correct`` where the probability of a relevant document
    is at least c and ``incorrect`` where it is at most 1 − c. With c = 0.5 both thresholds are
    equal, which is the best ``min_score``.

    Source: Chow 1970, "On optimum recognition error and reject tradeoff".

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,).
        credit: Utility of ``ambiguous``, from 0.5 to below 1.

    Returns:
        Thresholds half-way between neighboring scores; of equally good ones the narrowest
        ambiguous zone, then the lowest.
    """
    if not 0.5 <= credit < 1:
        raise ConfigError(f"credit: must be from 0.5 to below 1, not {credit}")
    finite = np.isfinite(scores)
    order = np.argsort(scores[finite], kind="stable")
    ranked, truth = scores[finite][order], relevant[finite][order]
    cuts = _distinct_cuts(ranked)
    # i scores called incorrect, those from j on called correct: below[i] + c·(j−i) + above[j].
    below = np.concatenate([[0], np.cumsum(~truth)])[cuts]
    above = np.concatenate([np.cumsum(truth[::-1])[::-1], [0]])[cuts]
    start = below - credit * cuts
    best = np.maximum.accumulate(start)
    # The last i of equal utility: the narrowest zone. Then the first j.
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
) -> dict[str, tuple[int, int]]:
    """Queries (with, without) a relevant document, by verdict."""
    verdicts = np.array([thresholds.verdict(score) for score in scores.tolist()], dtype=object)
    masks = {str(verdict): verdicts == verdict for verdict in get_args(CragVerdict)}
    return {
        verdict: (int((mask & relevant).sum()), int((mask & ~relevant).sum()))
        for verdict, mask in masks.items()
    }


def calibration_bins(
    scores: FloatArray, relevant: BoolArray, *, bins: int = 10
) -> tuple[CalibrationBin, ...]:
    """Bins of equally many queries by score: a calibrated score equals the share of its bin."""
    finite = np.flatnonzero(np.isfinite(scores))
    order = finite[np.argsort(scores[finite], kind="stable")]
    parts = np.array_split(order, min(bins, max(len(order), 1)))
    return tuple(
        CalibrationBin(
            score=float(scores[part].mean()), share=float(relevant[part].mean()), queries=len(part)
        )
        for part in parts
        if len(part)
    )
