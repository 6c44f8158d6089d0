"""What stands behind the values of a report: ranks, terms, texts, what the sources contribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import UnknownKeyError
from fusion_bench.evaluation.details.relevant_ranks import (
    PlainTable,
    RelevantRanks,
    SourceOverlap,
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
from fusion_bench.evaluation.recommendation import find_preference
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.util.formatting import Columns, TableView, pluralize

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.collector import CollectedLists

FORMAT: Final = "fusion-bench-details"
FORMAT_VERSION: Final = 1
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
        sizes: Shape (Q,): about how many bytes of JSON the details of each query have.
    """

    detailed: DetailedSet
    relevant: RelevantRanks
    top: tuple[ShownDocuments, ...]
    sizes: IntArray


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


def choose_queries(
    sizes: Sequence[IntArray], differences: Sequence[FloatArray], limit: int
) -> list[BoolArray]:
    """For each collection, shape (Q,): the queries that keep their details.

    All of them where they fit into the limit together. Otherwise those with the greatest
    differences, over all collections, until the next one would not fit.

    Args:
        sizes: Of each collection, shape (Q,): bytes of JSON by query.
        differences: Of each collection, shape (Q,): how much the systems differ on each query.
        limit: Bytes.
    """
    size = np.concatenate(sizes)
    keep = np.ones(len(size), dtype=bool)
    if size.sum() > limit:
        order = np.argsort(-np.concatenate(differences), kind="stable")
        keep[order] = np.cumsum(size[order]) <= limit
    return np.split(keep, np.cumsum([len(each) for each in sizes])[:-1])


def make_report_details(
    report: Report, collected: Sequence[CollectedLists], limit: int
) -> ReportDetails:
    """The details of a report.

    Args:
        report: The report.
        collected: What was collected of each of its collections.
        limit: About how many bytes of JSON the ranks, top documents and their texts may have.
    """
    tables = [
        _list_tables(lists, collection)
        for lists, collection in zip(collected, report.collections, strict=True)
    ]
    sizes = [table.sizes for table in tables]
    keeps = choose_queries(sizes, [table.detailed.differences for table in tables], limit)
    return ReportDetails(
        report.name,
        tuple(
            _make_collection_details(lists, table, keep)
            for lists, table, keep in zip(collected, tables, keeps, strict=True)
        ),
    )


def _list_tables(lists: CollectedLists, collection: Collection) -> DetailTables:
    """The tables of all queries."""
    detailed = _detail_systems(lists, collection)
    relevant = make_relevant_ranks(lists.runs, lists.ranks.relevant, lists.ranks.ranks)
    top = tuple(
        list_top_documents(system, lists.runs, lists.ranks.tops[system.name])
        for system in detailed.systems
    )
    excerpt = 0 if lists.documents is None else TEXT_LENGTH
    sizes = estimate_sizes(relevant, top, excerpt)
    return DetailTables(detailed, relevant, top, sizes)


def _detail_systems(lists: CollectedLists, collection: Collection) -> DetailedSet:
    """The baseline, the best system and those that were asked for, with their values."""
    first, *rest = lists.wanted
    names = dict.fromkeys((first, _best_system(collection), *rest))
    primary = collection.primary_measure
    results = {name: collection.system(name).measures[primary] for name in names}
    values: dict[str, FloatArray] = {  # the runs are those of the first repeat
        name: np.array(each.trials[0] if each.trials else each.values, dtype=np.float64)
        for name, each in results.items()
    }
    systems = tuple(lists.systems[name] for name in names)
    return DetailedSet(systems, values, lists.measure, lists.groups, lists.alpha)


def _best_system(collection: Collection) -> str:
    """The best system that is shown to be better, else that of the highest mean."""
    best = find_preference(collection)
    return collection.ranked_systems[0].name if best is None else best.candidate


def _make_collection_details(
    lists: CollectedLists, tables: DetailTables, keep: BoolArray
) -> CollectionDetails:
    """The record.

    Args:
        lists: What was collected.
        tables: Of all queries.
        keep: Shape (Q,): the queries that keep their rows.
    """
    relevant = tables.relevant.keep_queries(keep)
    top = tuple(each.keep_queries(keep) for each in tables.top)
    shown = {*relevant.documents, *(name for each in top for name in each.documents)}
    return CollectionDetails(
        name=lists.name,
        queries=lists.runs.queries,
        texts=query_texts(lists.runs),
        detailed=tuple(system.name for system in tables.detailed.systems),
        kept_queries=np.flatnonzero(keep),
        relevant=relevant,
        unjudged=dict(lists.ranks.unjudged),
        top=top,
        document_texts=document_texts(lists.documents, shown),
        overlap=measure_overlap(lists.runs, tables.relevant),
        leave_one_out=leave_sources_out(tables.detailed, lists.runs),
        depth_curve=measure_depths(tables.detailed, lists.runs),
    )
