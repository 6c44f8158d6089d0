"""CRAG's thresholds, fitted on tuning queries and evaluated on held-out ones."""

from __future__ import annotations

from typing import Literal

from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict


class ThresholdRule(ReportRecord):
    """A rule on held-out queries: (with, without) a relevant document, by verdict.

    Attributes:
        upper: At or above it a query is called correct.
        lower: At or below it a query is called incorrect; between them ambiguous.
        utility: Mean worth: 1 right, 0 wrong, the credit where it is ambiguous.
    """

    upper: float
    lower: float
    utility: float
    correct: tuple[int, int]
    ambiguous: tuple[int, int]
    incorrect: tuple[int, int]


class CalibrationBin(ReportRecord):
    """Held-out queries of about the same score, and how many have a relevant document."""

    score: float
    share: float
    queries: int


class ThresholdReport(ReportRecord):
    """CRAG's thresholds and ``min_score``, fitted on tuning queries and judged held out.

    Attributes:
        name: The system, or the rerank list.
        kind: ``system`` = its final lists; ``list`` = the rerank list in its own order.
        reranker: The rerank list whose scores count.
        top: So many documents of the list count.
        credit: What ``ambiguous`` is worth.
        default: The thresholds as they were.
        tuned: Fitted.
        min_score: Fitted as one threshold, without credit for doubt.
        gain: Utility, tuned − default, adjusted for the verdicts of the run.
        verdict: What that allows to be said.
        calibration: By score, lowest first.
    """

    name: str
    kind: Literal["system", "list"]
    reranker: str
    top: int
    credit: float
    default: ThresholdRule
    tuned: ThresholdRule
    min_score: ThresholdRule
    gain: Gain
    verdict: TuningVerdict
    calibration: tuple[CalibrationBin, ...]

    @property
    def title(self) -> str:
        """``today (sharp)`` of a system, ``rerank list sharp`` of a list."""
        if self.kind == "list":
            return f"rerank list {self.name}"
        return f"{self.name} ({self.reranker})"
