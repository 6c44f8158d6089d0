"""The diagnosis of an experiment: failures of its systems, and documents that nobody judged.

Format history:
    1   first version
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.checks.dataset_facts import describe_selection
from fusion_bench.checks.unjudged import UNJUDGED_DEPTH
from fusion_bench.config.json_records import ReportRecord
from fusion_bench.config.yaml_files import Source
from fusion_bench.evaluation.details.relevant_ranks import list_relevant
from fusion_bench.evaluation.failures import (
    DEFINITIONS,
    FUSED_TOP,
    KINDS,
    LAST,
    TOP,
    DiagnosedSystem,
    FailureKind,
    Scope,
    find_failures,
    rank_stages,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, collection_facts
from fusion_bench.evaluation.report_file import ExperimentRecord
from fusion_bench.evaluation.report_records import CollectionFacts, RankedDocument
from fusion_bench.evaluation.run_experiment import (
    prepare_datasets,
    report_provenance,
    select_systems,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.ranking.collapse import collapse_pool
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.stats.comparison import MeanDifference
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import Progress, ignore_progress

FORMAT: Literal["fusion-bench-diagnosis"] = "fusion-bench-diagnosis"
FORMAT_VERSION = 1


class FailureRecord(RankedDocument):
    """One failure: a relevant document of a query.

    Attributes:
        fused_rank: Rank in the fused list; null = not in it.
        relevant_above: Relevant documents above it in the list where it fails: the fused list for
            a dilution, otherwise the final one.
        not_relevant_above: Likewise documents that are judged not relevant.
        unjudged_above: Likewise unjudged documents.
        is_tied: Whether another order of tied documents would undo the failure.
        baseline_rank: Final rank under the baseline; null = not returned.
        is_caused: Whether the baseline has not this failure; null = nothing to compare.
    """

    fused_rank: int | None
    relevant_above: int
    not_relevant_above: int
    unjudged_above: int
    is_tied: bool
    baseline_rank: int | None
    is_caused: bool | None


class ChangeRecord(MeanDifference):
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


class DiagnosedCollection(CollectionFacts):
    """The failures on one dataset.

    Attributes:
        queries: Number of queries.
        groups: Number of groups, the units of the intervals.
        relevant: Relevant documents of these queries.
        missed_by_all: Those that no list of any of the systems returned.
        trial: Which trial of which lists was diagnosed; null = every list has one file.
        systems: The systems, the baseline first.
    """

    queries: int
    groups: int
    relevant: int
    missed_by_all: int
    trial: str | None = None
    systems: tuple[SystemDiagnosis, ...]

    def system(self, name: str) -> SystemDiagnosis:
        """The failures of one system."""
        return next(system for system in self.systems if system.name == name)


class Diagnosis(ExperimentRecord):
    """The failures of an experiment's systems.

    Attributes:
        settings: Caveat, ties, alpha, interval and seed; the tops; how many failures are listed.
        definitions: What each kind of failure is.
        collections: One per dataset.
    """

    format: Literal["fusion-bench-diagnosis"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    definitions: dict[FailureKind, str]
    collections: tuple[DiagnosedCollection, ...]


def describe_system(
    system: DiagnosedSystem, baseline: DiagnosedSystem, scope: Scope
) -> SystemDiagnosis:
    """Count the failures of a system, and compare them with those of the baseline.

    Args:
        system: The system; the baseline itself has no changes.
        baseline: The baseline.
        scope: The queries and their relevant documents.
    """
    counts = []
    for kind in KINDS:
        failures = system.failures[kind]
        failed = failures.is_failed
        is_clear = failed & (failures.not_relevant_above == 0)
        judged_relevant = is_clear & (failures.unjudged_above == 0) & (failures.relevant_above > 0)
        count = FailureCount(
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
        counts.append(count)
    return SystemDiagnosis(name=system.name, counts=tuple(counts))


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
    if kind == "miss":
        severity = scope.relevant.grades
    elif kind == "inversion":
        severity = system.failures[kind].not_relevant_above
    else:
        severity = system.fused if kind == "dilution" else system.final
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


def _known_rank(rank: int) -> int | None:
    """A rank; None for :data:`LAST`."""
    return None if rank == LAST else int(rank)


#: Settings of the experiment that the record repeats.
SETTINGS = ("caveat", "ties", "alpha", "seed")


def diagnose_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    top: int = 10,
    progress: Progress = ignore_progress,
) -> Diagnosis:
    """Count the failures of the systems of an experiment, dataset by dataset.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names of the systems, beside the baseline; empty = all.
        dataset: As the experiment names it; by default each of its datasets.
        top: The number of failures to list, for each system and kind.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = select_systems(experiment, systems, dataset)
    tasks = prepare_datasets(chosen, source, folders=folders, progress=progress)
    collections = [_diagnose_dataset(task, top, progress) for task in tasks]
    return Diagnosis(
        name=name_experiment(source.path),
        settings={
            **{key: getattr(experiment, key) for key in SETTINGS},
            "top": TOP,
            "fused_top": FUSED_TOP,
            "listed": top,
        },
        definitions=dict(DEFINITIONS),
        provenance=report_provenance(experiment, source),
        collections=tuple(collections),
    )


