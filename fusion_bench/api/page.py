"""The page for a browser of whatever a function returned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fusion_bench.api.html_page import HtmlPage
from fusion_bench.errors import DataError
from fusion_bench.evaluation.details.records import ReportDetails
from fusion_bench.evaluation.report_changes.find_changes import find_changes
from fusion_bench.evaluation.report_changes.last_report import FILE
from fusion_bench.evaluation.report_changes.paired_changes import add_comparisons
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.read_report import read_report
from fusion_bench.gate.result import GateVerdict
from fusion_bench.report.tuning_records.tuning_report import TuningReport

if TYPE_CHECKING:
    from fusion_bench.api.results.comparisons import Comparisons

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
    record = getattr(result, "report", result)
    if before is None and isinstance(record, TuningReport):
        return HtmlPage(f"{record.system} tuned", _tuning_html(record))
    if before is None and isinstance(record, GateVerdict):
        return HtmlPage(record.headline, _gate_html(record))
    report = _read_report(result)
    if before is not None:
        return HtmlPage(report.name, _change_html(_read_report(before), report))
    from fusion_bench.report.html.pages import evaluation_html

    return HtmlPage(report.name, evaluation_html(report, _find_details(report)))


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
    old, new = _read_report(before), _read_report(after)
    return add_comparisons(find_changes(old, new), old, new)


def _read_report(given: object) -> Report:
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        return read_report(path / FILE if path.is_dir() else path)
    record = getattr(given, "report", given)
    if isinstance(record, Report):
        return record
    raise DataError(
        f"no page of {type(given).__name__}: give what compare, run_experiment, tune or gate "
        "returned, a Report, or the path of a report.json; 'before' takes reports only"
    )


def _find_details(report: Report) -> ReportDetails | None:
    """A report that was read from a file has none."""
    return report.details() if report.has_details else None


def _change_html(old: Report, new: Report) -> str:
    from fusion_bench.report.changes.change_page import build_change_page
    from fusion_bench.report.html.pages import change_html

    change = compare_reports(old, new)
    return change_html(change, old, new, page=build_change_page(change, old, new))


def _tuning_html(report: TuningReport) -> str:
    from fusion_bench.report.html.pages import tuning_html
    from fusion_bench.report.plots import make_figures
    from fusion_bench.report.tuning.tuning_page import build_page
    from fusion_bench.report.write import draw_figures

    built = build_page(report, tuple(make_figures("tuning", report)))
    return tuning_html(report, built, draw_figures(built))


def _gate_html(verdict: GateVerdict) -> str:
    from fusion_bench.gate.pages.gate_page import build_gate_page
    from fusion_bench.gate.pages.html import gate_html

    return gate_html(verdict, build_gate_page(verdict))
