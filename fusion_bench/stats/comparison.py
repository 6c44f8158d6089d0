"""The difference of two systems as a record; its answer in one word; rules that withhold it.

Sign-flip and t tests answer falsely where a system gains a little on most queries and loses much
on few: a small sample holds too few of these losses. Where the differences are skewed against the
answer, the answer also needs a bound that holds whatever was not seen (``betting_bound``).

Higher is better, as for every measure of this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.data.ordering import NOISE as NOISE
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import MeanEstimate, betting_bound, scale_groups
from fusion_bench.stats.max_t import RowResult
from fusion_bench.util.formatting import Columns, TableView, format_difference

Answer: TypeAlias = Literal[
    "better",
    "worse",
    "better, by less than min_gain",
    "worse, by less than min_gain",
    "equivalent",
    "not shown",
    "not shown (within simulation error)",
    "identical",
    "unjudged decide",
]

#: A row with fewer changed queries or groups has no interval that covers as stated.
MIN_CHANGED = 10
MIN_GROUPS = 20
BETTER: Final[tuple[Answer, ...]] = ("better", "better, by less than min_gain")
WORSE: Final[tuple[Answer, ...]] = ("worse", "worse, by less than min_gain")
#: Answers that claim something about the true difference.
SHOWN: Final[tuple[Answer, ...]] = (*BETTER, *WORSE, "equivalent")
NOT_SHOWN: Final[tuple[Answer, ...]] = ("not shown", "not shown (within simulation error)")


def has_few_changes(changed: int, groups: int) -> bool:
    """Whether the interval may not cover as stated: too few changed queries or groups."""
    return changed < MIN_CHANGED or groups < MIN_GROUPS


def decide_answer(row: RowResult, *, changed: int, alpha: float = 0.05) -> Answer:
    """The answer that the flips of a family support.

    Args:
        row: What they say about the comparison.
        changed: Queries that differ between the two systems.
        alpha: Level of the test.

    Returns:
        ``identical``: no query differs. ``better`` and ``worse``: p ≤ ``alpha``; ``by less than
        min_gain``: and the whole interval lies inside ±m. ``equivalent``: not significant, and the
        whole interval lies inside ±m. Both need 10 changed queries and 20 groups. ``not shown``:
        else; ``(within simulation error)``: more draws could decide.
    """
    if changed == 0:
        return "identical"
    is_within = row.is_within and not has_few_changes(changed, row.estimate.groups)
    if row.decision == "open":
        return "not shown (within simulation error)"
    if row.p <= alpha:
        is_small = is_within and row.within_decision == "clear"
        if row.estimate.mean > 0:
            return "better, by less than min_gain" if is_small else "better"
        return "worse, by less than min_gain" if is_small else "worse"
    if row.within_decision == "open":
        return "not shown (within simulation error)"
    return "equivalent" if is_within else "not shown"


#: Differences are skewed where their skewness lies beyond ± this …
MOST_SKEWNESS = 1.0
#: … and there are fewer queries, or groups, than this.
ENOUGH_QUERIES = 100


@dataclass(frozen=True)
class SkewedDifference:
    """What stands beside an answer whose differences are skewed.

    Attributes:
        skewness: Of the differences by query, or of the groups' sums ÷ the mean size of a group.
        median: Of the same.
        sign_p: Two-sided p of the sign test of the same; ties are left out.
        bound: With skewness against the answer, the one-sided betting bound: the true difference
            is at least so far from 0 in the answer's direction; None with skewness in it, or
            where a difference beyond ±1 allows no such bound.
        is_against: The skewness is against the answer.
        is_withheld: The bound does not carry the answer, which is therefore not shown.
    """

    skewness: float
    median: float
    sign_p: float
    bound: float | None
    is_against: bool
    is_withheld: bool


def check_skew(
    answer: Answer, differences: FloatArray, groups: IntArray, *, alpha: float = 0.05
) -> tuple[Answer, SkewedDifference | None]:
    """The answer that skewed differences leave, and what to say of them.

    Args:
        answer: That of the family.
        differences: Shape (Q,): candidate − baseline.
        groups: Shape (Q,), codes.
        alpha: 1 − confidence of the one-sided bound.

    Returns:
        The answer as it is, and None, where it is no ``better`` or ``worse``, or where the
        differences are many or not skewed.
    """
    if answer not in (*BETTER, *WORSE):
        return answer, None
    values, _ = scale_groups(differences, groups)
    skewness = compute_skewness(values)
    if len(values) >= ENOUGH_QUERIES or not abs(skewness) > MOST_SKEWNESS:
        return answer, None
    direction = 1 if answer in BETTER else -1
    is_against = direction * skewness < 0
    bound = betting_bound(direction * differences, groups, alpha=alpha) if is_against else math.nan
    is_withheld = is_against and not bound > 0  # written so that NaN ends here too
    skew = SkewedDifference(
        skewness,
        float(np.median(values)),
        sign_test_p(values),
        None if math.isnan(bound) else float(bound),
        is_against,
        is_withheld,
    )
    return "not shown" if is_withheld else answer, skew


def compute_skewness(values: FloatArray) -> float:
    """Third central moment ÷ the standard deviation cubed, of the sample; 0 without spread."""
    deviations = values - values.mean()
    spread = math.sqrt(float((deviations**2).mean()))
    return float(((deviations / spread) ** 3).mean()) if spread > 0 else 0.0


def sign_test_p(values: FloatArray) -> float:
    """Two-sided p of the exact sign test of (n,) values, those of 0 left out; 1 where all are 0."""
    positive, negative = int((values > 0).sum()), int((values < 0).sum())
    n = positive + negative
    tail = sum(math.comb(n, k) for k in range(min(positive, negative) + 1))
    return min(1.0, math.ldexp(tail, 1 - n))


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
        p: Two-sided.
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
        low: Lower end of the interval; on the primary measure the intervals of all systems and
            collections hold together, on others each alone.
        high: Upper end.
        standard_error: Of the difference, by group (CR2).
        critical_value: Standard errors from the difference to an end of a two-sided interval of
            the correction; missing with one group, and where so few groups changed that there is
            none.
        p: Two-sided, of Student's t; not adjusted.
        p_adjusted: Over all systems and collections; None for any but the primary measure.
        p_floor: ``p_adjusted`` is the smallest that the draws can give: the true one may be less.
        few_changes: Fewer than 10 changed queries or 20 groups: the interval may cover less than
            it says.
        effect_size: Difference ÷ standard deviation over queries; None without spread.
        min_detectable_difference: With 80 % power at the critical value; None where no spread is
            known.
        answer: What the comparison shows; None for any but the primary measure.
        skew: What stands beside an answer whose differences are skewed; None = nothing does.
        trial_share: The part of the variance of the difference that comes from repeats of all
            queries together; 0 = the plain paired test of means over repeats is right. None where
            both systems have one repeat.
    """

    measure: str
    baseline: str
    candidate: str
    standard_error: OptionalFloat = None
    critical_value: OptionalFloat = None
    p_adjusted: OptionalFloat
    p_floor: bool = False
    few_changes: bool = False
    effect_size: OptionalFloat = None
    min_detectable_difference: OptionalFloat
    answer: Answer | None = None
    skew: SkewedDifference | None = None
    trial_share: OptionalFloat = None

    def _table_columns(self, limit: int | None = None) -> Columns:
        fields = self.model_dump()
        names = dict.fromkeys(("measure", "baseline", "candidate", *fields))
        return {name: [fields[name]][:limit] for name in names}


