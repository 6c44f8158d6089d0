"""What a comparison of systems found: its verdict, page, plots, tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fusion_bench.errors import ConfigError, DataError, UnknownKeyError, UnknownNameError
from fusion_bench.evaluation.compared_reports import add_comparisons
from fusion_bench.evaluation.report_file import FILE, Report, read_report
from fusion_bench.evaluation.report_records import Collection, ComparisonResult
from fusion_bench.measures.aliases import display_measure
from fusion_bench.util.files import write_atomic
from fusion_bench.util.formatting import Columns, TableView, format_number, make_frame, pluralize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from fusion_bench.evaluation.details.report_details import CollectionDetails, ReportDetails
    from fusion_bench.evaluation.report_changes import ReportChange


#: In CSS pixels; the page scrolls inside.
HEIGHT: Final = 720


@dataclass(frozen=True, repr=False)
class HtmlPage:
    """One self-contained page; a notebook shows it inline.

    Attributes:
        name: What it is about.
        html: The whole document.
    """

    name: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all.

        Args:
            path: Where to; its folder is made where it is missing.

        Raises:
            FusionBenchError: The file cannot be written.
        """
        return write_atomic(Path(path), self.html.encode())

    def __repr__(self) -> str:
        return f"HtmlPage({self.name!r}, {len(self.html.encode()) / 1e6:.2f} MB)"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its script reaches nothing of the notebook."""
        from html import escape  # late: its table of entities is large

        title, document = escape(self.name), escape(self.html)
        return (
            f'<iframe title="{title}" sandbox="allow-scripts" width="100%" height="{HEIGHT}" '
            f'style="border: 1px solid #8888" srcdoc="{document}"></iframe>'
        )


#: What is said of each system against the baseline, on the primary measure.
DIFFERENCE_FIELDS = (
    *("difference", "low", "high", "p", "effect_size"),
    *("wins", "ties", "losses", "answer"),
)
#: Keys of the warnings that stand in the verdict: unjudged or tied documents may
#: decide it, or queries may be counted more than once.
DOUBTS = frozenset(
    {"sparse judgments", "unjudged", "unjudged decide", "ties", "near-duplicate queries"}
)


class ResultView(TableView):
    """A result that has figures and a page."""

    def plot(self, kind: str | None = None) -> Drawing:
        """The first figure of the report, or the first of one kind; see :func:`plot`."""
        return plot(self, kind)

    def page(self) -> HtmlPage:
        """The page for a browser, which a notebook shows inline; see :func:`page`."""
        return page(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page for a browser; returns its path."""
        return self.page().save(path)


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(ResultView):
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
        from fusion_bench.report.data_warnings import find_report_warnings  # words come last

        warnings = find_report_warnings(self.report)[self.collection.name]
        doubts = (warning.text for warning in warnings if warning.key in DOUBTS)
        return " ".join((self._decision, *doubts))

    @property
    def _decision(self) -> str:
        """Which system is better; where none is, what to do."""
        from fusion_bench.report.evaluation_findings import (
            decision_finding,
            describe_use,
            list_advice,
        )

        decision = decision_finding(self.report, self.collection)
        advice = () if decision.tone == "better" else list_advice(self.report)
        return " ".join((decision.text, *advice, *describe_use(self.collection)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Whatever one should know before trusting a number, as the page of ``eval`` has it.

        Systems with numbers by query type are linted too, and those of which a default that nobody
        wrote leaves lists out of a mean.
        """
        from fusion_bench.report.data_warnings import find_report_warnings, lint_lines  # as above

        lines = lint_lines([item for item in self.report.lint if item.severity == "warning"])
        warnings = find_report_warnings(self.report)[self.collection.name]
        return (*(line.text for line in lines), *(warning.text for warning in warnings))

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.collection.baseline

    @property
    def best(self) -> str:
        """The system with the highest mean on the primary measure; it need not be proven."""
        return self.collection.ranked_systems[0].name

    def to_latex(self, *, columns: Sequence[str] = (), letters: bool = False) -> str:
        """One table systems × measures with marks of significance, as ``--latex`` writes it.

        Args:
            columns: Measures, and ``difference``, ``interval`` or ``p`` of the first one; none =
                all measures.
            letters: Whether means have letters: systems that share one are not shown to differ.
        """
        from fusion_bench.report.latex import render_paper_tables

        return render_paper_tables(self.report, columns=columns, letters=letters)

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
        if not per_query:
            return make_frame(self._table_columns())
        queries, rows = self.collection.queries, self.collection.ranked_systems
        slices = {"type": self.collection.types, **self.collection.slices}
        known = {f: column for f, column in slices.items() if set(column) != {None}}
        columns: Columns = {
            "query": list(queries) * len(rows),
            "system": [row.name for row in rows for _ in queries],
            **{field: list(column) * len(rows) for field, column in known.items()},
            **{
                name: [value for row in rows for value in row.measures[name].values]
                for name in self.collection.measures
            },
        }
        return make_frame(columns)

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

    def _summary(self) -> str:
        compared = pluralize(len(self.collection.ranked_systems), "system")
        queries = pluralize(len(self.collection.queries), "query")
        shown = []
        for system in dict.fromkeys((self.best, self.baseline)):
            results = self.collection.system(system).measures
            means = (format_number(results[name].mean) for name in self.collection.measures[:2])
            shown.append(f"{system} {' / '.join(means)}")
        measures = " and ".join(map(display_measure, self.collection.measures[:2]))
        title = f"Comparisons of {compared} on {queries} by {measures}: {', '.join(shown)}"
        lines = [title, self._decision]
        if self.warnings:
            lines.append(f"{pluralize(len(self.warnings), 'warning')}: see .warnings and .page()")
        return "\n".join(lines)

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


#: A report, what has one, or where one lies.
ReportLike: TypeAlias = "Report | Comparisons | str | os.PathLike[str]"


def page(result: object, *, before: ReportLike | None = None) -> HtmlPage:
    """The page that a command writes, for a notebook or a file.

    Args:
        result: What ``compare``, ``run_experiment``, ``tune`` or ``gate`` returned, a ``Report``,
            or a ``report.json`` or its folder.
        before: An older report: the page then shows what changed since. Only for reports.

    Returns:
        The page; a notebook shows it inline, ``.save(path)`` writes it.

    Raises:
        DataError: It is nothing that has a page, or a file breaks a rule.
    """
    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.tuning_records import TuningReport

    record = getattr(result, "report", result)
    if before is None and isinstance(record, TuningReport):
        from fusion_bench.report.tuning_pictures import tuning_html

        return HtmlPage(f"{record.system} tuned", tuning_html(record))
    if before is None and isinstance(record, GateVerdict):
        from fusion_bench.gate.formats import gate_html
        from fusion_bench.gate.page import build_gate_page

        return HtmlPage(record.headline, gate_html(record, build_gate_page(record)))
    report = _read_report(result)
    if before is not None:
        from fusion_bench.report.change_page import build_change_page
        from fusion_bench.report.html.pages import change_html

        old = _read_report(before)
        change = compare_reports(old, report)
        shown = build_change_page(change, old, report)
        return HtmlPage(report.name, change_html(change, old, report, page=shown))
    from fusion_bench.report.html.pages import evaluation_html

    details = report.details() if report.has_details else None  # a file has none
    return HtmlPage(report.name, evaluation_html(report, details))


def compare_reports(before: ReportLike, after: ReportLike) -> ReportChange:
    """What changed from one report to the next: settings, systems, queries.

    Where the queries and judgments are the same, each system has a paired comparison with itself.

    Args:
        before: The old report, a result that has one, or its file or folder.
        after: The new one.

    Returns:
        The change: ``.to_pandas()`` has a system a row, ``.collections[0].queries.to_pandas()`` a
        query a row.

    Raises:
        DataError: A file is no report.
    """
    from fusion_bench.evaluation.report_changes import find_changes

    old, new = _read_report(before), _read_report(after)
    return add_comparisons(find_changes(old, new), old, new)


def find_record(result: object) -> object:
    """The record of a result; of a path, the report that lies there."""
    if isinstance(result, str | os.PathLike):
        path = Path(result)
        return read_report(path / FILE if path.is_dir() else path)
    return getattr(result, "report", result)


def _read_report(given: object) -> Report:
    record = find_record(given)
    if isinstance(record, Report):
        return record
    raise DataError(
        f"no page of {type(given).__name__}: give what compare, run_experiment, tune or gate "
        "returned, a Report, or the path of a report.json; 'before' takes reports only"
    )


def plot(result: object, kind: str | None = None) -> Drawing:
    """A figure of a comparison or of a tuning run, as the commands draw it.

    Args:
        result: What ``compare`` or ``tune`` returned, a ``Report``, or the path of a
            ``report.json``.
        kind: Name of a plot, such as ``means``; by default the first that there is to show.

    Returns:
        A figure of Matplotlib; a notebook shows it.

    Raises:
        UnknownNameError: No such plot for this.
        DataError: It is nothing that can be drawn, or the file breaks a rule.
    """
    from fusion_bench.report.plots._base import REGISTRY, render_png

    record = find_record(result)
    if not hasattr(record, "model_dump"):
        raise DataError(
            f"cannot draw {type(result).__name__}: give what compare or tune returned, a Report, "
            "or the path of a report.json"
        )
    page = "evaluation" if isinstance(record, Report) else "tuning"
    given: Sequence[object] = (record,)
    if isinstance(record, Report):
        given = (record, record.collections[0])
    plots = {name: item for name, item in REGISTRY.load_all().items() if item.page == page}
    if kind is not None and kind not in plots:
        raise UnknownNameError("plot", kind, plots)
    chosen = sorted(plots.values(), key=lambda p: p.position) if kind is None else [plots[kind]]
    figure = next((figure for item in chosen for figure in item.make_figures(*given)), None)
    if figure is None:
        raise ConfigError(f"{kind or 'plot'}: nothing to show here: it needs what was not compared")
    drawing = figure.draw()
    # A notebook shows it without any set-up of Matplotlib's backends.
    setattr(drawing, "_repr_png_", lambda: render_png(drawing))  # noqa: B010 - not of its class
    return drawing


def _frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A data frame; a key that a row lacks is missing there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return make_frame({name: [row.get(name) for row in rows] for name in names})


def _details_tables(details: ReportDetails) -> dict[str, pd.DataFrame]:
    """``relevant``, ``top``, ``overlap``, ``leave_one_out``, ``depth_curve``, ``unjudged``."""
    import pandas as pd

    tables: dict[str, list[pd.DataFrame]] = {}
    for each in details.collections:
        whole = ("relevant", "overlap", "leave_one_out", "depth_curve")
        frames = [(name, getattr(each, name).to_pandas()) for name in whole]
        for top in each.top:
            frame = top.to_pandas()
            if "system" not in frame:
                frame.insert(0, "system", top.system)
            frames.append(("top", frame))
        rows = [
            {"system": system, "query": query, "unjudged": int(count)}
            for system, counts in each.unjudged.items()
            for query, count in zip(each.queries, counts, strict=True)
        ]
        for name, frame in [*frames, ("unjudged", _frame_of(rows))]:
            frame.insert(0, "collection", each.name)
            tables.setdefault(name, []).append(frame)
    return {
        name: parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        for name, parts in tables.items()
    }


def _change_tables(change: ReportChange) -> dict[str, pd.DataFrame]:
    """``settings``, ``systems``, ``queries``."""
    changes = [("setting", each) for each in change.settings]
    changes += [("version", each) for each in change.versions]
    settings = [
        {"of": kind, "path": each.path, "then": each.then, "now": each.now}
        for kind, each in changes
    ]
    settings += [
        {"collection": c.name, "of": row.name, "path": s.path, "then": s.then, "now": s.now}
        for c in change.collections
        for row in c.systems
        for s in row.config
    ]
    queries = [
        {"collection": c.name, "query": q.query, "system": q.system, "then": q.then, "now": q.now}
        for c in change.collections
        for q in c.queries.rows
    ]
    return {
        "settings": _frame_of(settings),
        "systems": change.to_pandas(),
        "queries": _frame_of(queries),
    }


def tables(result: object) -> dict[str, pd.DataFrame]:
    """Everything that a page shows, as data frames by name.

    Args:
        result: What ``compare``, ``run_experiment``, ``tune``, ``gate`` or ``compare_reports``
            returned, a ``Report``, what ``.details()`` gave, or the path of a ``report.json``.

    Returns:
        The frames; docs/python.md lists them. One without rows has no columns, or is left out.

    Raises:
        DataError: It is nothing that has tables, or the file breaks a rule.
    """
    from fusion_bench.evaluation.details.report_details import CollectionDetails, ReportDetails
    from fusion_bench.evaluation.report_changes import ReportChange
    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.record_rows import record_rows
    from fusion_bench.report.tuning_records import TuningReport

    record = result
    if not isinstance(result, ReportDetails | CollectionDetails | ReportChange):
        record = find_record(result)
    if isinstance(record, Report):
        from fusion_bench.report.record_rows import report_rows

        details = _details_tables(record.details()) if record.has_details else {}
        return {**{name: _frame_of(rows) for name, rows in report_rows(record).items()}, **details}
    if isinstance(record, ReportChange):
        return _change_tables(record)
    if isinstance(record, CollectionDetails):
        return _details_tables(ReportDetails("", (record,)))
    if isinstance(record, ReportDetails):
        return _details_tables(record)
    if isinstance(record, TuningReport | GateVerdict):
        return {name: _frame_of(rows) for name, rows in record_rows(record).items()}
    raise DataError(
        f"no tables of {type(result).__name__}: give what compare, run_experiment, tune, gate or "
        "compare_reports returned, a Report, or the path of a report.json"
    )
