"""The decision on one check, as a pure function of numbers; the record of its outcome."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.ordering import NOISE
from fusion_bench.experiment.settings import GatePolicy
from fusion_bench.measures.aliases import display_measure
from fusion_bench.stats.inference import RowInference
from fusion_bench.stats.intervals import ALPHA, clopper_pearson
from fusion_bench.stats.power import SampleSize
from fusion_bench.stats.repeat_variance import ENOUGH_REPEATS, FEW_REPEATS
from fusion_bench.stats.unjudged import CompletionBounds, UnjudgedResult
from fusion_bench.util.formatting import format_number, format_percent, pluralize

CheckStatus: TypeAlias = Literal[
    "unchanged", "pass", "regressed", "unjudged decide", "inconclusive"
]
#: Statuses of earlier versions, which stored records may have.
OLD_STATUSES: Final = {"pass on these queries": "pass", "fell": "regressed"}

#: The check of the unanswerable queries that a system answers.
FALSE_ANSWERS: Final = "false answers"
#: More queries are not proposed.
MOST_NEEDED: Final = 100_000
#: Statuses that accept a candidate.
ACCEPTED: Final[frozenset[CheckStatus]] = frozenset({"unchanged", "pass"})


def decide_status(
    row: RowInference, *, changed: int, max_drop: float, alpha: float = ALPHA
) -> CheckStatus:
    """Decide the status of one check.

    ``unchanged``: no query changed. ``pass``: the check's own one-sided lower end lies above −m.
    ``regressed``: the mean is below −m, and the family's interval excludes 0. Otherwise
    ``inconclusive``. NaN never passes. ``unjudged decide`` is decided afterwards: see
    ``gate.checks.decides_status``.

    Args:
        row: The difference, candidate − reference, in the family of all checks.
        changed: Queries whose value differs.
        max_drop: m ≥ 0.
        alpha: Level, of the family and of the check's own lower end.
    """
    if not changed:
        return "unchanged"
    if row.lower_bound(alpha) > -max_drop:
        return "pass"
    if row.mean < -max_drop - NOISE and row.p <= alpha:
        return "regressed"
    return "inconclusive"


def find_blocking(policy: GatePolicy) -> tuple[CheckStatus, ...]:
    """The statuses that block by a policy; the others pass, or are warnings."""
    always: tuple[CheckStatus, ...] = ("regressed", "unjudged decide")
    return (*always, "inconclusive") if policy.inconclusive == "block" else always


class CheckRepeatsResult(StoredRecord):
    """How far the trials of the two sides of a check lie apart.

    Attributes:
        baseline: Trials of the reference.
        candidate: Trials of the candidate.
        baseline_sd: Sample standard deviation of the means of its trials; None with one.
        candidate_sd: Likewise.
        share: The part of the variance of the difference that trials of all queries together add;
            0 = the plain paired test of the means over trials is right.
        is_paired: Both sides read the same trials of a list, and each trial is compared with
            itself.
        is_borrowed: A side of one trial counts as unsteady as the other side.
    """

    baseline: int
    candidate: int
    baseline_sd: float | None
    candidate_sd: float | None
    share: float
    is_paired: bool
    is_borrowed: bool

    @property
    def description(self) -> str:
        """The repeats in words."""
        text = (
            f"trials: baseline {_describe_side(self.baseline, self.baseline_sd)}, candidate "
            f"{_describe_side(self.candidate, self.candidate_sd)}"
        )
        if self.is_borrowed:
            text += "; the side of one trial counts as unsteady as the other"
        if self.share > 0:
            text += f"; {100 * self.share:.0f} % of the variance comes from trials"
        if not {self.baseline, self.candidate}.isdisjoint(range(2, FEW_REPEATS + 1)):
            text += (
                f"; {FEW_REPEATS} or fewer hardly tell their effect, {ENOUGH_REPEATS} are needed"
            )
        return text


def _describe_side(repeats: int, sd: float | None) -> str:
    spread = "" if sd is None else f" (sd of their means {format_number(sd)})"
    return f"{repeats}{spread}"


#: What a check compares the candidate with.
Reference: TypeAlias = Literal["baseline", "anchor"]
#: At the end of the name of a check that compares with the anchor.
ANCHOR_SUFFIX = " since the anchor"


def check_name(
    collection: str, slice_name: str | None, measure: str, reference: Reference = "baseline"
) -> str:
    """``collection / slice / measure``; without a slice for all queries."""
    parts = (collection, slice_name, measure)
    name = " / ".join(part for part in parts if part is not None)
    return f"{name}{ANCHOR_SUFFIX}" if reference == "anchor" else name


class CheckOutcome(StoredRecord):
    """Which check it is, and how it ended.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
        measure: Its name.
        reference: What the candidate is compared with: the baseline, or its anchor.
        max_drop: Tolerance m.
        status: What the rule decides; ``inconclusive`` with an error.
        error: Why it could not be checked; None where it could. No policy lets an error pass.
        queries: Q.
        changed: Queries whose value differs.
        losses: Queries whose value is lower.
        difference: Mean of candidate − reference; None with an error.
    """

    collection: str
    slice: str | None
    measure: str
    reference: Reference = "baseline"
    max_drop: float
    status: Annotated[CheckStatus, BeforeValidator(lambda text: OLD_STATUSES.get(text, text))]
    error: str | None
    queries: int
    changed: int = 0
    losses: int = 0
    difference: float | None = None

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return check_name(self.collection, self.slice, self.measure, self.reference)

    @property
    def display_name(self) -> str:
        """The check's name for people, with ``MRR`` for ``RR``."""
        measure = display_measure(self.measure)
        return check_name(self.collection, self.slice, measure, self.reference)


