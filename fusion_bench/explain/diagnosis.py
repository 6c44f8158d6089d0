"""The failures of an experiment's systems, as ``diagnosis.json`` holds them.

Format history:
    1   first version
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fusion_bench.evaluation.report_records.judge_info import JudgeInfo
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.explain.diagnose_failures import FailureKind

FORMAT: Literal["fusion-bench-diagnosis"] = "fusion-bench-diagnosis"
FORMAT_VERSION = 1


class FailureRecord(ReportRecord):
    """One failure: a relevant document of a query.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        grade: As judged.
        fused_rank: Rank in the fused list; null = not in it.
        rank: Final rank; null = not returned.
        relevant_above: Relevant documents above it in the list where it fails: the fused list for
            a dilution, otherwise the final one.
        not_relevant_above: Likewise documents that are judged not relevant.
        unjudged_above: Likewise unjudged documents.
        is_tied: Whether another order of tied documents would undo the failure.
        baseline_rank: Final rank under the baseline; null = not returned.
        is_caused: Whether the baseline has not this failure; null = nothing to compare.
    """

    query: str
    document: str
    grade: int
    fused_rank: int | None
    rank: int | None
    relevant_above: int
    not_relevant_above: int
    unjudged_above: int
    is_tied: bool
    baseline_rank: int | None
    is_caused: bool | None


class ChangeRecord(ReportRecord):
    """The failures of one kind that a system cures and causes, against the baseline.

    Attributes:
        cures: Documents that fail under the baseline and not under the system.
        cures_without_gain: Those of them whose final rank is no better than under the baseline.
        causes: Documents that fail under the system and not under the baseline.
        causes_without_loss: Those of them whose final rank is no worse than under the baseline.
        queries: Queries that both can be compared on.
        improved_queries: Queries with fewer failures than under the baseline.
        worsened_queries: Queries with more.
        difference: Mean of system - baseline, in failures per query, paired.
        low: Lower end of its interval, by group where the dataset declares groups; unadjusted.
        high: Upper end.
    """

    cures: int
    cures_without_gain: int
    causes: int
    causes_without_loss: int
    queries: int
    improved_queries: int
    worsened_queries: int
    difference: float
    low: OptionalFloat
    high: OptionalFloat


class FailureCount(ReportRecord):
    """One kind of failure of one system.

    Attributes:
        kind: The kind.
        not_applicable: Why the kind cannot occur; null = it can.
        failures: Documents that fail.
        exposed: Documents that could.
        queries: Queries with a failure.
        behind_relevant: Failures with relevant documents only above.
        undecided: Failures with an unjudged document above and none that is judged not relevant.
        tied: Failures that another order of tied documents would undo.
        change: Against the baseline; null for the baseline, and where either cannot be compared.
        worst: The first failures, the worst first.
    """

    kind: FailureKind
    not_applicable: str | None
    failures: int
    exposed: int
    queries: int
    behind_relevant: int
    undecided: int
    tied: int
    change: ChangeRecord | None
    worst: tuple[FailureRecord, ...]


class SystemDiagnosis(ReportRecord):
    """The failures of one system.

    Attributes:
        name: Its name.
        counts: One a kind.
    """

    name: str
    counts: tuple[FailureCount, ...]

    def count(self, kind: FailureKind) -> FailureCount:
        """The failures of one kind."""
        return next(count for count in self.counts if count.kind == kind)


class DiagnosedCollection(ReportRecord):
    """The failures on one dataset.

    Attributes:
        name: Of the dataset.
        version: Of the dataset.
        fingerprint: SHA-256 over what was read of it.
        split: The split that was evaluated; null = all judged queries.
        query_type: The type of query; null = all.
        where: Field of the queries → the values that they have; empty = all.
        queries: Number of queries.
        groups: Number of groups, the units of the intervals.
        relevant: Relevant documents of these queries.
        missed_by_all: Those that no list of any of the systems returned.
        binary_relevance: The grade from which a document is relevant.
        trial: Which trial of which lists was diagnosed; null = every list has one file.
        runs: The input lists, and what was noticed about each.
        judge: The machine judge whose grades these are; null = people gave them.
        baseline: The system that the others are compared with.
        systems: The systems, the baseline first.
    """

    name: str
    version: str
    fingerprint: str
    split: str | None
    query_type: str | None
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    queries: int
    groups: int
    relevant: int
    missed_by_all: int
    binary_relevance: int
    trial: str | None = None
    runs: tuple[ListInfo, ...]
    judge: JudgeInfo | None = None
    baseline: str
    systems: tuple[SystemDiagnosis, ...]

    def system(self, name: str) -> SystemDiagnosis:
        """The failures of one system."""
        return next(system for system in self.systems if system.name == name)


class Diagnosis(ReportRecord):
    """The failures of an experiment's systems.

    Attributes:
        format: Always ``fusion-bench-diagnosis``.
        format_version: See the history in this module.
        name: The experiment.
        settings: Caveat, ties, alpha, interval and seed; the tops; how many failures are listed.
        definitions: What each kind of failure is.
        provenance: Where the numbers come from.
        collections: One per dataset.
    """

    format: Literal["fusion-bench-diagnosis"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    name: str
    settings: dict[str, Any]
    definitions: dict[FailureKind, str]
    provenance: Provenance
    collections: tuple[DiagnosedCollection, ...]
