"""CRAG's verdict on a list, from its best rerank score on the unit scale.

At ``upper`` or above it is ``correct``, at ``lower`` or below ``incorrect``, between them
``ambiguous``. Source: Yan, Gu, Zhu and Ling 2024, "Corrective Retrieval Augmented Generation"; the
0.7 and 0.3 and both ends are those of CONV-03-05 (BR-016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import get_args

import numpy as np

from fusion_bench.config.relevance_thresholds import CORRECT_FROM, INCORRECT_TO
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.crag_settings import Verdict

#: The verdicts, from the best on.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class CragThresholds:
    """Where the verdict changes; ``lower`` is at most ``upper``.

    Raises:
        ConfigError: NaN, or ``lower`` above ``upper``.
    """

    upper: float = CORRECT_FROM
    lower: float = INCORRECT_TO

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise ConfigError(
                f"thresholds: numbers are needed, given upper {self.upper:g} and lower "
                f"{self.lower:g}"
            )
        if self.lower > self.upper:
            raise ConfigError(
                f"thresholds: lower {self.lower:g} is above upper {self.upper:g}: swap them"
            )


DEFAULT_THRESHOLDS = CragThresholds()


@dataclass(frozen=True)
class CragVerdict:
    """What is said of one list; the fields of CONV-03-05's ``CRAGScore``.

    Attributes:
        relevance: ``correct``, ``ambiguous`` or ``incorrect``.
        confidence: The best score, in [0, 1]; 0 where the list has none.
        needs_web_search: True unless the verdict is ``correct`` (BR-017).
        refined_query: What to search instead; None where nothing needs to be searched.
    """

    relevance: Verdict
    confidence: float
    needs_web_search: bool
    refined_query: str | None = None


def judge_list(
    scores: Sequence[float],
    thresholds: CragThresholds = DEFAULT_THRESHOLDS,
    *,
    top: int = 10,
    refined_query: str | None = None,
) -> CragVerdict:
    """The verdict on one list.

    Args:
        scores: Rerank scores in [0, 1], in the order of the list; NaN = not scored.
        thresholds: Where the verdict changes.
        top: So many documents of the list count.
        refined_query: A better query, where one is known.

    Raises:
        ConfigError: A score that is no number, or a score or a threshold outside [0, 1].
    """
    for name, value in vars(thresholds).items():
        if not 0 <= value <= 1:
            raise ConfigError(f"thresholds: {name} {value:g} is outside [0, 1], as no score is")
    given: Sequence[object] = scores[:top]
    for score in given:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise ConfigError(f"scores: numbers are needed, given {score!r}: NaN = not scored")
    known = [score for score in scores[:top] if not math.isnan(score)]
    for score in known:
        if not 0 <= score <= 1:
            raise ConfigError(f"scores: {score:g} is outside [0, 1]: bring it to the unit scale")
    best = max(known, default=0.0)
    verdict = name_verdicts(np.array([best]), thresholds)[0]
    needs_search = needs_web_search(verdict)
    return CragVerdict(verdict, best, needs_search, refined_query if needs_search else None)


def needs_web_search(verdict: Verdict) -> bool:
    """Whether a search of the web is recommended after a verdict (BR-017)."""
    return verdict != "correct"


def classify_scores(scores: FloatArray, thresholds: CragThresholds) -> dict[Verdict, BoolArray]:
    """(Q,) by verdict: the queries that have it; one without any score (NaN) is ``incorrect``.

    A score that is both at ``upper`` and at ``lower`` is ``correct``.
    """
    correct = scores >= thresholds.upper
    ambiguous = ~correct & (scores > thresholds.lower)
    return {"correct": correct, "ambiguous": ambiguous, "incorrect": ~(correct | ambiguous)}


def name_verdicts(scores: FloatArray, thresholds: CragThresholds) -> list[Verdict]:
    """The verdict of each of Q queries, by name."""
    masks = classify_scores(scores, thresholds)
    codes = np.argmax([masks[verdict] for verdict in VERDICTS], axis=0)
    return [VERDICTS[code] for code in codes.tolist()]
