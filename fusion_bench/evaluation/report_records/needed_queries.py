"""A number of queries that a rule needs."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.stats.power.sample_size import SampleSize


class NeededQueries(ReportRecord):
    """Queries with which a rule decides with power .8; see ``stats.power.sample_size``.

    Attributes:
        queries: N, two digits. Where ``at_least``, the lower end of its interval.
        low: Lower end of the 95 % interval of N; None where ``at_least``.
        high: Upper end.
        at_least: Whether fewer than 30 queries changed, so that only a lower bound is known.
    """

    queries: int
    low: int | None
    high: int | None
    at_least: bool

    @classmethod
    def of_size(cls, size: SampleSize | None) -> NeededQueries | None:
        """The record of a sample size; None where there is none."""
        return None if size is None else cls.model_validate(size, from_attributes=True)

    def __str__(self) -> str:
        """``1,200 [930, 1,600]`` or ``at least 85``."""
        return str(SampleSize(self.queries, self.low, self.high, at_least=self.at_least))
