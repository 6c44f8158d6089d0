"""The decision on one check, as a pure function of numbers; the record of its outcome."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from fusion_bench.checks.records import CompletionBounds
from fusion_bench.checks.unjudged import UnjudgedResult
from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.ordering import NOISE
from fusion_bench.experiment.settings import GatePolicy
from fusion_bench.measures.aliases import display_measure
from fusion_bench.stats.power import SampleSize
from fusion_bench.stats.repeat_variance import ENOUGH_REPEATS, FEW_REPEATS
from fusion_bench.util.formatting import format_number, pluralize

CheckStatus: TypeAlias = Literal[
    "unchanged",
    "pass",
    "pass on these queries",
    "fell",
    "regressed",
    "unjudged decide",
    "inconclusive",
]

#: Level of every test and of both lower bounds.
ALPHA = 0.05
#: Statuses that accept a candidate.
ACCEPTED: Final[frozenset[CheckStatus]] = frozenset({"unchanged", "pass", "pass on these queries"})
#: Statuses that claim a drop.
ALARMS: Final[frozenset[CheckStatus]] = frozenset({"fell", "regressed"})


def decide_status(
    *,
    changed: int,
    mean: float,
    max_drop: float,
    t_bound: float,
    betting_bound: float,
    p_fell: float,
    p_regressed: float,
) -> CheckStatus:
    """Decide the status of one check, in the order of ``CheckStatus``.

    ``unchanged``: no query changed. ``pass``: both lower bounds lie above −m; ``pass on these
    queries``: the t bound alone does. ``fell``: the mean is below −m, and d ≥ 0 is rejected;
    ``regressed``: mean ≥ −m is rejected, too. Otherwise ``inconclusive``. NaN never passes.
    ``unjudged decide`` is decided afterwards: see ``gate.checks.decides_status``.

    Args:
        changed: Queries whose value differs.
        mean: Of candidate − baseline over the queries of the check.
        max_drop: m ≥ 0.
        t_bound: One-sided 95 % lower bound of the mean; NaN = no spread is known.
        betting_bound: The same, assuming only that no difference is below −1.
        p_fell: Of the sign-flip test of d ≥ 0, adjusted over all checks.
        p_regressed: Of the one-sided t test of mean ≥ −m, adjusted likewise.
    """
    status: CheckStatus = "inconclusive"
    if not (p_fell >= 0 and abs(mean) >= 0):  # NaN ends here
        return status
    if not changed:
        return "unchanged"
    if mean < -max_drop - NOISE and p_fell <= ALPHA:
        status = "regressed" if p_regressed <= ALPHA else "fell"
    elif -max_drop < t_bound <= mean:
        status = "pass" if -max_drop < betting_bound <= mean else "pass on these queries"
    return status


def find_blocking(policy: GatePolicy) -> tuple[CheckStatus, ...]:
    """The statuses that block by a policy; the others pass, or are warnings."""
    blocking: list[CheckStatus] = ["regressed", "unjudged decide"]
    if policy.fell == "block":
        blocking.append("fell")
    if policy.inconclusive == "block":
        blocking.append("inconclusive")
    if policy.small_changes == "block":
        blocking.append("pass on these queries")
    return tuple(blocking)


class CheckRepeatsResult(StoredRecord):
    """How far the trials of the two sides of a check lie apart, and what single trials would say.

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
        single: Status → pairs of single trials, one a side, that would end in it, where the check
            is decided from them alone.
    """

    baseline: int
    candidate: int
    baseline_sd: float | None
    candidate_sd: float | None
    share: float
    is_paired: bool
    is_borrowed: bool
    single: dict[CheckStatus, int]

    @property
    def one_can_tell(self) -> bool:
        """Whether every pair of single repeats ends in one status."""
        return len(self.single) == 1

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
        pairs = pluralize(sum(self.single.values()), "pair")
        counts = ", ".join(f"{count} {status}" for status, count in self.single.items())
        if self.one_can_tell:
            return f"{text}; single trials agree ({pairs}: {counts})"
        return f"{text}; one trial cannot tell ({pairs} of single trials: {counts})"


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
    status: CheckStatus
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
        """The same with the measure's usual name beside it, as tables have it."""
        measure = display_measure(self.measure)
        return check_name(self.collection, self.slice, measure, self.reference)


class PowerRates(StoredRecord):
    """How often the rule passes and alarms on one check.

    Attributes:
        min_detectable_drop: Smallest true drop that raises an alarm with 80 % power; None where
            no value changed or no spread is known, as for every rate below.
        pass_rate: Probability of ``pass`` where there is no true difference.
        small_pass_rate: Probability of ``pass on these queries`` there.
        alarm_rate: Probability of ``fell`` or ``regressed`` there.
        false_pass_rate: Probability of either pass at a true drop of exactly m.
    """

    min_detectable_drop: float | None = None
    pass_rate: float | None = None
    small_pass_rate: float | None = None
    alarm_rate: float | None = None
    false_pass_rate: float | None = None


class CheckResult(PowerRates, CheckOutcome):
    """The statistics and the status of one check: a measure on a slice of a collection.

    Every rate is a probability under the rule of this very check, other checks included; see
    ``gate.power``.

    Attributes:
        groups: G; Q where no groups are declared.
        baseline_mean: Mean of the reference; None with an error, as every number below.
        candidate_mean: Mean of the candidate.
        sd: Sample standard deviation of the differences by query; None with one query.
        design_effect: Variance of the difference by group ÷ by query; None = no spread is known.
        t_bound: One-sided 95 % lower bound of the difference by Student's t; None with one group.
        betting_bound: One-sided 95 % lower bound that also holds with rare losses of up to 1;
            None where a difference is below −1.
        p: One-sided, of the sign-flip test of "no drop", unadjusted; where repeats add variance,
            never below Student's.
        p_fell: The same, adjusted over all checks.
        p_regressed: One-sided, of the t test of "a drop of at most m", adjusted likewise.
        needed: Queries with which either pass has a probability of 80 % where there is no true
            difference; None without tolerance or spread.
        unjudged: What unjudged documents could change in the difference; None with complete
            judgments.
        bounds: What they could make of the candidate's mean; None likewise, and where it is not
            known.
        trials: How far repeats lie apart, and what single ones would say; None with one repeat a
            side.
    """

    groups: int
    baseline_mean: float | None = None
    candidate_mean: float | None = None
    sd: float | None = None
    design_effect: float | None = None
    t_bound: float | None = None
    betting_bound: float | None = None
    p: float | None = None
    p_fell: float | None = None
    p_regressed: float | None = None
    needed: SampleSize | None = None
    unjudged: UnjudgedResult | None = None
    bounds: CompletionBounds | None = None
    trials: CheckRepeatsResult | None = None

    def without_pass(self) -> CheckResult:
        """The same where nothing may be more than ``pass on these queries``."""
        rates = (self.pass_rate, self.small_pass_rate)
        return self.model_copy(
            update={
                "status": "pass on these queries" if self.status == "pass" else self.status,
                "pass_rate": None if rates[0] is None else 0.0,
                "small_pass_rate": None if None in rates else sum(filter(None, rates)),
            }
        )

    @property
    def stated_status(self) -> str:
        """The status, and behind it what it needs where it claims something."""
        if self.status == "unjudged decide":
            return "judge first"
        claims = self.status not in {"unchanged", "inconclusive"}
        return self.status + (self.unjudged.condition if claims and self.unjudged else "")


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
