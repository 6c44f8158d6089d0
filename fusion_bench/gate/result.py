"""What the gate decided and why: the record that everything shown to people is rendered from.

Format history:
    1   first version
    2   a check has a ``status``; keys are whole words
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.gate.baseline import GateRecord
from fusion_bench.gate.verdict import CheckStatus
from fusion_bench.util.formatting import pluralize

__all__ = [
    "CheckResult",
    "DocumentChange",
    "GateVerdict",
    "GoldenResult",
    "GuardResult",
    "QueryCheck",
    "QueryRegression",
    "check_name",
]


def _known(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


#: A number that may be missing: NaN becomes None, as JSON has no NaN.
Maybe: TypeAlias = Annotated[float | None, BeforeValidator(_known)]


def check_name(collection: str, slice_name: str | None, measure: str) -> str:
    """``collection / slice / measure``; without a slice for all queries."""
    parts = (collection, slice_name, measure)
    return " / ".join(part for part in parts if part is not None)


class CheckResult(GateRecord):
    """The statistics and the status of one check: a measure on a slice of a collection.

    Attributes:
        collection: The dataset.
        slice: The query type; None = all queries.
        measure: Its name.
        max_drop: Tolerance m.
        status: What the rule decides; ``inconclusive`` with an error.
        error: Why it could not be checked; None where it could. No policy lets an error pass.
        queries: Q.
        groups: G; Q where no groups are declared.
        changed: Queries whose value differs.
        losses: Queries whose value is lower.
        baseline_mean: Mean of the baseline; None with an error, as every number below.
        candidate_mean: Mean of the candidate.
        difference: Mean of candidate − baseline.
        lower_bound: One-sided 95 % lower bound of the difference; None with one group.
        p: One-sided, unadjusted.
        p_holm: Adjusted over all checks.
        min_detectable_drop: Smallest true drop that the rule calls ``regressed`` with 80 % power;
            None where no spread is known.
        false_pass_rate: Probability of ``pass`` at a true drop of exactly m; None likewise.
        few_changed: Fewer than 10 queries changed: the status holds for these queries only.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    status: CheckStatus
    error: str | None
    queries: int
    groups: int
    changed: int = 0
    losses: int = 0
    baseline_mean: Maybe = None
    candidate_mean: Maybe = None
    difference: Maybe = None
    lower_bound: Maybe = None
    p: Maybe = None
    p_holm: Maybe = None
    min_detectable_drop: Maybe = None
    false_pass_rate: Maybe = None
    few_changed: bool = False

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return check_name(self.collection, self.slice, self.measure)


class GuardResult(GateRecord):
    """One guard on one collection.

    Attributes:
        losers: Queries that lose more than ``max_loss``.
        share: Of all queries.
        fault: Why it could not be checked.
        holds: Whether the share is at most ``max_share``.
    """

    collection: str
    measure: str
    max_loss: float
    max_share: float
    violations: int
    share: float
    error: str | None
    holds: bool


class GoldenResult(GateRecord):
    """One golden query.

    Attributes:
        place: Where the document stands; None = nowhere.
        fault: Why it could not be checked.
        holds: Whether it stands in the first ``top`` places.
    """

    collection: str
    query: str
    document: str
    top: int
    rank: int | None
    error: str | None
    holds: bool


#: What bounds single queries.
QueryCheck: TypeAlias = GuardResult | GoldenResult


class DocumentChange(GateRecord):
    """A relevant document of a query that lost, before and after.

    Attributes:
        document: Its id.
        grade: How relevant.
        before: Old rank; None = not in the list.
        after: New rank; None = not in the list.
        cut_before: Old rank below ``top_k``; None = the list is not cut above it.
        cut_after: New rank below ``top_k``; None likewise.
        moved_by: The term that moved it.
    """

    document: str
    grade: int
    rank_before: int | None
    rank_after: int | None
    cut_rank_before: int | None = None
    cut_rank_after: int | None = None
    cause: str

    @property
    def is_moved(self) -> bool:
        """Whether it stands elsewhere in the list than before."""
        return self.rank_before != self.rank_after


class QueryRegression(GateRecord):
    """One of the queries that lost most.

    Attributes:
        collection: The dataset.
        query: Its id.
        measure: The first measure of the policy.
        before: Its old value.
        after: Its new value.
        top_k: Where the old and the new list are cut; None = nowhere.
        documents: Its relevant documents, the most relevant first.
    """

    collection: str
    query: str
    measure: str
    value_before: float
    value_after: float
    top_k: tuple[int | None, int | None] = (None, None)
    documents: tuple[DocumentChange, ...]


class GateVerdict(GateRecord):
    """What the gate decided.

    Attributes:
        format: Always ``fusion-bench-gate``.
        format_version: See the history in this module.
        experiment: Its name.
        baseline: File of the baseline.
        system: The candidate's name.
        against: The baseline's system.
        reason: Why the baseline was last written.
        refused: Why the two cannot be compared; nothing below was then computed.
        changes: What differs in the resolved configuration: path → (before, after).
        checks: Every check.
        guards: Every guard.
        golden: Every golden query.
        worst: The queries that lost most.
        on_inconclusive: The policy.
        exit_code: 0 passed, 1 regression, 2 could not do it, 3 inconclusive and that blocks.
    """

    format: Literal["fusion-bench-gate"] = "fusion-bench-gate"
    format_version: int = 2
    experiment: str
    baseline: str
    system: str
    baseline_system: str = ""
    baseline_reason: str = ""
    refusals: tuple[str, ...] = ()
    config_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    golden: tuple[GoldenResult, ...] = ()
    regressions: tuple[QueryRegression, ...] = ()
    on_inconclusive: OnInconclusive = "fail"
    exit_code: int

    @property
    def query_checks(self) -> tuple[QueryCheck, ...]:
        """Guards and golden queries."""
        return (*self.guards, *self.golden)

    @property
    def headline(self) -> str:
        """The decision in one line."""
        if self.refusals:
            return "refused: " + "; ".join(self.refusals)
        verdicts = [check.status for check in self.checks]
        broken = [r for r in self.query_checks if not r.holds and r.error is None]
        faults = [c for c in self.checks if c.error is not None]
        unchecked = len(faults) + sum(bound.error is not None for bound in self.query_checks)
        words = {0: "passed", 1: "regressed", 2: "could not be checked", 3: "inconclusive"}
        counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in get_args(CheckStatus))
        more = f", {pluralize(len(broken), 'guard')} broken" if broken else ""
        more += f", {unchecked} could not be made" if unchecked else ""
        return f"{words[self.exit_code]}: {pluralize(len(verdicts), 'check')} ({counts}{more})"
