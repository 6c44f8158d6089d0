"""The difference of two systems as a record; its answer in one word; rules that withhold it.

Higher is better, as for every measure of this package.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, TypeAlias

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.stats.inference import RowInference
from fusion_bench.stats.unjudged import Direction, UnjudgedDifference
from fusion_bench.util.formatting import Columns, TableView, format_difference

Answer: TypeAlias = Literal[
    "better",
    "worse",
    "better, by less than min_gain",
    "worse, by less than min_gain",
    "equivalent",
    "not shown",
    "identical",
    "unjudged decide",
]

BETTER: Final[tuple[Answer, ...]] = ("better", "better, by less than min_gain")
WORSE: Final[tuple[Answer, ...]] = ("worse", "worse, by less than min_gain")
#: Answers that claim something about the true difference.
SHOWN: Final[tuple[Answer, ...]] = (*BETTER, *WORSE, "equivalent")


def decide_answer(
    row: RowInference, *, changed: int, min_gain: float, alpha: float = 0.05
) -> Answer:
    """The answer that the draws of a family support.

    Args:
        row: What they say about the comparison.
        changed: Queries that differ between the two systems.
        min_gain: m.
        alpha: Level of p.

    Returns:
        ``identical``: no query differs. ``better`` and ``worse``: p ≤ ``alpha``; ``by less than
        min_gain``: and the whole interval lies inside ±m. ``equivalent``: not significant, and the
        whole interval lies inside ±m, on these queries. ``not shown``: else.
    """
    if changed == 0:
        return "identical"
    # No unit differs where the differences of a group cancel: that shows nothing.
    is_within = row.changed > 0 and -min_gain < row.low and row.high < min_gain
    if row.p <= alpha:
        if row.mean > 0:
            return "better, by less than min_gain" if is_within else "better"
        return "worse, by less than min_gain" if is_within else "worse"
    return "equivalent" if is_within else "not shown"


def veto_answer(answer: Answer, unjudged: UnjudgedDifference | None, min_gain: float) -> Answer:
    """The answer; ``unjudged decide`` where unjudged documents contradict what it shows.

    Args:
        answer: Of the primary measure.
        unjudged: The same difference; None with complete judgments.
        min_gain: m of ``equivalent``.
    """
    if unjudged is None or answer not in SHOWN:
        return answer
    direction: Direction = 1 if answer in BETTER else -1 if answer in WORSE else 0
    return "unjudged decide" if unjudged.decides(direction, min_gain) else answer


class MeanDifference(ReportRecord):
    """A mean paired difference, with its interval.

    Attributes:
        difference: Mean of candidate − baseline.
        low: Lower end of its interval; None where nothing tells the spread.
        high: Upper end; None likewise.
    """

    difference: float
    low: OptionalFloat
    high: OptionalFloat


class Difference(MeanDifference):
    """A mean paired difference that was tested, and on how many queries it is one.

    Attributes:
        p: Two-sided, over the family.
        wins: Queries on which the candidate is better by more than float noise.
        ties: Queries on which neither is better.
        losses: Queries on which the baseline is better.
    """

    p: float
    wins: int
    ties: int
    losses: int

    @property
    def changed(self) -> int:
        """Queries whose value differs."""
        return self.wins + self.losses


class SystemDifference(TableView, Difference):
    """One system against the baseline on one measure.

    Attributes:
        measure: Name of the measure.
        baseline: Name of the system compared with.
        candidate: Name of the compared system.
        low: Lower end of the interval; those of all systems and collections on this measure hold
            together; None = too few units differ for an interval.
        high: Upper end.
        standard_error: Of the difference, by group.
        critical_value: Standard errors from the difference to the lower end of its interval; None
            where draws do not decide.
        p: Two-sided, over all systems and collections on this measure.
        effect_size: Difference ÷ standard deviation over queries; None without spread.
        min_detectable_difference: With a power of about 80 %; None where draws do not decide.
        answer: What the comparison shows; None for any but the primary measure.
        loss_share: The share of draws in which the candidate is worse; None where draws do not
            decide.
        trial_share: The part of the variance of the difference that comes from repeats of all
            queries together; 0 = the plain paired test of means over repeats is right. None where
            both systems have one repeat.
    """

    measure: str
    baseline: str
    candidate: str
    standard_error: OptionalFloat = None
    critical_value: OptionalFloat = None
    effect_size: OptionalFloat = None
    min_detectable_difference: OptionalFloat
    answer: Answer | None = None
    loss_share: OptionalFloat = None
    trial_share: OptionalFloat = None

    def _table_columns(self, limit: int | None = None) -> Columns:
        fields = self.model_dump()
        names = dict.fromkeys(("measure", "baseline", "candidate", *fields))
        return {name: [fields[name]][:limit] for name in names}


class Comparison(SystemDifference):
    """One candidate against the baseline on one measure, as it was just computed.

    Attributes:
        low: Lower end of the difference's interval; NaN = none.
        high: Upper end; NaN = none.
        standard_error: Of the difference, by group; NaN with one group.
        critical_value: NaN where draws do not decide.
        baseline_mean: Mean over queries.
        candidate_mean: Mean over queries.
        queries: Q.
        groups: G, the units that are drawn; Q where none are declared.
    """

    low: float
    high: float
    standard_error: float = math.nan
    critical_value: float = math.nan
    baseline_mean: float
    candidate_mean: float
    queries: int
    groups: int

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return self.model_dump()

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"Comparison({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"p {self.p:.3g}, {self.wins}/{self.ties}/{self.losses} of {self.queries}{answer})"
        )