class CheckResult(CheckOutcome):
    """The statistics and the status of one check: a measure on a slice of a collection.

    Attributes:
        groups: G; Q where no groups are declared.
        baseline_mean: Mean of the reference; None with an error, as every number below.
        candidate_mean: Mean of the candidate.
        standard_error: Of the difference, by group; None with one group.
        design_effect: Variance of the difference by group ÷ by query; None = no spread is known.
        lower_end: Of the check's own one-sided 95 % interval; None with one group.
        upper_end: Of the interval that holds together with those of all checks; None where too few
            queries changed.
        p: Two-sided, over all checks.
        has_few_changes: Too few queries changed for draws to decide: nothing is promised.
        min_detectable_drop: Smallest true drop that ends in ``regressed`` with a power of about .8;
            None where draws do not decide, as for every rate below.
        pass_rate: Probability of ``pass`` where there is no true difference.
        regressed_rate: Probability of ``regressed`` there.
        false_pass_rate: Probability of ``pass`` at a true drop of exactly m.
        unseen_loss: The share of all queries that may lose 1 unseen; None where a difference is
            below −1.
        needed: Queries with which ``pass`` has a probability of 80 % where there is no true
            difference; None without tolerance or spread.
        is_withheld: It would pass, but too many queries depend on others that no group joins.
        unjudged: What unjudged documents could change in the difference; None with complete
            judgments.
        bounds: What they could make of the candidate's mean; None likewise, and where it is not
            known.
        trials: How far repeats lie apart; None with one repeat a side.
    """

    groups: int
    baseline_mean: float | None = None
    candidate_mean: float | None = None
    standard_error: float | None = None
    design_effect: float | None = None
    lower_end: float | None = None
    upper_end: float | None = None
    p: float | None = None
    has_few_changes: bool = False
    min_detectable_drop: float | None = None
    pass_rate: float | None = None
    regressed_rate: float | None = None
    false_pass_rate: float | None = None
    unseen_loss: float | None = None
    needed: SampleSize | None = None
    is_withheld: bool = False
    unjudged: UnjudgedResult | None = None
    bounds: CompletionBounds | None = None
    trials: CheckRepeatsResult | None = None

    def withhold_pass(self) -> CheckResult:
        """Make a pass inconclusive, where nothing may pass."""
        if self.status != "pass":
            return self
        return self.model_copy(update={"status": "inconclusive", "is_withheld": True})

    @property
    def stated_status(self) -> str:
        """The status, and behind it what it needs where it claims something."""
        if self.status == "unjudged decide":
            return "judge first"
        claims = self.status in {"pass", "regressed"}
        return self.status + (self.unjudged.condition if claims and self.unjudged else "")


