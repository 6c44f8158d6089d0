"""Compare systems of finished reports: what is printed, and the page for a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fusion_bench.cli.options.named_files import report_file
from fusion_bench.errors import ConfigError, DataError, UnknownNameError

if TYPE_CHECKING:
    from fusion_bench.evaluation.compare_systems import CollectionComparison
    from fusion_bench.evaluation.report_changes.records import ReportChange
    from fusion_bench.evaluation.report_records.report import Report
    from fusion_bench.report.page import Page


@dataclass(frozen=True)
class ComparedReports:
    """What a comparison of reports gives.

    Attributes:
        records: What ``--json`` prints: one a collection.
        page: What a terminal shows.
        texts: File name → contents of what ``--html`` writes; empty = not asked for.
    """

    records: list[dict[str, Any]]
    page: Page
    texts: Mapping[str, str] = field(default_factory=dict)


def compare_report_files(
    files: Sequence[str],
    baseline: str | None,
    candidates: Sequence[str],
    *,
    has_summary: bool,
    html: bool,
) -> ComparedReports:
    """Compare systems of one report or of two.

    Two reports whose queries or judgments differ have a page, but no tests.

    Args:
        files: Reports, or their folders.
        baseline: System of the first report; None = the default one.
        candidates: Systems to compare; empty = all.
        has_summary: Whether a summary is written.
        html: Whether to make the page.

    Raises:
        DataError: A file that is no report.
        FusionBenchError: The systems cannot be compared.
    """
    paths = [report_file(Path(name)) for name in files]
    reports = _read_reports(paths)
    if not html or len(reports) == 1:
        result = _compare(paths, reports, baseline, candidates, has_summary=has_summary)
        return replace(result, texts=_page_of_one(result)) if html else result
    return _compare_versions(paths, reports, baseline, candidates, has_summary=has_summary)


def _compare(
    paths: Sequence[Path],
    reports: Sequence[Report],
    baseline: str | None,
    candidates: Sequence[str],
    *,
    has_summary: bool,
) -> ComparedReports:
    """Systems against one baseline."""
    from fusion_bench.cli.next_steps.compare import after_compare_reports
    from fusion_bench.evaluation.compare_systems import compare_reports
    from fusion_bench.report.comparison_page import build_comparison_page

    collections = compare_reports(
        reports[0],
        reports[1] if len(reports) == 2 else None,
        baseline=baseline,
        candidates=candidates,
    )
    steps = after_compare_reports(paths, reports, collections[0], has_summary=has_summary)
    page = build_comparison_page(
        collections, _origins(paths, reports), [report.provenance for report in reports]
    )
    records = [_record(each) for each in collections]
    return ComparedReports(records, replace(page, next_steps=tuple(steps)))


def _record(item: CollectionComparison) -> dict[str, Any]:
    return {
        "collection": item.collection,
        "queries": item.queries,
        "family": item.family,
        "v2_enabled": item.v2_enabled,
        "comparisons": item.comparisons,
        "first_group": item.first_group,
        "unjudged": item.unjudged,
        "bounds": item.bounds,
        "warnings": item.warnings,
    }


def _origins(paths: Sequence[Path], reports: Sequence[Report]) -> list[str]:
    return [
        f"{path}: {report.provenance.source}, {report.provenance.created}"
        f"{'' if report.provenance.v2_enabled else ', RAG_FUSION_V2_ENABLED off'}"
        for path, report in zip(paths, reports, strict=True)
    ]


def _page_of_one(result: ComparedReports) -> dict[str, str]:
    """The tables of one report as a page."""
    from fusion_bench.report.html.render import render_html

    return {
        "comparison.json": _format_json({"comparisons": result.records, "change": None}),
        "comparison.html": render_html(result.page),
    }


def _compare_versions(
    paths: Sequence[Path],
    reports: Sequence[Report],
    baseline: str | None,
    candidates: Sequence[str],
    *,
    has_summary: bool,
) -> ComparedReports:
    """Two reports with their page: what changed, then systems against one baseline."""
    from fusion_bench.evaluation.report_changes.find_changes import find_changes
    from fusion_bench.evaluation.report_changes.paired_changes import add_comparisons
    from fusion_bench.report.changes.change_page import build_change_page
    from fusion_bench.report.html.pages import change_html

    old, new = reports
    change = add_comparisons(find_changes(old, new), old, new)
    page = build_change_page(change, old, new, list(map(str, paths)))
    try:
        result = _compare(paths, reports, baseline, candidates, has_summary=has_summary)
    except UnknownNameError:
        raise
    except ConfigError:
        if baseline or candidates:
            raise
        result = ComparedReports(_change_records(change), page)
        tables: list[Any] = []
    else:
        tables = [
            replace(section, title="Against one baseline", is_folded=not (baseline or candidates))
            for section in result.page.sections
            if section.key != "judge"  # stands at the beginning
        ]
    record = {"comparisons": result.records, "change": change.to_dict()}
    html = change_html(change, old, new, page=page, tables=tables)
    texts = {"comparison.json": _format_json(record), "comparison.html": html}
    return replace(result, texts=texts)


def _change_records(change: ReportChange) -> list[dict[str, Any]]:
    """What ``--json`` prints of reports that cannot be tested."""
    return [{"collection": each.name, "change": each} for each in change.collections]


def _format_json(record: object) -> str:
    from pydantic_core import to_json

    return f"{to_json(record, inf_nan_mode='null').decode()}\n"


def _read_reports(files: Sequence[Path]) -> list[Report]:
    """One or two finished reports.

    Raises:
        typer.BadParameter: More than two files.
        DataError: A file that is no report.
    """
    from fusion_bench.evaluation.stored_reports.read_report import read_report

    if len(files) > 2:
        raise typer.BadParameter(
            "needs one or two reports; run files need --qrels", param_hint="FILE"
        )
    try:
        return [read_report(path) for path in files]
    except DataError as error:
        others = [path for path in files if path.suffix != ".json" and path.exists()]
        named = [path for path in files if "=" in str(path) and not path.exists()]
        if named and not others:
            text = "a report cannot be named; NAME=FILE is a run file and needs --qrels FILE"
            raise DataError(f"{named[0]}: {text}") from error
        if not others:
            raise
        raise DataError(f"{others[0]}: not a JSON report; run files need --qrels FILE") from error
