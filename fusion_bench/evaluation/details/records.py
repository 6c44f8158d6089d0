"""Everything that a page shows beside the report: the contract between evaluation and page.

A report has the values; these records have ranks, terms, texts and what the sources contribute.
They are computed with the report, and only where somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import UnknownKeyError
from fusion_bench.evaluation.details.depth_curve import DepthCurve
from fusion_bench.evaluation.details.leave_one_out import LeaveOneOut
from fusion_bench.evaluation.details.plain_data import PlainTable
from fusion_bench.evaluation.details.relevant_ranks import RelevantRanks
from fusion_bench.evaluation.details.source_overlap import SourceOverlap
from fusion_bench.evaluation.details.top_documents import TopDocuments
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView

FORMAT: Final = "fusion-bench-details"
FORMAT_VERSION: Final = 1


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
    top: tuple[TopDocuments, ...]
    document_texts: Mapping[str, str]
    overlap: SourceOverlap
    leave_one_out: LeaveOneOut
    depth_curve: DepthCurve

    def top_documents(self, system: str) -> TopDocuments:
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