class Comparison(SystemDifference):
    """One candidate against the baseline on one measure, as it was just computed.

    Attributes:
        low: Lower end of the difference's interval; NaN with one group.
        high: Upper end; NaN with one group.
        standard_error: Of the difference, by group (CR2); NaN with one group.
        critical_value: NaN likewise, and where so few groups changed that there is none.
        baseline_mean: Mean over queries.
        candidate_mean: Mean over queries.
        queries: Q.
        groups: G, the units of the test and the interval; Q where none are declared.
        freedom: Degrees of freedom of the standard error (Bell–McCaffrey); NaN with one group.
    """

    low: float
    high: float
    standard_error: float = math.nan
    critical_value: float = math.nan
    baseline_mean: float
    candidate_mean: float
    queries: int
    groups: int
    freedom: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return self.model_dump()

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        p = self.p if self.p_adjusted is None else self.p_adjusted
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"Comparison({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"p {p:.3g}, {self.wins}/{self.ties}/{self.losses} of {self.queries}{answer})"
        )


def paired_difference(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Candidate − baseline, (Q,), float noise set to 0, as the test looks at signs."""
    difference = candidate - baseline
    return np.where(np.abs(difference) <= NOISE, 0.0, difference)


#: ``complete``: an unlisted document is not relevant; ``pooled``: some document is judged not
#: relevant. Where none is: ``sparse`` = declared so; ``dropped zeros`` = declared as pooled;
#: ``undeclared``.
JudgmentKind: TypeAlias = Literal["pooled", "complete", "sparse", "dropped zeros", "undeclared"]
#: Above this share of unjudged documents in the top 10 a measure cannot be trusted.
MAX_UNJUDGED = 0.2
#: What an answer needs where nothing tells a shallow pool from a bad system.
CONDITION = "if unjudged documents are not relevant"

#: What an answer claims of the true difference: above 0, within ±m, or below 0.
Direction: TypeAlias = Literal[1, 0, -1]


def name_kind(declared: str | None, *, has_irrelevant: bool) -> JudgmentKind:
    """The kind of judgments by their declaration, and by whether a document is not relevant."""
    if declared == "complete" or has_irrelevant:
        return "complete" if declared == "complete" else "pooled"
    if declared is None:
        return "undeclared"
    return "sparse" if declared == "sparse" else "dropped zeros"


def unjudged_decide(
    direction: Direction,
    judged_only: MeanEstimate | None,
    filled_difference: float | None,
    m: float,
    *,
    is_pass: bool = False,
    pool_share: float | None = None,
) -> bool:
    """Whether a shown answer rests on unjudged documents.

    It does where the difference over judged documents only is shown to contradict it, or where
    the difference with unjudged documents filled contradicts it. What contradicts an answer:

    =============  ========================================  ==========================
    answer         interval over judged documents only       filled difference
    =============  ========================================  ==========================
    direction 1    wholly below 0                            below 0
    direction −1   wholly above 0                            above 0
    direction 0    wholly above m, or wholly below −m        not inside ±m
    a pass         wholly below −m                           not above −m
    =============  ========================================  ==========================

    Args:
        direction: 1 = better, −1 = worse, 0 = equivalent within ±m; not read for a pass.
        judged_only: The difference over judged documents only; None = not computed.
        filled_difference: The mean with unjudged documents filled; None = not computed, which
            contradicts nothing; NaN = no list has a judged document, which contradicts all.
        m: The tolerance, at least 0.
        is_pass: Whether the answer is that the candidate loses less than m.
        pool_share: Where a pool was judged and only its relevant documents are known: the larger
            share of unjudged documents in a top 10. Above :data:`MAX_UNJUDGED` they decide every
            answer, as neither difference can be computed. None = other judgments.
    """
    if pool_share is not None:
        return pool_share > MAX_UNJUDGED
    low, high = (judged_only.low, judged_only.high) if judged_only is not None else (-m, m)
    filled = filled_difference
    # The conditions on the filled difference are negated, so that NaN contradicts them all.
    if is_pass:
        return high < -m - NOISE or (filled is not None and not filled > -m)
    if direction == 0:
        return low > m or high < -m or (filled is not None and not abs(filled) < m)
    is_other_way = high < 0 if direction > 0 else low > 0
    return is_other_way or (filled is not None and not filled * direction >= -NOISE)
