"""The difference of two systems as their unjudged documents could change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.evaluation.unjudged.unjudged_values import UnjudgedValues
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, exact_mean
from fusion_bench.stats.unjudged_rule import Direction, JudgmentKind, unjudged_decide


@dataclass(frozen=True, eq=False)
class UnjudgedEvidence:
    """One system on one measure.

    Attributes:
        share: Shape (Q,): share of unjudged documents in the top 10.
        judged_only: Shape (Q,): values over judged documents only.
        filled: Shape (Q,): values with unjudged documents filled; None = no formula.
    """

    share: FloatArray
    judged_only: FloatArray
    filled: FloatArray | None

    @classmethod
    def of_measure(cls, values: UnjudgedValues, measure: int = 0) -> UnjudgedEvidence:
        """Those of the measure with this index."""
        return cls(values.share, values.judged_only[measure], values.filled[measure])

    def select_queries(self, keep: BoolArray | IntArray) -> UnjudgedEvidence:
        """Only the queries where ``keep``, shape (Q,), is true, or the ones at these indices."""
        filled = None if self.filled is None else self.filled[keep]
        return UnjudgedEvidence(self.share[keep], self.judged_only[keep], filled)


def combine_evidence(parts: Sequence[UnjudgedEvidence], codes: IntArray) -> UnjudgedEvidence:
    """The evidence of a system that answers each query as one of several does.

    Args:
        parts: One a system, over the same Q queries.
        codes: Shape (Q,): which of them answers the query.
    """
    filled = [part.filled for part in parts if part.filled is not None]

    def choose(rows: Sequence[FloatArray]) -> FloatArray:
        return np.stack(rows)[codes, np.arange(len(codes))]

    return UnjudgedEvidence(
        choose([part.share for part in parts]),
        choose([part.judged_only for part in parts]),
        choose(filled) if len(filled) == len(parts) else None,
    )


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
        """As report files hold it."""
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
