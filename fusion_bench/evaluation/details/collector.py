"""Collects what stands behind the values of a report, for its page or ``details.json``.

A report has the values; these records have ranks, terms, texts and what the sources contribute.
They are computed with the report, and only where somebody asks for them.

The lists of each system are looked at where they are measured; none is ranked again for that. Only
the terms of the detailed systems, and their values on other lists, are computed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import UnknownKeyError
from fusion_bench.evaluation.details.relevant_ranks import (
    Observer,
    PlainTable,
    RankCollector,
    RelevantRanks,
    SourceOverlap,
    list_relevant,
    make_relevant_ranks,
    measure_overlap,
)
from fusion_bench.evaluation.details.source_effects import (
    DepthCurve,
    DetailedSet,
    LeaveOneOut,
    leave_sources_out,
    measure_depths,
)
from fusion_bench.evaluation.details.top_documents import (
    TEXT_LENGTH,
    ShownDocuments,
    document_texts,
    list_top_documents,
    query_texts,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.recommendation import find_preference
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.util.formatting import Columns, TableView, pluralize

FORMAT: Final = "fusion-bench-details"
FORMAT_VERSION: Final = 1
#: Bytes of JSON that the details of all queries may have.
MAX_BYTES: Final = 20_000_000
#: Bytes of a rank, a grade or an index, of a score or a term, and of the marks around a text.
RANK, NUMBER, MARKS = 3, 20, 3


@dataclass(frozen=True, eq=False, repr=False)
class CollectionDetails(PlainTable):
    """What stands behind the values of one collection of a report.

    Attributes:
        name: The dataset.
        queries: Ids of the Q evaluated queries.
        texts: Their texts, (Q,), at most 300 characters each; None = not known.
        detailed: Names of the detailed systems, the baseline first: the best one, the guarded and
            the tuned one, and those that were named.
        kept_queries: Shape (q,): indices of the queries that ``relevant`` and ``top`` tell of. All
            of them, or where that is too much, those on which the systems differ most.
        relevant: Ranks of the relevant documents in all sources and systems.
        unjudged: By system, shape (Q,): unjudged documents among its first ten.
        top: The first ten documents of each detailed system.
        document_texts: By id, the beginnings of the documents that ``relevant`` and ``top`` name;
            without those that are not known.
        overlap: What the sources have in common.
        leave_one_out: The detailed systems without each of their sources.
        depth_curve: The detailed systems at growing depths of the sources.
    """

    name: str
    queries: tuple[str, ...]
    texts: tuple[str | None, ...]
    detailed: tuple[str, ...]
    kept_queries: IntArray
    relevant: RelevantRanks
    unjudged: Mapping[str, IntArray]
    top: tuple[ShownDocuments, ...]
    document_texts: Mapping[str, str]
    overlap: SourceOverlap
    leave_one_out: LeaveOneOut
    depth_curve: DepthCurve

    def top_documents(self, system: str) -> ShownDocuments:
        """The first ten documents of a detailed system.

        Raises:
            UnknownKeyError: It is not detailed; a KeyError too.
        """
        by_name = {top.system: top for top in self.top}
        if system not in by_name:
            raise UnknownKeyError("detailed system", system, by_name)
        return by_name[system]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {**super().to_dict(), "overlap": self.overlap.to_dict()}

    def _summary(self) -> str:
        kept, size = len(self.kept_queries), len(self.queries)
        of_all = "" if kept == size else f" of {size:,}"
        return (
            f"CollectionDetails({self.name!r}, {kept:,}{of_all} queries, detailed: "
            f"{', '.join(self.detailed)})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """The rows of ``relevant``."""
        return self.relevant._table_columns(limit)


@dataclass(frozen=True, eq=False, repr=False)
class ReportDetails(TableView):
    """What stands behind the values of a report.

    Attributes:
        report: Name of the report.
        collections: One a collection of the report, in its order.
        format: Always ``fusion-bench-details``.
        format_version: Raised when keys change.
    """

    report: str
    collections: tuple[CollectionDetails, ...]
    format: Literal["fusion-bench-details"] = FORMAT
    format_version: int = FORMAT_VERSION

    def collection(self, name: str) -> CollectionDetails:
        """The details of one collection.

        Raises:
            UnknownKeyError: There is none of that name; a KeyError too.
        """
        by_name = {each.name: each for each in self.collections}
        if name not in by_name:
            raise UnknownKeyError("collection", name, by_name)
        return by_name[name]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``details.json`` has it."""
        return {
            "format": self.format,
            "format_version": self.format_version,
            "report": self.report,
            "collections": [each.to_dict() for each in self.collections],
        }

    def _summary(self) -> str:
        return f"ReportDetails({self.report!r}, {pluralize(len(self.collections), 'collection')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a collection."""
        rows = self.collections[:limit]
        return {
            "collection": [each.name for each in rows],
            "queries": [len(each.queries) for each in rows],
            "with details": [len(each.kept_queries) for each in rows],
            "relevant documents": [each.overlap.relevant for each in rows],
            "detailed": [", ".join(each.detailed) for each in rows],
        }


