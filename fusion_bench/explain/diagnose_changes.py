"""The failures of one system as records: counts, the worst, and the change to the baseline."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import IntArray
from fusion_bench.explain.diagnose_failures import KINDS, LAST, FailureKind
from fusion_bench.explain.diagnosed_system import DiagnosedSystem, Scope
from fusion_bench.explain.diagnosis import (
    ChangeRecord,
    FailureCount,
    FailureRecord,
    SystemDiagnosis,
)
from fusion_bench.stats.intervals import estimate_mean


def describe_system(
    system: DiagnosedSystem, baseline: DiagnosedSystem, scope: Scope
) -> SystemDiagnosis:
    """Count the failures of a system, and compare them with those of the baseline.

    Args:
        system: The system; the baseline itself has no changes.
        baseline: The baseline.
        scope: The queries and their relevant documents.
    """
    counts = (_count_failures(kind, system, baseline, scope) for kind in KINDS)
    return SystemDiagnosis(name=system.name, counts=tuple(counts))


def _count_failures(
    kind: FailureKind, system: DiagnosedSystem, baseline: DiagnosedSystem, scope: Scope
) -> FailureCount:
    failures = system.failures[kind]
    failed = failures.is_failed
    is_clear = failed & (failures.not_relevant_above == 0)
    judged_relevant = is_clear & (failures.unjudged_above == 0) & (failures.relevant_above > 0)
    return FailureCount(
        kind=kind,
        not_applicable=system.not_applicable.get(kind),
        failures=int(failed.sum()),
        exposed=int(failures.is_exposed.sum()),
        queries=int((scope.count_by_query(failed) > 0).sum()),
        behind_relevant=int(judged_relevant.sum()),
        undecided=int((is_clear & (failures.unjudged_above > 0)).sum()),
        tied=int(failures.is_tied.sum()),
        change=_compare(kind, system, baseline, scope),
        worst=_list_worst(kind, system, baseline, scope),
    )


def _compare(
    kind: FailureKind, system: DiagnosedSystem, baseline: DiagnosedSystem, scope: Scope
) -> ChangeRecord | None:
    """The change to the baseline; None where nothing can be compared.

    Only queries count on which failures of this kind can be counted for both.
    """
    queries = system.comparable_queries(kind) & baseline.comparable_queries(kind)
    neither = kind in system.not_applicable and kind in baseline.not_applicable
    if system.name == baseline.name or neither or not queries.any():
        return None
    compared = queries[scope.relevant.query]
    now, before = (item.failures[kind].is_failed & compared for item in (system, baseline))
    cures, causes = before & ~now, now & ~before
    difference = (scope.count_by_query(now) - scope.count_by_query(before))[queries]
    mean = estimate_mean(difference, scope.groups[queries], alpha=scope.alpha)
    return ChangeRecord(
        cures=int(cures.sum()),
        cures_without_gain=int((cures & (system.returned >= baseline.returned)).sum()),
        causes=int(causes.sum()),
        causes_without_loss=int((causes & (system.returned <= baseline.returned)).sum()),
        queries=mean.queries,
        improved_queries=int((difference < 0).sum()),
        worsened_queries=int((difference > 0).sum()),
        difference=mean.mean,
        low=mean.low,
        high=mean.high,
    )


def _list_worst(
    kind: FailureKind, system: DiagnosedSystem, baseline: DiagnosedSystem, scope: Scope
) -> tuple[FailureRecord, ...]:
    """The first failures, those of the greatest severity first, then in the order of queries."""
    failures, relevant = system.failures[kind], scope.relevant
    severity = _severity(kind, system, scope)
    failed = np.flatnonzero(failures.is_failed)
    worst = failed[np.argsort(-severity[failed], kind="stable")][: scope.top]
    queries = system.comparable_queries(kind) & baseline.comparable_queries(kind)
    return tuple(
        FailureRecord(
            query=scope.queries[relevant.query[m]],
            document=relevant.documents[m],
            grade=int(relevant.grades[m]),
            fused_rank=_known_rank(system.fused[m]),
            rank=_known_rank(system.returned[m]),
            relevant_above=int(failures.relevant_above[m]),
            not_relevant_above=int(failures.not_relevant_above[m]),
            unjudged_above=int(failures.unjudged_above[m]),
            is_tied=bool(failures.is_tied[m]),
            baseline_rank=_known_rank(baseline.returned[m]),
            is_caused=None
            if system.name == baseline.name or not queries[relevant.query[m]]
            else not baseline.failures[kind].is_failed[m],
        )
        for m in worst.tolist()
    )


def _severity(kind: FailureKind, system: DiagnosedSystem, scope: Scope) -> IntArray:
    """(M,): how bad each failure is; greater is worse.

    Fused rank of a dilution, final rank of a burial, grade of a miss, and of an inversion the
    documents above it that are judged not relevant.
    """
    if kind == "miss":
        return scope.relevant.grades
    if kind == "inversion":
        return system.failures[kind].not_relevant_above
    return system.fused if kind == "dilution" else system.final


def _known_rank(rank: int) -> int | None:
    """A rank; None for :data:`LAST`."""
    return None if rank == LAST else int(rank)
