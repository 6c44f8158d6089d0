"""The machine judge whose grades decide the values of a report."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord

#: Fewer double-judged pairs than this measure no agreement: at κ near .5, 100 independent pairs
#: leave a standard error of about .1.
MIN_PAIRS = 100


class JudgeInfo(ReportRecord):
    """A machine judge, and its agreement with people on the pairs that both graded.

    Attributes:
        family: The family of its model; None = not declared.
        people: The human judge of ``judges`` with the most shared pairs; None = there is none.
        pairs: Pairs of query and document that both graded.
        queries: Queries of these pairs.
        kappa: Cohen's κ of the grades; None where both give one grade alone.
        low: Lower end of its 95 % interval; None with one query.
        high: Upper end.
        binary_kappa: κ of relevant and not relevant.
        binary_low: Lower end of its interval.
        binary_high: Upper end.
        related_systems: Systems that declare the judge's own family, or whose stages do.
        is_accepted: The dataset accepts it although its agreement is not measured, or not shown.
    """

    family: str | None = None
    people: str | None = None
    pairs: int = 0
    queries: int = 0
    kappa: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    binary_kappa: OptionalFloat = None
    binary_low: OptionalFloat = None
    binary_high: OptionalFloat = None
    related_systems: tuple[str, ...] = ()
    is_accepted: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether enough pairs were judged by people too."""
        return self.pairs >= MIN_PAIRS and self.kappa is not None

    @property
    def is_better_than_chance(self) -> bool:
        """Whether enough pairs show a κ above 0: the whole interval lies there."""
        return self.is_measured and self.low is not None and self.low > 0