class DetailTables(NamedTuple):
    """The tables of all queries of one collection.

    Attributes:
        detailed: The detailed systems.
        relevant: Ranks of the relevant documents.
        top: The first documents of each detailed system.
        sizes: How large they are, by query.
    """

    detailed: DetailedSet
    relevant: RelevantRanks
    top: tuple[ShownDocuments, ...]
    sizes: QuerySizes


@dataclass(frozen=True, eq=False)
class CollectedLists:
    """One collection: what its details are computed from.

    The dataset itself is not kept: the aligned runs have all of its lists.

    Attributes:
        name: The dataset.
        runs: Aligned, the Q evaluated queries.
        detailed: How the detailed systems are evaluated; which these are the report says.
        documents: Texts of the documents; None = the dataset has none.
        wanted: Names of systems to detail beside the best one, the baseline first.
        ranks: What was collected of the lists of each system.
        systems: By name, fitted.
    """

    name: str
    runs: AlignedRuns
    detailed: DetailedSet
    documents: Path | None
    wanted: tuple[str, ...]
    ranks: RankCollector
    systems: dict[str, System] = field(default_factory=dict)

    @classmethod
    def of_task(cls, task: EvaluationSet, names: tuple[str, ...]) -> CollectedLists:
        """A collection whose systems are still to be observed.

        Args:
            task: The collection.
            names: Systems to detail.
        """
        dataset, runs = task.dataset, task.runs.repeats[0]
        relevant = list_relevant(runs, dataset.qrels, 1)
        return cls(
            name=dataset.spec.name,
            runs=runs,
            detailed=DetailedSet((), {}, task.measures[0], task.groups, task.experiment.alpha),
            documents=dataset.documents,
            wanted=(task.experiment.baseline, *_guarded(task.experiment), *names),
            ranks=RankCollector(runs, relevant),
        )

    def observe(self, system: System) -> Observer:
        """What to call with the lists of a fitted system."""
        self.systems[system.name] = system
        return self.ranks.observe(system.name)

    def without_views(self) -> CollectedLists:
        """The same without what was derived from the runs while systems were measured."""
        return replace(self, runs=replace(self.runs))

    def list_tables(self, collection: Collection) -> DetailTables:
        """The tables of all queries.

        Args:
            collection: The record of this collection.
        """
        detailed = self._detail(collection)
        relevant = make_relevant_ranks(self.runs, self.ranks.relevant, self.ranks.ranks)
        top = tuple(
            list_top_documents(system, self.runs, self.ranks.tops[system.name])
            for system in detailed.systems
        )
        excerpt = 0 if self.documents is None else TEXT_LENGTH
        sizes = estimate_sizes(relevant, top, excerpt)
        return DetailTables(detailed, relevant, top, QuerySizes(sizes, detailed.differences))

    def make_details(self, tables: DetailTables, keep: BoolArray) -> CollectionDetails:
        """The record.

        Args:
            tables: Of all queries.
            keep: Shape (Q,): the queries that keep their rows.
        """
        relevant = tables.relevant.keep_queries(keep)
        top = tuple(each.keep_queries(keep) for each in tables.top)
        shown = {*relevant.documents, *(name for each in top for name in each.documents)}
        return CollectionDetails(
            name=self.name,
            queries=self.runs.queries,
            texts=query_texts(self.runs),
            detailed=tuple(system.name for system in tables.detailed.systems),
            kept_queries=np.flatnonzero(keep),
            relevant=relevant,
            unjudged=dict(self.ranks.unjudged),
            top=top,
            document_texts=document_texts(self.documents, shown),
            overlap=measure_overlap(self.runs, tables.relevant),
            leave_one_out=leave_sources_out(tables.detailed, self.runs),
            depth_curve=measure_depths(tables.detailed, self.runs),
        )

    def _detail(self, collection: Collection) -> DetailedSet:
        first, *rest = self.wanted
        names = dict.fromkeys((first, _best_system(collection), *rest))
        primary = collection.primary_measure
        results = {name: collection.system(name).measures[primary] for name in names}
        values: dict[str, FloatArray] = {  # the runs are those of the first repeat
            name: np.array(each.trials[0] if each.trials else each.values, dtype=np.float64)
            for name, each in results.items()
        }
        systems = tuple(self.systems[name] for name in names)
        return replace(self.detailed, systems=systems, values=values)


def _best_system(collection: Collection) -> str:
    """The best system that is shown to be better, else that of the highest mean."""
    best = find_preference(collection)
    return collection.ranked_systems[0].name if best is None else best.candidate


