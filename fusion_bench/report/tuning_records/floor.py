"""Untuned systems and single sources beside the tuned system, on the held-out queries."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.stats.answers import BETTER, Answer

FloorKind: TypeAlias = Literal["system", "source"]
#: Answers that show that something untuned does as well as the tuned system.
AS_GOOD: Final[tuple[Answer, ...]] = (*BETTER, "equivalent", "identical")


class FloorRow(ReportRecord):
    """Something untuned against the tuned system.

    Attributes:
        name: A system of the experiment, or a source that one of them reads.
        kind: Which of the two.
        mean: Held out.
        difference: This − tuned.
        low: Lower end of its interval, adjusted for all rows; None where there is none.
        high: Upper end.
        p: Adjusted for all rows.
        answer: What is shown of this against the tuned system.
        bounds: How much of its lists is judged, and what the rest could make of the mean; None with
            complete judgments.
    """

    name: str
    kind: FloorKind
    mean: float
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float
    answer: Answer
    bounds: CompletionBounds | None = None

    @property
    def is_as_good(self) -> bool:
        """Whether it is shown to be better, equivalent or identical."""
        return self.answer in AS_GOOD

    @property
    def is_not_below(self) -> bool:
        """Whether it is as good, or at least has no lower mean."""
        return self.is_as_good or self.difference >= 0
