"""What stands behind the values of a report: ranks, terms, texts, what the sources contribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import Switch
from fusion_bench.errors import FusionBenchError, UnknownKeyError
from fusion_bench.evaluation.details import relevant_ranks
from fusion_bench.evaluation.details.top_documents import (
    TEXT_LENGTH,
    ShownDocuments,
    document_texts,
    list_top_documents,
    query_texts,
)
from fusion_bench.evaluation.recommendation import find_preference
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.values import Pair
from fusion_bench.util.formatting import Columns, TableView, list_columns, pluralize

FORMAT: Final = "fusion-bench-details"
FORMAT_VERSION: Final = 1
#: Bytes of a rank, a grade or an index, of a score or a term, and of the marks around a text.
RANK, NUMBER, MARKS = 3, 20, 3


@dataclass(frozen=True, eq=False, repr=False)
class CollectionDetails(relevant_ranks.PlainTable):
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
    relevant: relevant_ranks.RelevantRanks
    unjudged: Mapping[str, IntArray]
    top: tuple[ShownDocuments, ...]
    document_texts: Mapping[str, str]
    overlap: relevant_ranks.SourceOverlap
    leave_one_out: LeaveOneOut
    depth_curve: DepthCurve

    def top_documents(self, system: str) -> ShownDocuments:
        """The first ten documents of a detailed system.

        Raises:
            UnknownKeyError: It is not detailed; a KeyError too.
        """
        by_name = {top.system: top for top in self.top}
        if system not in by_name:
            remedy = f"detail it with compare(…, detail=[{system!r}]), or eval --detail"
            raise UnknownKeyError("detailed system", system, by_name, remedy=remedy)
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
    relevant: relevant_ranks.RelevantRanks
    top: tuple[ShownDocuments, ...]
    sizes: IntArray


def estimate_sizes(
    relevant: relevant_ranks.RelevantRanks, tops: Sequence[ShownDocuments], excerpt: int = 0
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
        if top.chunks:
            sizes += _add_up(top.query, [each.chunk for each in top.chunks], 3 * RANK, size)
    if excerpt:
        pairs = set(zip(relevant.query.tolist(), relevant.documents, strict=True))
        for top in tops:
            chunks = [each.chunk for each in top.chunks or ()]
            pairs.update(zip(top.query.tolist(), top.documents, strict=True))
            pairs.update(zip(top.query.tolist(), chunks, strict=False))
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
    name: str,
    collections: Sequence[Collection],
    collected: Sequence[relevant_ranks.CollectedLists],
    limit: int,
) -> ReportDetails:
    """The details of a report.

    Args:
        name: The report's name.
        collections: Its collections.
        collected: What was collected of each of its collections.
        limit: About how many bytes of JSON the ranks, top documents and their texts may have.
    """
    tables = [
        _list_tables(lists, collection)
        for lists, collection in zip(collected, collections, strict=True)
    ]
    sizes = [table.sizes for table in tables]
    keeps = choose_queries(sizes, [table.detailed.differences for table in tables], limit)
    return ReportDetails(
        name,
        tuple(
            _make_collection_details(lists, table, keep)
            for lists, table, keep in zip(collected, tables, keeps, strict=True)
        ),
    )


def _list_tables(lists: relevant_ranks.CollectedLists, collection: Collection) -> DetailTables:
    """The tables of all queries."""
    detailed = _detail_systems(lists, collection)
    relevant = relevant_ranks.make_relevant_ranks(
        lists.pool, lists.ranks.relevant, lists.ranks.ranks
    )
    top = tuple(
        list_top_documents(system, lists.runs, lists.ranks.tops[system.name], lists.measures)
        for system in detailed.systems
    )
    excerpt = 0 if lists.documents is None else TEXT_LENGTH
    sizes = estimate_sizes(relevant, top, excerpt)
    return DetailTables(detailed, relevant, top, sizes)


def _detail_systems(lists: relevant_ranks.CollectedLists, collection: Collection) -> DetailedSet:
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
    return DetailedSet(systems, values, lists.measures[0], lists.runs.groups, lists.alpha)


def _best_system(collection: Collection) -> str:
    """The best system that is shown to be better, else that of the highest mean."""
    best = find_preference(collection)
    return collection.ranked_systems[0].name if best is None else best.candidate


def _make_collection_details(
    lists: relevant_ranks.CollectedLists, tables: DetailTables, keep: BoolArray
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
    shown |= {row.chunk for each in top for row in each.chunks or ()}
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
        overlap=relevant_ranks.measure_overlap(lists.pool, tables.relevant),
        leave_one_out=leave_sources_out(tables.detailed, lists.runs),
        depth_curve=measure_depths(tables.detailed, lists.runs),
    )


@dataclass(frozen=True, eq=False)
class DetailedSet:
    """Detailed systems on one collection.

    Attributes:
        systems: Fitted, the baseline first.
        values: By system, shape (Q,): the primary measure.
        measure: The primary measure.
        keys: Shape (Q,): the group id of each query.
        alpha: 1 − coverage of intervals.
    """

    systems: tuple[System, ...]
    values: Mapping[str, FloatArray]
    measure: Measure
    keys: tuple[str, ...]
    alpha: float

    @property
    def differences(self) -> FloatArray:
        """(Q,): the greatest difference of any system from the first one, the baseline."""
        base = self.values[self.systems[0].name]
        greatest: FloatArray = np.abs(np.stack([*self.values.values()]) - base).max(axis=0)
        return greatest

    def evaluate(
        self, systems: Sequence[System], runs: AlignedRuns
    ) -> Iterator[tuple[System, FloatArray | str]]:
        """Each system with its values on other lists, shape (Q,), or why it has none.

        Args:
            systems: Some of the systems.
            runs: The same queries.
        """
        values: list[FloatArray | str] | None = None
        with suppress(FusionBenchError):  # of one of them: below it says which
            values = [*self._evaluate(systems, runs)]
        if values is None:
            values = [self._evaluate_alone(system, runs) for system in systems]
        return zip(systems, values, strict=True)

    def _evaluate_alone(self, system: System, runs: AlignedRuns) -> FloatArray | str:
        try:
            return self._evaluate([system], runs)[0]
        except FusionBenchError as error:
            return _find_reason(error)

    def _evaluate(self, systems: Sequence[System], runs: AlignedRuns) -> list[FloatArray]:
        scores = evaluate_systems(systems, runs, [self.measure])
        return [each.values[0] for each in scores]


def _find_reason(error: BaseException) -> str:
    """The message of the first error, without the names that were put before it on its way."""
    while isinstance(error.__context__, FusionBenchError):
        error = error.__context__
    return str(error)


@dataclass(frozen=True, repr=False)
class _MeasureRows(relevant_ranks.PlainTable):
    """Values of systems on the primary measure, a row each.

    Attributes:
        measure: The primary measure.
        rows: Of :attr:`row_type`.
    """

    measure: str
    rows: tuple[Any, ...]
    row_type: ClassVar[type]

    def _summary(self) -> str:
        return f"{type(self).__name__}({self.measure}, {pluralize(len(self.rows), 'row')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return list_columns(self.row_type, self.rows[:limit])


@dataclass(frozen=True)
class LeftOut:
    """One system without one of its sources, on the primary measure.

    Attributes:
        system: Its name.
        source: The source that is left out.
        mean: Mean without it; NaN = could not be evaluated.
        difference: Mean of without − with; below 0 = the source helps.
        low: Lower end of the difference's interval; NaN where nothing tells the spread.
        high: Upper end.
        reason: Why it could not be evaluated; empty = it was.
    """

    system: str
    source: str
    mean: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


@dataclass(frozen=True, repr=False)
class LeaveOneOut(_MeasureRows):
    """Every detailed system of two or more sources, without each of them.

    A source that is left out weighs 0: the others keep their weights, and its candidates leave
    with it. A trained fusion is not fitted again: it sees a source that returned nothing.

    Attributes:
        measure: The primary measure.
        rows: One a system and source. The intervals are t intervals by group, not adjusted for
            their number.
    """

    rows: tuple[LeftOut, ...]
    row_type = LeftOut


def leave_sources_out(detailed: DetailedSet, runs: AlignedRuns) -> LeaveOneOut:
    """Evaluate the detailed systems without each of their sources.

    Args:
        detailed: The systems.
        runs: Aligned runs.
    """
    rows = {
        (row.system, row.source): row
        for source in runs.sources
        for row in _leave_out(detailed, runs, source)
    }
    pairs = ((system.name, source) for system in detailed.systems for source in runs.sources)
    return LeaveOneOut(detailed.measure.name, tuple(rows[pair] for pair in pairs if pair in rows))


def _leave_out(detailed: DetailedSet, runs: AlignedRuns, source: str) -> Iterator[LeftOut]:
    systems = [system for system in detailed.systems if _reads(system, source)]
    if not systems:
        return
    for system, values in detailed.evaluate(systems, _without_source(runs, source)):
        if isinstance(values, str):
            yield LeftOut(system.name, source, reason=values)
        else:
            yield _compare(detailed, system.name, source, values)


def _without_source(runs: AlignedRuns, source: str) -> AlignedRuns:
    """The runs with a source that is off for every query, and returned nothing.

    Systems that weigh their sources see the first, trained ones the second.
    """
    row = runs.sources.index(source)
    switches = list(runs.switches or (None,) * len(runs.sources))
    switches[row] = Switch(frozenset())
    ranks, scores = runs.ranks.copy(), runs.scores.copy()
    ranks[row], scores[row] = 0, math.nan
    return replace(runs, ranks=ranks, scores=scores, switches=tuple(switches))


def _reads(system: System, source: str) -> bool:
    """Whether a system reads the source, and others."""
    return source in system.base_runs and len(system.base_runs) > 1


def _compare(detailed: DetailedSet, system: str, source: str, values: FloatArray) -> LeftOut:
    pair = Pair.from_arrays(
        *(values, detailed.values[system], detailed.keys), is_bounded=detailed.measure.is_bounded
    )
    estimate = pair.estimate(detailed.alpha)
    return LeftOut(system, source, exact_mean(values), estimate.mean, estimate.low, estimate.high)


#: Depths at which the sources are cut, as far as they are deeper.
DEPTHS: Final = (5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class DepthMean:
    """One system whose sources are cut at one depth.

    Attributes:
        system: Its name.
        depth: The greatest rank of any source that is read; the system's own ``depth`` holds too.
        mean: Mean of the primary measure; NaN = could not be evaluated.
        reason: Why not; empty = it was.
    """

    system: str
    depth: int
    mean: float = math.nan
    reason: str = ""


@dataclass(frozen=True, repr=False)
class DepthCurve(_MeasureRows):
    """The detailed systems at growing depths of their sources.

    Attributes:
        measure: The primary measure.
        rows: By system, then by depth; the last depth is that of the deepest source.
    """

    rows: tuple[DepthMean, ...]
    row_type = DepthMean


def measure_depths(detailed: DetailedSet, runs: AlignedRuns) -> DepthCurve:
    """Evaluate the detailed systems on sources that are cut at each of :data:`DEPTHS`.

    Args:
        detailed: The systems.
        runs: Aligned runs.
    """
    rows = [row for depth in DEPTHS for row in _cut_at(detailed, runs, depth)]
    rows += [
        DepthMean(system.name, runs.max_rank, exact_mean(detailed.values[system.name]))
        for system in detailed.systems
    ]
    order = {system.name: place for place, system in enumerate(detailed.systems)}
    return DepthCurve(
        detailed.measure.name, tuple(sorted(rows, key=lambda row: (order[row.system], row.depth)))
    )


def _cut_at(detailed: DetailedSet, runs: AlignedRuns, depth: int) -> Iterator[DepthMean]:
    if depth >= runs.max_rank:
        return
    # The copy has a cache of its own: the cut lists go when they have been evaluated.
    cut = replace(runs).restrict(runs.sources, dict.fromkeys(runs.sources, depth))
    for system, values in detailed.evaluate(detailed.systems, cut):
        if isinstance(values, str):
            yield DepthMean(system.name, depth, reason=values)
        else:
            yield DepthMean(system.name, depth, exact_mean(values))