def _guarded(experiment: Experiment) -> Iterator[str]:
    """The systems that the gate guards and that tuning starts from."""
    if experiment.gate is not None and experiment.gated_system is not None:
        yield experiment.gated_system.name
    if experiment.tune is not None and experiment.tune.system is not None:
        yield experiment.tune.system


@dataclass(eq=False)
class DetailsCollector:
    """Give it to ``run_experiment``, then ask it for the details of the report that this made.

    It holds the aligned runs of every collection until it is forgotten, and what was derived from
    those of the last one.

    Attributes:
        names: Systems to detail beside the baseline, the best, the guarded and the tuned one.
        limit: About how many bytes of JSON the ranks, top documents and their texts may have.
    """

    names: tuple[str, ...] = ()
    limit: int = MAX_BYTES
    _collections: list[CollectedLists] = field(default_factory=list, init=False, repr=False)

    def check_names(self, experiment: Experiment, where: str) -> None:
        """Refuse names of systems that the experiment does not have.

        Args:
            experiment: The experiment.
            where: Prefix of a message.

        Raises:
            UnknownNameError: No such system.
        """
        for name in self.names:
            experiment.find_system(name, where)

    def add_collection(self, task: EvaluationSet) -> Callable[[System], Observer]:
        """What gives an observer of each fitted system of the next collection."""
        self.forget_views()
        self._collections.append(CollectedLists.of_task(task, self.names))
        return self._collections[-1].observe

    def forget_views(self) -> None:
        """Hold the aligned runs alone; what is derived from them is then computed again."""
        self._collections = [each.without_views() for each in self._collections]

    def make_details(self, report: Report) -> ReportDetails:
        """The details of a report.

        Args:
            report: The one that ``run_experiment`` made with this collector.
        """
        tables = [
            lists.list_tables(collection)
            for lists, collection in zip(self._collections, report.collections, strict=True)
        ]
        keeps = choose_queries([table.sizes for table in tables], self.limit)
        return ReportDetails(
            report.name,
            tuple(
                lists.make_details(table, keep)
                for lists, table, keep in zip(self._collections, tables, keeps, strict=True)
            ),
        )


def observers(
    details: DetailsCollector | None, task: EvaluationSet
) -> Callable[[System], Observer | None]:
    """What gives the observer of each fitted system; None where nobody wants details."""
    return (lambda _: None) if details is None else details.add_collection(task)


class QuerySizes(NamedTuple):
    """The Q queries of one collection.

    Attributes:
        sizes: Shape (Q,): about how many bytes of JSON the details of each have.
        differences: Shape (Q,): how much the systems differ on each; see :func:`choose_queries`.
    """

    sizes: IntArray
    differences: FloatArray


def estimate_sizes(
    relevant: RelevantRanks, tops: Sequence[ShownDocuments], excerpt: int = 0
) -> IntArray:
    """(Q,): about how many bytes of JSON the relevant ranks and top documents of each query have.

    Args:
        relevant: The ranks of the relevant documents.
        tops: The top documents of each detailed system.
        excerpt: Bytes of a document's text.
    """
    size = len(relevant.queries)
    columns = len(relevant.sources) + len(relevant.systems) + 2
    sizes = _add_up(relevant.query, relevant.documents, columns * RANK, size)
    for top in tops:
        row = 4 * RANK + (len(top.labels) + 1) * NUMBER
        sizes += _add_up(top.query, top.documents, row, size)
    if excerpt:
        pairs = set(zip(relevant.query.tolist(), relevant.documents, strict=True))
        for top in tops:
            pairs.update(zip(top.query.tolist(), top.documents, strict=True))
        shown = np.fromiter((query for query, _ in pairs), dtype=np.int64, count=len(pairs))
        sizes += np.bincount(shown, minlength=size) * excerpt
    return sizes


def _add_up(query: IntArray, names: Sequence[str], row: int, queries: int) -> IntArray:
    lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    totals = np.bincount(query, weights=lengths + MARKS + row, minlength=queries)
    return totals.astype(np.int64)


def choose_queries(collections: Sequence[QuerySizes], limit: int = MAX_BYTES) -> list[BoolArray]:
    """For each collection, shape (Q,): the queries that keep their details.

    All of them where they fit into the limit together. Otherwise those with the greatest
    differences, over all collections, until the next one would not fit.

    Args:
        collections: Sizes and differences.
        limit: Bytes.
    """
    sizes = np.concatenate([each.sizes for each in collections])
    keep = np.ones(len(sizes), dtype=bool)
    if sizes.sum() > limit:
        differences = np.concatenate([each.differences for each in collections])
        order = np.argsort(-differences, kind="stable")
        keep[order] = np.cumsum(sizes[order]) <= limit
    bounds = np.cumsum([len(each.sizes) for each in collections])[:-1]
    return np.split(keep, bounds)
