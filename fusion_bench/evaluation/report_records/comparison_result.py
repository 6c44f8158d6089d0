"""One system against the baseline."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.util.formatting import format_difference
from fusion_bench.util.table_view import Columns, TableView


class ComparisonResult(TableView, ReportRecord):
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

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        p = f"p {self.p:.3g}" if self.p_holm is None else f"adjusted p {self.p_holm:.3g}"
        counts = f"{self.wins}/{self.ties}/{self.losses}"
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"ComparisonResult({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"{p}, {counts}{answer})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        return {name: [value][:limit] for name, value in self.model_dump().items()}
