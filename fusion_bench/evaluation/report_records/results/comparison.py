"""One system against the baseline."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.results.trials import NarrowingResult
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.stats.answers import Answer
from fusion_bench.stats.skew_rule import SkewedDifference
from fusion_bench.util.formatting import format_difference
from fusion_bench.util.table_view import Columns, TableView


class ComparisonResult(TableView, ReportRecord):
    """One system against the baseline on one measure; see ``compare.Comparison``.

    Attributes:
        low: Lower end of the interval; on the primary measure the intervals of all systems and
            collections of the report hold together.
        high: Upper end.
        standard_error: Of the difference, by group.
        critical_value: Standard errors from the difference to an end of the interval.
        p: Two-sided, of Student's t; not adjusted.
        p_adjusted: Over all systems and collections of the report (primary measure).
        p_floor: ``p_adjusted`` is the smallest that the draws can give: the true one may be less.
        few_changes: Fewer than 10 changed queries or 20 groups: the interval may cover less than
            it says.
        effect_size: Difference ÷ standard deviation over queries.
        min_detectable_difference: With 80 % power at the critical value.
        unjudged: What unjudged documents could change in the difference (primary measure); None
            with complete judgments.
        answer: What the comparison shows (primary measure); see ``stats.answers``.
        skew: What stands beside an answer whose differences are skewed (primary measure); None =
            nothing does.
        trial_share: The part of the variance of the difference that comes from trials of all
            queries together; None where both systems have one trial.
        narrowing: What one more trial, or more queries, would make of the interval (primary
            measure); None likewise.
    """

    measure: str
    baseline: str
    candidate: str
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    standard_error: OptionalFloat = None
    critical_value: OptionalFloat = None
    p: float
    p_adjusted: OptionalFloat
    p_floor: bool = False
    few_changes: bool = False
    wins: int
    ties: int
    losses: int
    effect_size: OptionalFloat = None
    min_detectable_difference: OptionalFloat
    unjudged: UnjudgedResult | None = None
    answer: Answer | None = None
    skew: SkewedDifference | None = None
    trial_share: OptionalFloat = None
    narrowing: NarrowingResult | None = None

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        adjusted = self.p_adjusted
        p = f"p {self.p:.3g}" if adjusted is None else f"adjusted p {adjusted:.3g}"
        counts = f"{self.wins}/{self.ties}/{self.losses}"
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"ComparisonResult({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"{p}, {counts}{answer})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        return {name: [value][:limit] for name, value in self.model_dump().items()}
