"""One system against the baseline."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord


class ComparisonResult(ReportRecord):
    """One system against the baseline on one measure; see ``compare.Comparison``.

    Attributes:
        judged_only_difference: The same difference over judged documents only (primary measure).
        answer: What the comparison shows (primary measure): better, worse, …
    """

    measure: str
    baseline: str
    candidate: str
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float
    p_holm: OptionalFloat
    wins: int
    ties: int
    losses: int
    min_detectable_difference: OptionalFloat
    judged_only_difference: OptionalFloat = None
    answer: str | None = None
