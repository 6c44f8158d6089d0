"""The updates of a baseline: why each was made, and what it changed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.gate.records.changes import ListChange, QueryRegression
from fusion_bench.gate.records.check_result import CheckOutcome, CheckResult
from fusion_bench.gate.records.policy_change import PolicyChange


class CheckUpdate(CheckOutcome):
    """What an update did to one check of the policy.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
        measure: Its name.
        max_drop: The tolerance.
        status: What the gate says of the new values against the old ones.
        error: Why it could not be checked; then the numbers are None.
        old_mean: Mean of the replaced baseline.
        new_mean: Mean of the new one.
        difference: Mean of new − old.
        changed: Queries whose value differs.
        losses: Queries whose value is lower.
        queries: Q.
    """

    old_mean: float | None
    new_mean: float | None
    difference: float | None
    changed: int
    losses: int
    queries: int

    @classmethod
    def from_result(cls, check: CheckResult) -> CheckUpdate:
        """The part of a check's result that is kept."""
        kept = check.model_dump(include=set(cls.model_fields))
        return cls(**kept, old_mean=check.baseline_mean, new_mean=check.candidate_mean)


class QueryLoss(StoredRecord):
    """A query that an update made worse.

    Attributes:
        collection: The dataset.
        query: Its id.
        text: The beginning of its text; empty where the dataset has none.
        measure: The first measure of the policy.
        old_value: Its value in the replaced baseline.
        new_value: Its value in the new one.
    """

    collection: str
    query: str
    text: str
    measure: str
    old_value: float
    new_value: float

    @classmethod
    def from_result(cls, loss: QueryRegression) -> QueryLoss:
        """The part of a loss that is kept."""
        kept = loss.model_dump(include={"collection", "query", "text", "measure"})
        return cls(**kept, old_value=loss.value_before, new_value=loss.value_after)


class BaselineUpdate(StoredRecord):
    """Why the baseline was written, and what that changed.

    Attributes:
        updated_at: UTC, ISO 8601.
        reasons: As given with ``--reason``; further ones were added without a change.
        version: The version of this package.
        config_sha256: SHA-256 of the system's resolved configuration.
        means: Means by collection and measure.
        verdict: What the gate says of the new values against the old ones, in one line; empty
            where there was no baseline, or one that cannot be compared.
        incomparable: Why the two, or some of their measures, cannot be compared.
        config_changes: What differs in the resolved configuration: path → (old, new).
        list_changes: What differs in the lists that both read.
        policy_changes: What differs in the policy; the looser ones are accepted by this update.
        checks: Every check of the policy.
        losses: The queries that lost most.
        is_anchor: Whether the values became the anchor.
    """

    updated_at: str
    reasons: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    version: str
    config_sha256: str
    means: dict[str, dict[str, float]]
    verdict: str = ""
    incomparable: tuple[str, ...] = ()
    config_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    list_changes: tuple[ListChange, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    checks: tuple[CheckUpdate, ...] = ()
    losses: tuple[QueryLoss, ...] = ()
    is_anchor: bool = False

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(self.reasons)
