"""The record of one comparison: difference, interval, p, answer, wins, ties, losses.

Higher is better, as for every measure of this package.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.answers import Answer
from fusion_bench.stats.skew_rule import SkewedDifference
from fusion_bench.util.formatting import format_difference
from fusion_bench.util.table_view import Columns, TableView

#: Differences up to this count as 0. A measure's value is a sum of a few dozen terms in [0, 1]: the
#: order of summation changes it by less, a different ranking by far more.
NOISE = 1e-12


@dataclass(frozen=True, repr=False)
class Comparison(TableView):
    """One candidate against the baseline on one measure.

    Attributes:
        measure: Name of the measure.
        baseline: Name of the system compared with.
        candidate: Name of the compared system.
        baseline_mean: Mean over queries.
        candidate_mean: Mean over queries.
        difference: Mean of candidate − baseline.
        low: Lower end of the difference's interval; NaN with one group. On the primary measure
            the intervals of the family hold together, on others each alone.
        high: Upper end; NaN with one group.
        p: Two-sided, of Student's t; not adjusted.
        p_adjusted: Over the family; None for any but the primary measure.
        wins: Queries on which the candidate is better by more than float noise.
        ties: Queries on which neither is better.
        losses: Queries on which the baseline is better.
        min_detectable_difference: With 80 % power at the critical value; None where no spread is
            known.
        queries: Q.
        groups: G, the units of the test and the interval; Q where none are declared.
        answer: What the comparison shows; None for any but the primary measure.
        p_floor: ``p_adjusted`` is the smallest that the draws can give.
        few_changes: Fewer than 10 changed queries or 20 groups: the interval may cover less than
            it says.
        effect_size: Difference ÷ standard deviation over queries; None without spread.
        standard_error: Of the difference, by group (CR2); NaN with one group.
        freedom: Its degrees of freedom (Bell–McCaffrey); NaN likewise.
        critical_value: Standard errors from the difference to an end of a two-sided interval of
            the correction; NaN likewise, and where so few groups changed that there is none.
        skew: What stands beside an answer whose differences are skewed; None = nothing does.
        trial_share: The part of the variance of the difference that comes from trials of all
            queries together; 0 = the plain paired test of means over trials is right. None where
            both systems have one trial.
    """

    measure: str
    baseline: str
    candidate: str
    baseline_mean: float
    candidate_mean: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float | None
    wins: int
    ties: int
    losses: int
    min_detectable_difference: float | None
    queries: int
    groups: int
    answer: Answer | None = None
    p_floor: bool = False
    few_changes: bool = False
    effect_size: float | None = None
    standard_error: float = math.nan
    freedom: float = math.nan
    critical_value: float = math.nan
    trial_share: float | None = None
    skew: SkewedDifference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self)

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        p = self.p if self.p_adjusted is None else self.p_adjusted
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"Comparison({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"p {p:.3g}, {self.wins}/{self.ties}/{self.losses} of {self.queries}{answer})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        return {name: [value][:limit] for name, value in asdict(self).items()}


def paired_difference(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Candidate − baseline, (Q,), float noise set to 0, as the test looks at signs."""
    difference = candidate - baseline
    return np.where(np.abs(difference) <= NOISE, 0.0, difference)