def _diagnose_dataset(task: EvaluationSet, top: int, progress: Progress) -> DiagnosedCollection:
    spec, systems = task.dataset.spec, task.experiment.systems
    pool = collapse_pool(task.runs, task.experiment.systems.values())
    relevant = list_relevant(pool, task.dataset.qrels, spec.binary_relevance)
    diagnosed = []
    missed = np.ones(len(relevant.rows), dtype=bool)
    for done, (name, system) in enumerate(systems.items()):
        progress(f"{task.dataset.name}: {name}", done, len(systems))
        fitted = task.fit_system(system)
        stages = rank_stages(fitted, task.runs, pool)
        failures = find_failures(pool, relevant, stages, spec.binary_relevance)
        reasons: dict[FailureKind, str] = {}
        if not stages.has_question.any():
            reasons["dilution"] = "no list that it reads has the role question"
        if not stages.has_reranker:
            reasons["burial"] = "no reranker orders its lists"
        if not (pool.judged & (pool.grades < spec.binary_relevance)).any():
            reasons["inversion"] = "no list has a document that is judged not relevant"
        diagnosed.append(DiagnosedSystem.from_stages(name, stages, relevant, failures, reasons))
        missed &= failures["miss"].is_failed
    scope = Scope(task.runs.queries, task.groups, relevant, task.experiment.alpha, top)
    return DiagnosedCollection(
        **collection_facts(task),
        queries=len(task.runs.queries),
        groups=len(set(task.runs.groups)),
        relevant=len(relevant.rows),
        missed_by_all=int(missed.sum()),
        trial=describe_selection(task.dataset),
        systems=tuple(describe_system(item, diagnosed[0], scope) for item in diagnosed),
    )


#: Kinds whose failures are looked at first: what was found and lost, before what was never found.
PRIORITY: Final[tuple[FailureKind, ...]] = ("burial", "dilution", "inversion", "miss")


def find_worst_failure(
    collection: DiagnosedCollection, kind: FailureKind | None = None
) -> tuple[FailureKind, str, FailureRecord] | None:
    """The worst failure of the system that has most of them; the baseline's where no other fails.

    A failure that the baseline has not goes before one that it has.

    Args:
        collection: The failures on one dataset.
        kind: Their kind; None = the first of :data:`PRIORITY` that occurs.

    Returns:
        Its kind, the system, and the failure; None where nothing fails.
    """
    for known in PRIORITY if kind is None else (kind,):
        failing = [item for item in collection.systems if item.count(known).worst]
        others = [item for item in failing if item.name != collection.baseline]
        if failing:
            system = max(others or failing, key=lambda item: item.count(known).failures)
            worst = system.count(known).worst
            first = next((failure for failure in worst if failure.is_caused), worst[0])
            return known, system.name, first
    return None


@dataclass(frozen=True)
class UnjudgedDocument:
    """A document without a judgment that some system returns.

    Attributes:
        dataset: The dataset.
        query: Id of the query.
        document: Its id.
        best_rank: Its highest rank in any system's list.
        systems: The systems that return it, in the experiment's order.
    """

    dataset: str
    query: str
    document: str
    best_rank: int
    systems: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """Dataset, query, document, best rank and the systems, as a table has them."""
        rank, systems = str(self.best_rank), ", ".join(self.systems)
        return (self.dataset, self.query, self.document, rank, systems)


def list_unjudged_documents(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    depth: int = UNJUDGED_DEPTH,
    progress: Progress = ignore_progress,
) -> list[UnjudgedDocument]:
    """The unjudged documents of an experiment's systems, dataset by dataset.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names of the systems, beside the baseline; empty = all.
        dataset: As the experiment names it; by default each of its datasets.
        depth: The greatest rank that counts.
        progress: Called as the work goes on.

    Returns:
        In each dataset the highest rank first, then what most systems return. Of complete
        judgments nothing.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = select_systems(experiment, systems, dataset)
    tasks = prepare_datasets(chosen, source, folders=folders, progress=progress)
    unjudged = []
    for task in tasks:
        ranks: dict[tuple[int, int], list[tuple[int, str]]] = {}
        runs = task.runs
        for name, system in task.experiment.systems.items():
            for index, view, positions in list_parts(task.fit_system(system), runs):
                shown = np.flatnonzero((positions > 0) & (positions <= depth) & ~view.judged)
                columns = (index[view.query_index[shown]], view.documents[shown], positions[shown])
                for query, document, rank in zip(*(each.tolist() for each in columns), strict=True):
                    ranks.setdefault((query, document), []).append((rank, name))
        rows = sorted(
            (min(places)[0], -len(places), *pair, tuple(name for _, name in places))
            for pair, places in ranks.items()
        )
        unjudged += [
            UnjudgedDocument(
                task.dataset.name, runs.queries[query], runs.vocabulary[document], best_rank, names
            )
            for best_rank, _, query, document, names in rows
        ]
    return unjudged
