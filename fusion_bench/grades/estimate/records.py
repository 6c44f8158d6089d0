"""What ``fusion-bench grades estimate --json`` prints."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.stats.answers import Answer
from fusion_bench.util.formatting import format_difference, pluralize
from fusion_bench.util.table_view import Columns, TableView

#: What a data frame has of each difference, after its measure and system.
COLUMNS: Final = (
    *("difference", "low", "high", "standard_error", "p", "p_adjusted", "answer"),
    *("differing", "few_changes", "weight"),
)


class MeanRecord(ReportRecord):
    """A mean difference by the grades of one judge alone.

    Attributes:
        difference: Mean of candidate − baseline.
        low: Lower end of its interval; None with one group.
        high: Upper end.
        queries: The queries that this judge graded.
    """

    difference: float
    low: OptionalFloat
    high: OptionalFloat
    queries: int


class JudgingRecord(ReportRecord):
    """What more judging by people would do to the interval of one difference.

    Attributes:
        half_width: Of the interval at hand, before it is cut to where means can be.
        halving: Queries that people would have to judge in all for half the width; None = judging
            all queries at hand would not do.
        added: How many more that are; None likewise.
        added_range: The same with the spread of people's values at the ends of its 95 % interval.
        least_half_width: Half width where people judge all queries at hand.
        expected: Number of queries of people → expected half width.
        people_alone: Queries that people would need for this interval without the machine.
    """

    half_width: float
    halving: int | None
    added: int | None
    added_range: tuple[int | None, int | None]
    least_half_width: float
    expected: dict[int, float]
    people_alone: int


class EstimatedDifference(ReportRecord):
    """One system against the baseline on one measure.

    Attributes:
        measure: Name of the measure.
        candidate: Name of the system.
        difference: Candidate − baseline under people's grades, over all queries.
        low: Lower end of its interval.
        high: Upper end.
        standard_error: Of the difference.
        freedom: Degrees of freedom of the interval.
        p: Two-sided, of Student's t; not adjusted.
        p_adjusted: Times the number of candidates, at most 1; None for any but the primary measure.
        answer: What the estimate shows; None for any but the primary measure.
        weight: λ: how much of the machine's difference counts.
        differing: Queries of people on which their difference and the machine's are .01 or more
            apart.
        few_changes: Fewer than 10 of them: p and interval hold for no machine that is far off on
            other queries, and nothing is shown.
        people: By people's grades alone.
        machine: By the machine's alone: its interval says nothing of its bias.
        judging: What more judging by people would do.
    """

    measure: str
    candidate: str
    difference: float
    low: float
    high: float
    standard_error: float
    freedom: float
    p: float
    p_adjusted: float | None
    answer: Answer | None
    weight: float
    differing: int
    few_changes: bool
    people: MeanRecord
    machine: MeanRecord
    judging: JudgingRecord


class GradeEstimate(TableView, ReportRecord):
    """Systems against a baseline, by people's grades of a sample of the queries and a machine's.

    Attributes:
        name: The experiment.
        dataset: The dataset.
        people: The judge whose grades count.
        machine: The judge who graded all queries.
        baseline: The system compared with.
        measures: The first is the primary one.
        queries: All queries: those that the machine graded.
        people_queries: Those that people graded too.
        alpha: 1 − coverage of all intervals of the primary measure together.
        min_gain: A smaller difference is not worth a change.
        unjudged: ``people`` or ``machine`` → system → share of the top 10 that has no grade.
        trials: System → its trials, where it has several; the intervals hold for these trials.
        related: The lists that come from the machine's own model family.
        differences: By measure, in the order of the systems.
        data_warnings: Greatest grades that differ; the machine, where its family also made a list
            that the systems read.
        provenance: What made it.
    """

    name: str
    dataset: str
    people: str
    machine: str
    baseline: str
    measures: tuple[str, ...]
    queries: int
    people_queries: int
    alpha: float
    min_gain: float
    unjudged: dict[str, dict[str, float]]
    trials: dict[str, int] = Field(default_factory=dict)
    related: tuple[str, ...] = ()
    differences: tuple[EstimatedDifference, ...] = Field(min_length=1)
    data_warnings: tuple[DataWarning, ...] = ()
    provenance: Provenance

    def difference(self, candidate: str, measure: str | None = None) -> EstimatedDifference:
        """One system against the baseline; on the primary measure by default.

        Raises:
            KeyError: There is none.
        """
        wanted = (candidate, measure or self.measures[0])
        for each in self.differences:
            if (each.candidate, each.measure) == wanted:
                return each
        raise KeyError(wanted)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench grades estimate --json`` prints it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        judged = pluralize(self.people_queries, "query")
        first, *others = (each for each in self.differences if each.answer is not None)
        more = f"; {len(others)} more" if others else ""
        interval = format_difference(first.difference, first.low, first.high)
        few = (
            f", not an interval: people and machine differ on {first.differing} of {judged}"
            if first.few_changes
            else ""
        )
        return (
            f"GradeEstimate({self.dataset}: {self.people} on {judged}, {self.machine} on "
            f"{self.queries:,})\n{first.candidate} - {self.baseline}, {first.measure}: "
            f"{interval}{few} ({first.answer}){more}"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a measure and system."""
        rows = self.differences[:limit]
        return {
            "measure": [each.measure for each in rows],
            "system": [each.candidate for each in rows],
            **{name: [getattr(each, name) for each in rows] for name in COLUMNS},
            "people": [each.people.difference for each in rows],
            "machine": [each.machine.difference for each in rows],
            "more_queries": [each.judging.added for each in rows],
        }
