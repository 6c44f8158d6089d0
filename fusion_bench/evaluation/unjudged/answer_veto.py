"""Answers of a comparison that unjudged documents decide."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.answers import BETTER, SHOWN, WORSE, Answer
from fusion_bench.stats.unjudged_rule import Direction


def veto_answer(answer: Answer, unjudged: UnjudgedDifference | None, min_gain: float) -> Answer:
    """The answer; ``unjudged decide`` where unjudged documents contradict what it shows.

    Args:
        answer: Of the primary measure.
        unjudged: The same difference; None with complete judgments.
        min_gain: m of ``equivalent``.
    """
    if unjudged is None or answer not in SHOWN:
        return answer
    direction: Direction = 1 if answer in BETTER else -1 if answer in WORSE else 0
    return "unjudged decide" if unjudged.decides(direction, min_gain) else answer


def compare_rows(
    collection: Collection, candidate: SystemResult, baseline: SystemResult, *, alpha: float
) -> UnjudgedDifference | None:
    """What unjudged documents could change between two rows of a report.

    Args:
        collection: Gives groups and judgments.
        candidate: A system of this collection, or of another report on the same queries.
        baseline: Likewise.
        alpha: 1 − coverage of the interval.

    Returns:
        Of the primary measure; None with complete judgments.
    """
    if collection.judgments == "complete":
        return None
    return compare_unjudged(
        _read_evidence(candidate),
        _read_evidence(baseline),
        groups=np.asarray(number_by_appearance(collection.groups)[0]),
        alpha=alpha,
        kind=collection.judgment_kind,
        is_bounded=is_bounded(collection.primary_measure),
    )


def _read_evidence(row: SystemResult) -> UnjudgedEvidence:
    """A report keeps the mean share alone: a sample of one."""
    filled = np.array(row.filled, dtype=np.float64) if row.filled else None
    share = np.array([row.unjudged_share or 0.0])
    return UnjudgedEvidence(share, np.array(row.judged_only, dtype=np.float64), filled)
