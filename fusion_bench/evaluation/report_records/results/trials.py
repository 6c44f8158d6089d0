"""How far the trials of a system lie apart, and what would narrow a comparison of such systems."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord


class TrialsResult(ReportRecord):
    """The trials of one system, on the primary measure.

    Attributes:
        lists: The lists that differ between the trials: ``runs/NAME``, ``rerank/NAME``.
        means: The mean over queries of each trial.
        sd: Sample standard deviation of these means.
        query_share: Of the variance of one value, the part by which queries differ; the three
            shares sum to 1, or are 0 where nothing varies. None with one query.
        trial_share: The part by which trials differ on all queries together.
        residual_share: The part by which trials differ on one query.
        disagreeing_pair: Queries on which the first two trials have different values.
        disagreeing: Queries on which any two have.
    """

    lists: tuple[str, ...]
    means: tuple[float, ...]
    sd: float
    query_share: OptionalFloat
    trial_share: OptionalFloat
    residual_share: OptionalFloat
    disagreeing_pair: int
    disagreeing: int


class NarrowingResult(ReportRecord):
    """Expected half widths of one interval, not adjusted for the number of comparisons.

    Attributes:
        now: With these trials and queries.
        one_trial: With one more trial of each system that has several.
        added_queries: So many more queries take as many answers of these systems.
        more_queries: With so many more queries.
        all_trials: With any number of trials.
        all_queries: With any number of queries.
    """

    now: float
    one_trial: float
    added_queries: int
    more_queries: float
    all_trials: float
    all_queries: float

    @property
    def prefers_trials(self) -> bool:
        """Whether one more trial narrows the interval more than as many answers to new queries."""
        return self.one_trial < self.more_queries