class FalseAnswersResult(StoredRecord):
    """The share of unanswerable queries that the candidate answers, on one collection.

    Attributes:
        collection: The dataset.
        max: Limit of the share.
        status: ``pass``: the upper limit is at most ``max``; ``regressed``: the lower one is above
            it; otherwise ``inconclusive``.
        queries: Unanswerable queries, one a group.
        answered: Those that it answers.
        low: One-sided lower limit of the share (Clopper–Pearson).
        high: One-sided upper limit.
        needed: Queries with which this share would be a ``pass``; None = it is decided, or no
            number suffices.
    """

    collection: str
    max: float
    status: CheckStatus
    queries: int
    answered: int
    low: float
    high: float
    needed: int | None

    @property
    def name(self) -> str:
        """``collection / false answers``."""
        return check_name(self.collection, None, FALSE_ANSWERS)

    @property
    def share(self) -> float:
        """The share of the queries that are answered."""
        return self.answered / self.queries

    @property
    def statement(self) -> str:
        """Its name, its status and the description."""
        return f"{self.name}: {self.status}: {self.description}"

    @property
    def description(self) -> str:
        """The counts, the limits, and what would decide."""
        text = (
            f"answers {self.answered:,} of {pluralize(self.queries, 'unanswerable query')} "
            f"({format_percent(self.share)}, limits {format_percent(self.low)} and "
            f"{format_percent(self.high)}), allowed {format_percent(self.max)}"
        )
        if self.status != "inconclusive":
            return text
        if self.needed is None:
            return f"{text}; at this share no number of queries leads to a pass"
        return f"{text}; about {self.needed:,} unanswerable queries would lead to a pass"


def decide_false_answers(
    collection: str, answered: int, queries: int, limit: float, alpha: float = ALPHA
) -> FalseAnswersResult:
    """Decide the check of false answers on one collection.

    Args:
        collection: The dataset.
        answered: Unanswerable queries that are answered.
        queries: Unanswerable queries, one a group, at least 1.
        limit: Limit of their share.
        alpha: Level of each limit.
    """
    low, high = clopper_pearson(answered, queries, 1 - 2 * alpha)
    status: CheckStatus = "inconclusive"
    if high <= limit:
        status = "pass"
    elif low > limit:
        status = "regressed"
    share, needed = answered / queries, queries
    while status == "inconclusive" and needed <= MOST_NEEDED:
        if clopper_pearson(math.ceil(share * needed), needed, 1 - 2 * alpha)[1] <= limit:
            break
        needed += max(1, needed // 50)
    is_known = status == "inconclusive" and needed <= MOST_NEEDED
    return FalseAnswersResult(
        collection=collection,
        max=limit,
        status=status,
        queries=queries,
        answered=answered,
        low=low,
        high=high,
        needed=needed if is_known else None,
    )


class QueryCheck(StoredRecord):
    """A check of single queries.

    Attributes:
        collection: The dataset.
        error: Why it could not be checked.
        holds: Whether the condition holds.
    """

    collection: str
    error: str | None
    holds: bool

    @property
    def is_violated(self) -> bool:
        """Whether it was checked, and does not hold."""
        return not self.holds and self.error is None

    @property
    def outcome(self) -> str:
        """``holds``, ``violated``, or why it was not checked."""
        if self.error is not None:
            return f"not checked: {self.error}"
        return "holds" if self.holds else "violated"


class GuardResult(QueryCheck):
    """One guard on one collection; it holds where the share is at most ``max_share``.

    Attributes:
        violations: Queries that lose more than ``max_loss``.
        share: Their share of all queries.
    """

    measure: str
    max_loss: float
    max_share: float
    violations: int
    share: float


class GoldenResult(QueryCheck):
    """One golden query; it holds where the rank is at most ``top``.

    Attributes:
        rank: The document's rank; None = not in the list.
    """

    query: str
    document: str
    top: int
    rank: int | None
