"""What a comparison of systems found, for people who work in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusion_bench.errors import UnknownKeyError
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.findings import decision_finding
from fusion_bench.report.lint_page import lint_lines
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView, make_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from fusion_bench.api.html_page import HtmlPage
    from fusion_bench.evaluation.details.records import CollectionDetails

#: What is said of each system against the baseline, on the primary measure.
DIFFERENCE_FIELDS = (
    *("difference", "low", "high", "p", "p_adjusted", "effect_size"),
    *("wins", "ties", "losses", "answer"),
)
#: Keys of the warnings that stand in the verdict: unjudged or tied documents may
#: decide it, or queries may be counted more than once.
DOUBTS = frozenset({"unjudged", "unjudged decide", "ties", "near-duplicate queries"})


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(TableView):
    """Systems against a baseline on one collection.

    Attributes:
        report: Everything that was found, as ``fusion-bench eval`` writes it.
    """

    report: Report

    @property
    def collection(self) -> Collection:
        """The only collection of the report."""
        return self.report.collections[0]

    @property
    def verdict(self) -> str:
        """Which system is better than the baseline, and what speaks against relying on that."""
        decision = decision_finding(self.report, self.collection)
        doubts = (
            warning
            for warning in data_warnings(self.report, self.collection)
            if warning.key in DOUBTS
        )
        return " ".join(finding.text for finding in (decision, *doubts))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Whatever one should know before trusting a number, as the page of ``eval`` has it.

        Systems with numbers by query type are linted too.
        """
        lines = lint_lines([item for item in self.report.lint if item.severity == "warning"])
        warnings = (*lines, *data_warnings(self.report, self.collection))
        return tuple(warning.text for warning in warnings)

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.collection.baseline

    @property
    def best(self) -> str:
        """The system with the highest mean on the primary measure; it need not be proven."""
        return self.collection.ranked_systems[0].name

    def details(self) -> CollectionDetails:
        """Ranks, terms, texts and sources behind the values, computed when first asked for.

        Until then this object holds the aligned runs.
        """
        return self.report.details().collections[0]

    def __getitem__(self, system: str) -> ComparisonResult | None:
        """That system against the baseline on the primary measure; None for the baseline.

        Raises:
            UnknownKeyError: There is no such system; a KeyError too.
        """
        known = [row.name for row in self.collection.systems]
        if system not in known:
            raise UnknownKeyError("system", str(system), known)
        return self.collection.comparison(system, self.collection.primary_measure)

    def to_pandas(self, *, per_query: bool = False) -> pd.DataFrame:
        """One row a system: means, then the difference from the baseline on the primary measure.

        Args:
            per_query: One row a query and system instead, with the query's type and sliced
                fields where they are known, and the values of each measure.
        """
        return make_frame(self._query_columns() if per_query else self._table_columns())

    def to_dict(self) -> dict[str, Any]:
        """The verdict, the baseline, and the rows of :meth:`to_pandas` by system."""
        columns = self._table_columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "verdict": self.verdict,
            "baseline": self.baseline,
            "measures": list(self.collection.measures),
            "queries": len(self.collection.queries),
            "systems": {row.pop("system"): row for row in rows},
        }

    def plot(self, kind: str | None = None) -> Drawing:
        """The first figure of the report, or the first of one kind; see :func:`plot`."""
        from fusion_bench.api.plot import plot

        return plot(self, kind)

    def page(self) -> HtmlPage:
        """The page for a browser, which a notebook shows inline; see :func:`page`."""
        from fusion_bench.api.page import page

        return page(self)

    def _summary(self) -> str:
        compared = pluralize(len(self.collection.ranked_systems), "system")
        queries = pluralize(len(self.collection.queries), "query")
        return f"Comparisons of {compared} on {queries} by {self.collection.primary_measure}\n" + (
            self.verdict
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        rows = self.collection.ranked_systems[:limit]
        compared = [self[row.name] for row in rows]
        return {
            "system": [row.name for row in rows],
            **{m: [row.measures[m].mean for row in rows] for m in self.collection.measures},
            **{
                field: [None if item is None else getattr(item, field) for item in compared]
                for field in DIFFERENCE_FIELDS
            },
        }

    def _query_columns(self) -> Columns:
        queries, rows = self.collection.queries, self.collection.ranked_systems
        slices = {"type": self.collection.types, **self.collection.slices}
        known = {f: column for f, column in slices.items() if set(column) != {None}}
        return {
            "query": list(queries) * len(rows),
            "system": [row.name for row in rows for _ in queries],
            **{field: list(column) * len(rows) for field, column in known.items()},
            **{
                name: [value for row in rows for value in row.measures[name].values]
                for name in self.collection.measures
            },
        }
