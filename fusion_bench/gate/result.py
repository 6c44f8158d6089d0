"""The gate's verdict and its reasons: the record that every page is rendered from.

Format history:
    1   first version
    2   a check has a ``status``; keys are whole words
    3   ``list_changes``, ``policy_changes``; the text of a query; old ranks may be unknown
    4   ``lint``
    5   ``v2_enabled``, ``baseline_v2_enabled``
    6   ``blocking`` instead of ``on_inconclusive``; new statuses, bounds and rates of a check
    7   ``policy_changes`` is a list with the effect of each; ``baseline_experiment``;
        ``data_warnings``
    8   ``is_acceptable``
    9   ``unreproduced``, ``base``, ``candidate_line``
    10  ``obstacles``
    11  five statuses; one lower end of a check, and what may be unseen; ``policy_notes``
    12  ``false_answers``
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field

from fusion_bench.checks.records import DataWarning, LintFinding, NearDuplicates, Obstacle
from fusion_bench.config.json_records import StoredRecord
from fusion_bench.gate.baseline import (
    LedgerLine,
    ListChange,
    PolicyChange,
    QueryRegression,
    SealedDrop,
)
from fusion_bench.gate.verdict import (
    ACCEPTED,
    CheckResult,
    CheckStatus,
    FalseAnswersResult,
    GoldenResult,
    GuardResult,
)
from fusion_bench.util.formatting import Columns, TableView, pluralize


class GateVerdict(TableView, StoredRecord):
    """The verdict of a run of the gate.

    Attributes:
        format: Always ``fusion-bench-gate``.
        format_version: See the history in this module.
        experiment: Its name.
        experiment_file: Its file, relative to the folder in which the gate ran; only the name where
            it lies elsewhere and was named by an absolute path.
        overrides: Values that replaced the file's, as ``--set`` stated them.
        baseline: File of the baseline.
        system: The candidate's name.
        baseline_experiment: The experiment that the baseline was written from.
        baseline_system: The baseline's system.
        baseline_reason: Why the baseline was last written.
        anchor_reason: Why the anchor's values were accepted; empty where they are the baseline's.
        needs_anchor: Whether ``--update`` is refused, so that only ``--anchor`` accepts the values.
        is_acceptable: False where neither accepts them: the grades or a list cannot be gated.
        runs: R: candidates since the last update that share the level.
        candidate_number: Which of them this is; None = not counted, as R is 1 or nothing changed.
        candidate_line: Its line in the ledger of checked candidates; None likewise.
        base: The commit that the change starts from, as ``--base`` named it; None = not named.
        is_base: Whether the baseline's file is the same there; None = not known.
        unreproduced: The changed lists, without which the baseline's values cannot be computed
            again: nothing but the file says that they are right.
        unreproduced_accepted_by: ``base`` = the file is that of the commit; ``policy`` = the
            sealed policy accepts it; None = nobody, so it blocks.
        refusals: Why the two cannot be compared; then nothing below was computed.
        obstacles: Ids that do not meet, and lists that a check finds false: these are the refusals.
        config_changes: What differs in the resolved configuration: path → (before, after).
        list_changes: What differs in the lists that the baseline read.
        policy_changes: What differs in the policy; where a change needs an update, it is refused.
        policy_notes: What became of keys of earlier versions that the policy has.
        max_drops: What ``max_drop: auto`` stands for in each check.
        checks: Every check.
        false_answers: The check of false answers on each collection.
        guards: Every guard.
        golden: Every golden query.
        regressions: The queries that lost most.
        blocking: The statuses that block, by the policy.
        exit_code: See :func:`decide_exit_code`.
        lint: What lint finds in the candidate, see ``docs/reference/lint.md``; changes no
            exit code.
        data_warnings: What speaks against the lists, and against how the candidate reads them; each
            text begins with its collection where there are several. They change no exit code.
        near_duplicates: Queries that depend on each other though no group says so, by collection.
        synthetic_queries: Queries that a model wrote, over all collections.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` says now; false = v2 runs as v1.
        baseline_v2_enabled: What it said when the baseline was written; None = not known.
    """

    format: Literal["fusion-bench-gate"] = "fusion-bench-gate"
    format_version: int = 12
    experiment: str
    baseline: str
    system: str
    experiment_file: str = ""
    overrides: tuple[str, ...] = ()
    baseline_experiment: str = ""
    baseline_system: str = ""
    baseline_reason: str = ""
    anchor_reason: str = ""
    needs_anchor: bool = False
    is_acceptable: bool = True
    runs: int = 1
    candidate_number: int | None = None
    candidate_line: LedgerLine | None = None
    base: str | None = None
    is_base: bool | None = None
    unreproduced: tuple[str, ...] = ()
    unreproduced_accepted_by: Literal["base", "policy"] | None = None
    refusals: tuple[str, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    config_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    list_changes: tuple[ListChange, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    policy_notes: tuple[str, ...] = ()
    max_drops: tuple[SealedDrop, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    false_answers: tuple[FalseAnswersResult, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    golden: tuple[GoldenResult, ...] = ()
    regressions: tuple[QueryRegression, ...] = ()
    blocking: tuple[CheckStatus, ...] = ()
    exit_code: int = 2
    lint: tuple[LintFinding, ...] = ()
    data_warnings: tuple[DataWarning, ...] = ()
    near_duplicates: tuple[NearDuplicates, ...] = ()
    synthetic_queries: int = 0
    v2_enabled: bool = True
    baseline_v2_enabled: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``gate.json`` has it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        return f"GateVerdict({self.experiment!r}, {self.system}: {self.headline})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a check."""
        fields = ("difference", "lower_end", "max_drop", "p", "changed", "losses", "status")
        checks = self.checks[:limit]
        return {"check": [check.name for check in checks]} | {
            f: [getattr(check, f) for check in checks] for f in fields
        }

    @property
    def outcomes(self) -> tuple[CheckResult | FalseAnswersResult, ...]:
        """The checks with a status: of means, and of false answers."""
        return (*self.checks, *self.false_answers)

    @property
    def unshown_answers(self) -> tuple[FalseAnswersResult, ...]:
        """The checks of false answers that do not pass."""
        return tuple(each for each in self.false_answers if each.status not in ACCEPTED)

    @property
    def query_checks(self) -> tuple[GuardResult | GoldenResult, ...]:
        """Guards and golden queries."""
        return (*self.guards, *self.golden)

    @property
    def is_reproduced(self) -> bool:
        """Whether the baseline's values could be computed again, or somebody trusts them."""
        return not self.unreproduced or self.unreproduced_accepted_by is not None

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
        statuses = [check.status for check in self.outcomes]
        counts = [
            f"{statuses.count(status)} {status}"
            for status in get_args(CheckStatus)
            if status in statuses
        ]
        violated = sum(check.is_violated for check in self.query_checks)
        if violated:
            counts.append(f"{pluralize(violated, 'guard')} violated")
        errors = sum(check.error is not None for check in (*self.checks, *self.query_checks))
        if errors:
            counts.append(pluralize(errors, "error"))
        checks = f"{pluralize(len(statuses), 'check')} ({', '.join(counts)})"
        suffix = f"; {self.changed_parts}" if self.list_changes else ""
        lost, switch = "", ""
        if self.unreproduced:
            others = len(self.unreproduced) - 1
            named = self.unreproduced[0] + (f" and {others:,} more" if others else "")
            accepted = {
                "base": f"; its file is that of {self.base}",
                "policy": "; its policy accepts it",
            }.get(self.unreproduced_accepted_by or "", "")
            lost = f"baseline not reproduced ({named} changed{accepted}): "
        before, now = self.baseline_v2_enabled, self.v2_enabled
        if not now or before is False:
            sides = {True: "on", False: "off", None: "not known"}
            baseline = "" if before is now else f" (baseline: {sides[before]})"
            switch = f"; RAG_FUSION_V2_ENABLED {sides[now]}{baseline}"
        text = f"{lost}{self.outcome}: {checks}{suffix}{switch}"
        return text.replace("unjudged decide", "judge first")  # as pages write it

    @property
    def outcome(self) -> str:
        """The exit code in words, with the status that decided it."""
        statuses = {check.status for check in self.checks if check.error is None}
        statuses |= {check.status for check in self.false_answers}
        if self.exit_code == 2:
            return "not checked"
        if self.exit_code == 0:
            return "passed" if statuses <= ACCEPTED else "passed with warnings"
        deciding = {1: ("regressed",), 3: ("unjudged decide", "inconclusive")}
        named = (s for s in deciding[self.exit_code] if s in statuses and s in self.blocking)
        return next(named, "guard violated" if self.exit_code == 1 else "blocked")
