"""Unjudged documents in a comparison: three views of the difference, and when they decide.

The views are the share of unjudged documents in the top 10, the difference over judged documents
only, and the difference with unjudged documents filled. Where the last two contradict an answer,
unjudged documents decide it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.data.ordering import NOISE, BoolArray, FloatArray, IntArray
from fusion_bench.stats.intervals import (
    MeanEstimate,
    estimate_mean,
    exact_mean,
    paired_difference,
)
from fusion_bench.util.formatting import format_difference, format_number, format_percent

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


class UnjudgedResult(ReportRecord):
    """One difference, candidate − baseline, seen through its unjudged documents.

    Attributes:
        candidate_share: Mean share of unjudged documents in the candidate's top 10.
        baseline_share: In the baseline's.
        judged_only: The difference over judged documents only; None = not computed, as no
            document is judged not relevant.
        low: Lower end of its interval; None where no spread is known.
        high: Upper end.
        filled: The difference where an unjudged document has the mean gain of the same system's
            judged documents at its rank; None = not computed, as above, or the measure has no
            formula for it, or no list has a judged document.
        is_conditional: No document is judged not relevant, and the dataset does not declare why:
            an answer holds if unjudged documents are not relevant.
    """

    candidate_share: float
    baseline_share: float
    judged_only: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    filled: OptionalFloat = None
    is_conditional: bool = False

    @property
    def condition(self) -> str:
        """What an answer needs, to be put behind it; empty = nothing."""
        return f" {CONDITION}" if self.is_conditional else ""

    @property
    def has_unjudged(self) -> bool:
        """Whether either system returns an unjudged document in its top 10."""
        return max(self.candidate_share, self.baseline_share) > 0

    @property
    def description(self) -> str:
        """All three views in one line."""
        shares = (
            f"unjudged in the top 10: {format_percent(self.candidate_share)} "
            f"(baseline {format_percent(self.baseline_share)})"
        )
        if self.judged_only is None:
            return f"{shares}; no document is judged not relevant, so no difference corrects for it"
        judged = format_difference(self.judged_only, self.low, self.high)
        filled = "not computed" if self.filled is None else format_number(self.filled, signed=True)
        return f"{shares}; over judged documents only {judged}; with unjudged estimated {filled}"


@dataclass(frozen=True, eq=False)
class UnjudgedEvidence:
    """One system on one measure.

    Attributes:
        share: Shape (Q,): share of unjudged documents among the first 10 that are returned; 0
            where nothing is. A report keeps its mean alone, shape (1,).
        judged_only: Shape (Q,): values over judged documents only, of the list before ``top_k``
            cuts it: without the unjudged documents others must be able to move up.
        filled: Shape (Q,): values where an unjudged document has the mean gain of the system's
            judged documents at its rank; None = the measure has no formula for it.
    """

    share: FloatArray
    judged_only: FloatArray
    filled: FloatArray | None

    def select_queries(self, keep: BoolArray | IntArray) -> UnjudgedEvidence:
        """Only the queries where ``keep``, shape (Q,), is true, or the ones at these indices."""
        filled = None if self.filled is None else self.filled[keep]
        share = self.share[keep] if len(self.share) == len(self.judged_only) else self.share
        return UnjudgedEvidence(share, self.judged_only[keep], filled)


@dataclass(frozen=True)
class UnjudgedDifference:
    """Candidate − baseline on one measure.

    Attributes:
        candidate_share: Mean share of unjudged documents in the candidate's top 10.
        baseline_share: In the baseline's.
        judged_only: The difference over judged documents only; None = no document is judged not
            relevant.
        filled: The mean difference with unjudged documents filled; None likewise, or no formula;
            NaN = no list has a judged document.
        kind: Of the judgments.
    """

    candidate_share: float
    baseline_share: float
    judged_only: MeanEstimate | None
    filled: float | None
    kind: JudgmentKind = "pooled"

    def decides(self, direction: Direction, m: float, *, is_pass: bool = False) -> bool:
        """Whether unjudged documents decide an answer; see :func:`unjudged_decide`."""
        share = max(self.candidate_share, self.baseline_share)
        pool_share = share if self.kind == "dropped zeros" else None
        views = (self.judged_only, self.filled)
        return unjudged_decide(direction, *views, m, is_pass=is_pass, pool_share=pool_share)

    @property
    def record(self) -> UnjudgedResult:
        """The record that report files hold."""
        judged = self.judged_only
        return UnjudgedResult(
            candidate_share=self.candidate_share,
            baseline_share=self.baseline_share,
            judged_only=None if judged is None else judged.mean,
            low=None if judged is None else judged.low,
            high=None if judged is None else judged.high,
            filled=self.filled,
            is_conditional=self.kind == "undeclared",
        )


def compare_unjudged(
    candidate: UnjudgedEvidence,
    baseline: UnjudgedEvidence,
    *,
    groups: IntArray | None = None,
    alpha: float = 0.05,
    kind: JudgmentKind = "pooled",
    is_bounded: bool = False,
) -> UnjudgedDifference:
    """Compare two systems over the same Q queries.

    Args:
        candidate: One system.
        baseline: The system to compare with.
        groups: Shape (Q,), codes of the groups; None = every query is its own.
        alpha: 1 − coverage of the interval.
        kind: Of the judgments. Where no document is judged not relevant, values over judged
            documents only, and filled ones, see the order among relevant documents alone, and are
            left out.
        is_bounded: Values lie in [0, 1], so that the interval stays within ±1.
    """
    shares = float(candidate.share.mean()), float(baseline.share.mean())
    if kind != "pooled":
        return UnjudgedDifference(*shares, None, None, kind)
    difference = paired_difference(candidate.judged_only, baseline.judged_only)
    filled = None
    if candidate.filled is not None and baseline.filled is not None:
        filled = exact_mean(paired_difference(candidate.filled, baseline.filled))
    judged_only = estimate_mean(difference, groups, alpha=alpha)
    if is_bounded:
        judged_only = judged_only.clip(-1.0, 1.0)
    return UnjudgedDifference(*shares, judged_only, filled)


class CompletionBounds(ReportRecord):
    """What the unjudged documents of a system could make of its mean.

    A completion gives each of them some grade of the scale; ideals are computed again.

    Attributes:
        depth: The k of Judged@k: the measure's cutoff, or 10.
        judged: Mean of Judged@k.
        low: Mean of the least values over completions; None = completions of the measure are not
            known.
        high: Mean of the greatest; None likewise.
    """

    depth: int
    judged: float
    low: OptionalFloat = None
    high: OptionalFloat = None


@dataclass(frozen=True, eq=False)
class QueryBounds:
    """One system on Q queries and one measure.

    Attributes:
        judged: Shape (Q,): ``Judged`` at the measure's cutoff, or at 10.
        ends: The least and the greatest value over completions, (Q,) each; None = completions of
            the measure are not known.
        depth: The measure's cutoff, or 10.
    """

    judged: FloatArray
    ends: tuple[FloatArray, FloatArray] | None
    depth: int

    def select_queries(self, keep: BoolArray | IntArray) -> QueryBounds:
        """Only the queries where ``keep``, shape (Q,), is true, or those of these indices."""
        ends = None if self.ends is None else (self.ends[0][keep], self.ends[1][keep])
        return replace(self, judged=self.judged[keep], ends=ends)

    @property
    def record(self) -> CompletionBounds:
        """The means, as report files hold them."""
        low, high = (None, None) if self.ends is None else (float(end.mean()) for end in self.ends)
        return CompletionBounds(
            depth=self.depth, judged=float(self.judged.mean()), low=low, high=high
        )
