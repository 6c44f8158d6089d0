"""Compare run files, or systems of finished reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.file_options import (
    QrelsColumns,
    RunColumns,
    parse_named_files,
    parse_qrels_columns,
    parse_run_columns,
    report_file,
)
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.evaluation.compared_reports import CollectionComparison
    from fusion_bench.evaluation.details.collector import DetailsCollector
    from fusion_bench.evaluation.report_changes import ReportChange
    from fusion_bench.evaluation.report_file import Report
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
    from fusion_bench.cli.application.next_steps import after_compare_reports
    from fusion_bench.evaluation.compared_reports import compare_reports
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
    from fusion_bench.evaluation.compared_reports import add_comparisons
    from fusion_bench.evaluation.report_changes import find_changes
    from fusion_bench.report.change_page import build_change_page
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
    from fusion_bench.evaluation.report_file import read_report

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


command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench compare --qrels qrels.txt bm25.trec hybrid.trec",
        "fusion-bench compare --qrels qrels.txt today=old/run.trec new=new/run.trec",
        "fusion-bench compare reports/default/report.json --baseline rrf --candidate rrf-v2",
        "fusion-bench compare reports/default/report.json --candidate rrf-v2 --markdown -",
        "fusion-bench compare before/report.json after/report.json --candidate rrf",
        "fusion-bench compare before after --html",
        "fusion-bench compare reports/default/report.json --tables latex --out paper",
    ),
)
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Run files and their names (with --qrels; the first is the baseline; one alone is "
            "only measured), or one or two report.json or their folders.",
            metavar="NAME=FILE",
        ),
    ],
    qrels: Annotated[
        Path | None, typer.Option(help="Judgments file; then FILE are run files.", metavar="FILE")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure of run files, the primary one first. "
            f"Default: {', '.join(DEFAULT_MEASURES)}.",
            metavar="NAME",
        ),
    ] = None,
    binary_relevance: Annotated[
        int | None,
        typer.Option(
            help="Grade of run files from which binary measures count. Default: 1.", min=1
        ),
    ] = None,
    qrels_columns: QrelsColumns = None,
    run_columns: RunColumns = None,
    baseline: Annotated[
        str | None, typer.Option(help="System of the first report to compare with.")
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(help="System to compare; may be given again.", metavar="NAME"),
    ] = None,
    tables: base.TableFormats = None,
    html: Annotated[
        bool,
        typer.Option(
            "--html",
            help="Write the page for a browser and its data: comparison.html of reports, "
            "report.html of run files.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of tables and page. Default: reports/compare.", metavar="DIR"),
    ] = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Compare run files with the first of them, or systems of finished reports."""
    from fusion_bench.io.outputs import refuse_inputs

    base.refuse_two_outputs(markdown, as_json=json)
    write = _file_writer(out, tables or (), html=html)
    options: dict[str, Sequence[object] | None] = {
        "--measure": measure,
        "--binary-relevance": None if binary_relevance is None else [binary_relevance],
        "--qrels-columns": qrels_columns,
        "--run-columns": run_columns,
    }
    if qrels is None:
        refuse_inputs(map(report_file, map(Path, files)))
        base.refuse_options("reports", options)

        result = compare_report_files(
            files, baseline, candidate or [], has_summary=markdown is not None, html=html
        )
        written = write(result.page, result.texts)
        print_result(result.records, result.page, as_json=json, written=written, markdown=markdown)
        return
    base.refuse_options("run files", {"--baseline": baseline, "--candidate": candidate})
    from fusion_bench.evaluation.details.collector import DetailsCollector
    from fusion_bench.evaluation.in_memory import compare_files
    from fusion_bench.measures.aliases import list_renamed

    lists = parse_named_files(files, "FILE")
    refuse_inputs(lists.values())
    collector = DetailsCollector() if html else None
    report = compare_files(
        qrels,
        lists,
        measures=measure or DEFAULT_MEASURES,
        binary_relevance=binary_relevance or 1,
        qrels_layout=parse_qrels_columns(qrels_columns),
        run_layout=parse_run_columns(run_columns),
        details=collector,
    )
    page = _build_files_page(report, qrels, lists, options)
    written = write(page, {} if collector is None else _evaluation_files(report, collector))
    print_result(report, page, as_json=json, written=written, markdown=markdown)
    base.echo_notes(list_renamed(measure or ()))


def _file_writer(
    out: Path | None, formats: Sequence[str], *, html: bool
) -> Callable[[Page, Mapping[str, str]], list[Path]]:
    """Writes the tables of a page, and other files; the folder is checked before the work begins.

    Raises:
        ConfigError: A file is in the way of the folder.
        typer.BadParameter: A folder without anything to write.
    """
    from fusion_bench.util.files import require_folder

    if not (formats or html):
        base.refuse_options("a comparison that writes no tables and no page", {"--out": out})
        return lambda _page, _texts: []
    folder = require_folder(out or Path("reports/compare"))

    def write(page: Page, texts: Mapping[str, str]) -> list[Path]:
        from fusion_bench.report.table import render_tables
        from fusion_bench.report.write import write_files

        return write_files(folder, {**texts, **render_tables(page, "comparison", formats)})

    return write


def _evaluation_files(report: Report, collector: DetailsCollector) -> dict[str, str]:
    """The record and the page of compared run files, as ``eval`` writes them."""
    from fusion_bench.report.html.pages import evaluation_html

    html = evaluation_html(report, collector.make_details(report))
    return {"report.json": f"{report.model_dump_json()}\n", "report.html": html}


def _build_files_page(
    report: Report,
    qrels: Path,
    lists: Mapping[str, Path],
    options: Mapping[str, Sequence[object] | None],
) -> Page:
    """The page of compared run files, and the command that may follow."""
    from fusion_bench.cli.application.next_steps import after_compare
    from fusion_bench.report.evaluation_page import build_page

    return replace(build_page(report), next_steps=tuple(after_compare(qrels, lists, options)))
