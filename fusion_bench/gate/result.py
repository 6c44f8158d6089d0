"""The gate's verdict and its reasons: the record that every page is rendered from.

Format history:
    1   first version
    2   a check has a ``status``; keys are whole words
    3   ``list_changes``, ``policy_changes``; the text of a query; old ranks may be unknown
    4   ``lint``
    5   ``v2_enabled``, ``baseline_v2_enabled``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import Field

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.evaluation.report_records.lint_finding import LintFinding
from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.gate.changes import ListChange, QueryRegression
from fusion_bench.gate.verdict import CheckStatus
from fusion_bench.measures.aliases import display_measure
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView


def check_name(collection: str, slice_name: str | None, measure: str) -> str:
    """``collection / slice / measure``; without a slice for all queries."""
    parts = (collection, slice_name, measure)
    return " / ".join(part for part in parts if part is not None)


class CheckOutcome(StoredRecord):
    """Which check it is, and how it ended; its records describe the fields."""

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    status: CheckStatus
    error: str | None

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return check_name(self.collection, self.slice, self.measure)

    @property
    def display_name(self) -> str:
        """The same with the measure's usual name beside it, as tables have it."""
        return check_name(self.collection, self.slice, display_measure(self.measure))


class CheckResult(CheckOutcome):
    """The statistics and the status of one check: a measure on a slice of a collection.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
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

    queries: int
    groups: int
    changed: int = 0
    losses: int = 0
    baseline_mean: float | None = None
    candidate_mean: float | None = None
    difference: float | None = None
    lower_bound: float | None = None
    p: float | None = None
    p_holm: float | None = None
    min_detectable_drop: float | None = None
    false_pass_rate: float | None = None
    few_changed: bool = False


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


class GateVerdict(TableView, StoredRecord):
    """The verdict of a run of the gate.

    Attributes:
        format: Always ``fusion-bench-gate``.
        format_version: See the history in this module.
        experiment: Its name.
        baseline: File of the baseline.
        system: The candidate's name.
        baseline_system: The baseline's system.
        baseline_reason: Why the baseline was last written.
        refusals: Why the two cannot be compared; then nothing below was computed.
        config_changes: What differs in the resolved configuration: path → (before, after).
        list_changes: What differs in the lists that the baseline read.
        policy_changes: What differs in the policy: path → (before, after).
        checks: Every check.
        guards: Every guard.
        golden: Every golden query.
        regressions: The queries that lost most.
        on_inconclusive: What the policy does with an inconclusive check.
        exit_code: See :func:`decide_exit_code`.
        lint: What lint finds in the candidate, see ``docs/lint.md``; changes no exit code.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` says now; false = v2 runs as v1.
        baseline_v2_enabled: What it said when the baseline was written; None = not known.
    """

    format: Literal["fusion-bench-gate"] = "fusion-bench-gate"
    format_version: int = 5
    experiment: str
    baseline: str
    system: str
    baseline_system: str = ""
    baseline_reason: str = ""
    refusals: tuple[str, ...] = ()
    config_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    list_changes: tuple[ListChange, ...] = ()
    policy_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    golden: tuple[GoldenResult, ...] = ()
    regressions: tuple[QueryRegression, ...] = ()
    on_inconclusive: OnInconclusive = "fail"
    exit_code: int = 2
    lint: tuple[LintFinding, ...] = ()
    v2_enabled: bool = True
    baseline_v2_enabled: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``gate.json`` has it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        return f"GateVerdict({self.experiment!r}, {self.system}: {self.headline})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a check."""
        fields = ("difference", "lower_bound", "max_drop", "p_holm", "changed", "losses", "status")
        checks = self.checks[:limit]
        return {"check": [check.name for check in checks]} | {
            f: [getattr(check, f) for check in checks] for f in fields
        }

    @property
    def query_checks(self) -> tuple[GuardResult | GoldenResult, ...]:
        """Guards and golden queries."""
        return (*self.guards, *self.golden)

    @property
    def changed_parts(self) -> str:
        """What the candidate changed: ``lists and configuration changed``, or one, or neither."""
        parts = {"lists": self.list_changes, "configuration": self.config_changes}
        changed = " and ".join(name for name, changes in parts.items() if changes)
        return f"{changed or 'nothing'} changed"

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.refusals:
            return "refused: " + "; ".join(self.refusals)
        statuses = [check.status for check in self.checks]
        counts = [f"{statuses.count(status)} {status}" for status in get_args(CheckStatus)]
        violated = sum(check.is_violated for check in self.query_checks)
        if violated:
            counts.append(f"{pluralize(violated, 'guard')} violated")
        errors = sum(check.error is not None for check in (*self.checks, *self.query_checks))
        if errors:
            counts.append(pluralize(errors, "error"))
        outcome = {0: "passed", 1: "regressed", 2: "not checked", 3: "inconclusive"}
        checks = f"{pluralize(len(statuses), 'check')} ({', '.join(counts)})"
        suffix = f"; {self.changed_parts}" if self.list_changes else ""
        return f"{outcome[self.exit_code]}: {checks}{suffix}{self._switch_note}"

    @property
    def _switch_note(self) -> str:
        """``; RAG_FUSION_V2_ENABLED off (baseline: on)``; empty where it is on for both."""
        before, now = self.baseline_v2_enabled, self.v2_enabled
        if now and before is not False:
            return ""
        sides = {True: "on", False: "off", None: "not known"}
        baseline = "" if before is now else f" (baseline: {sides[before]})"
        return f"; RAG_FUSION_V2_ENABLED {sides[now]}{baseline}"


def decide_exit_code(
    checks: Sequence[CheckResult],
    query_checks: Sequence[QueryCheck],
    on_inconclusive: OnInconclusive,
) -> int:
    """Decide the exit code of the gate.

    Returns:
        0 = passed; 1 = a regression, or a guard or golden query is violated; 2 = something could
        not be checked, which no policy accepts; 3 = inconclusive, and the policy blocks.
    """
    statuses = [check.status for check in checks if check.error is None]
    if "regressed" in statuses or any(check.is_violated for check in query_checks):
        return 1
    errors = [check.error for check in checks] + [check.error for check in query_checks]
    if not statuses or any(error is not None for error in errors):
        return 2
    return 3 if "inconclusive" in statuses and on_inconclusive == "fail" else 0
