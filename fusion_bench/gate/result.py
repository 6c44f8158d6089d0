"""What the gate decided and why: the record that everything shown to people is rendered from.

Format history:
    1   first version
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.gate.verdict import Verdict
from fusion_bench.util.formatting import pluralize

__all__ = [
    "Bound",
    "CheckResult",
    "GateResult",
    "GoldenResult",
    "GuardResult",
    "LostDocument",
    "LostQuery",
]


def _known(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


#: A number that may be missing: NaN becomes None, as JSON has no NaN.
Maybe: TypeAlias = Annotated[float | None, BeforeValidator(_known)]


class Record(BaseModel):
    """Frozen; a key it does not know means another format."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CheckResult(Record):
    """One check; see ``evidence.Evidence``.

    Attributes:
        few: Fewer than 10 queries changed: the verdict holds on these queries only.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    verdict: Verdict
    fault: str | None
    queries: int
    groups: int
    changed: int
    losses: int
    baseline_mean: Maybe
    candidate_mean: Maybe
    difference: Maybe
    low: Maybe
    p: Maybe
    p_holm: Maybe
    detectable: Maybe
    false_pass: Maybe
    few: bool


class GuardResult(Record):
    """One guard on one collection.

    Attributes:
        losers: Queries that lose more than ``lose``.
        share: Of all queries.
        fault: Why it could not be checked.
        holds: Whether the share is at most ``at_most``.
    """

    collection: str
    measure: str
    lose: float
    at_most: float
    losers: int
    share: float
    fault: str | None
    holds: bool


class GoldenResult(Record):
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
    place: int | None
    fault: str | None
    holds: bool


#: What bounds single queries.
Bound: TypeAlias = GuardResult | GoldenResult


class LostDocument(Record):
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
    before: int | None
    after: int | None
    cut_before: int | None = None
    cut_after: int | None = None
    moved_by: str

    @property
    def moved(self) -> bool:
        """Whether it stands elsewhere in the list than before."""
        return self.before != self.after


class LostQuery(Record):
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
    before: float
    after: float
    top_k: tuple[int | None, int | None] = (None, None)
    documents: tuple[LostDocument, ...]


class GateResult(Record):
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
    format_version: int = 1
    experiment: str
    baseline: str
    system: str
    against: str = ""
    reason: str = ""
    refused: tuple[str, ...] = ()
    changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    golden: tuple[GoldenResult, ...] = ()
    worst: tuple[LostQuery, ...] = ()
    on_inconclusive: OnInconclusive = "fail"
    exit_code: int

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Guards and golden queries."""
        return (*self.guards, *self.golden)

    @property
    def headline(self) -> str:
        """The decision in one line."""
        if self.refused:
            return "refused: " + "; ".join(self.refused)
        verdicts = [check.verdict for check in self.checks]
        broken = [r for r in self.bounds if not r.holds and r.fault is None]
        faults = [c for c in self.checks if c.fault is not None]
        unchecked = len(faults) + sum(bound.fault is not None for bound in self.bounds)
        words = {0: "passed", 1: "regressed", 2: "could not be checked", 3: "inconclusive"}
        counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in get_args(Verdict))
        more = f", {pluralize(len(broken), 'guard')} broken" if broken else ""
        more += f", {unchecked} could not be made" if unchecked else ""
        return f"{words[self.exit_code]}: {pluralize(len(verdicts), 'check')} ({counts}{more})"
