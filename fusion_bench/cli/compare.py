"""Compare run files, or systems of finished reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli._column_options import (
    QrelsColumns,
    RunColumns,
    parse_qrels_columns,
    parse_run_columns,
)
from fusion_bench.cli._console import print_result
from fusion_bench.cli._named_files import parse_named_files
from fusion_bench.experiment.defaults import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.evaluation.report_records.report import Report
    from fusion_bench.report.page import Page

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench compare --qrels qrels.txt bm25.trec hybrid.trec",
        "fusion-bench compare --qrels qrels.txt today=old/run.trec new=new/run.trec",
        "fusion-bench compare reports/default/report.json --baseline rrf --candidate rrf-v2",
        "fusion-bench compare reports/default/report.json --candidate rrf-v2 --markdown -",
        "fusion-bench compare before/report.json after/report.json --candidate rrf",
        "fusion-bench compare reports/default/report.json --tables latex --out paper",
    ),
)
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Run files and their names (with --qrels; the first is the baseline; one alone is "
            "only measured), or one or two report.json.",
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
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the tables. Default: reports/compare.", metavar="DIR"),
    ] = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Compare run files with the first of them, or systems of finished reports."""
    base.refuse_two_outputs(markdown, as_json=json)
    write = _table_writer(out, tables or ())
    options: dict[str, Sequence[object] | None] = {
        "--measure": measure,
        "--binary-relevance": None if binary_relevance is None else [binary_relevance],
        "--qrels-columns": qrels_columns,
        "--run-columns": run_columns,
    }
    if qrels is None:
        base.refuse_options("reports", options)
        paths = [Path(file) for file in files]
        record, page = _compare_reports(paths, baseline, candidate or [], markdown)
        print_result(record, page, as_json=json, written=write(page), markdown=markdown)
        return
    base.refuse_options("run files", {"--baseline": baseline, "--candidate": candidate})
    from fusion_bench.evaluation.compare_files import compare_files
    from fusion_bench.measures.aliases import list_renamed

    lists = parse_named_files(files, "FILE")
    report = compare_files(
        qrels,
        lists,
        measures=measure or DEFAULT_MEASURES,
        binary_relevance=binary_relevance or 1,
        qrels_layout=parse_qrels_columns(qrels_columns),
        run_layout=parse_run_columns(run_columns),
    )
    page = _build_files_page(report, qrels, lists, options)
    print_result(report, page, as_json=json, written=write(page), markdown=markdown)
    base.echo_notes(list_renamed(measure or ()))


def _compare_reports(
    files: list[Path],
    baseline: str | None,
    candidates: list[str],
    markdown: Path | None,
) -> tuple[object, Page]:
    """The record and the page of compared reports."""
    from fusion_bench.cli._next_steps_compare import after_compare_reports
    from fusion_bench.evaluation.compare_systems import compare_reports
    from fusion_bench.report.comparison_page import build_comparison_page

    reports = _read_reports(files)
    collections = compare_reports(
        reports[0],
        reports[1] if len(reports) == 2 else None,
        baseline=baseline,
        candidates=candidates,
    )
    records = [
        {
            "collection": item.collection,
            "queries": item.queries,
            "family": item.family,
            "v2_enabled": item.v2_enabled,
            "comparisons": item.comparisons,
            "unjudged": item.unjudged,
            "warnings": item.warnings,
        }
        for item in collections
    ]
    origins = [
        f"{path}: {report.provenance.source}, {report.provenance.created}"
        f"{'' if report.provenance.v2_enabled else ', RAG_FUSION_V2_ENABLED off'}"
        for path, report in zip(files, reports, strict=True)
    ]
    has_summary = markdown is not None
    steps = after_compare_reports(files, reports, collections[0], has_summary=has_summary)
    return records, replace(build_comparison_page(collections, origins), next_steps=tuple(steps))


def _table_writer(out: Path | None, formats: Sequence[str]) -> Callable[[Page], list[Path]]:
    """Writes the tables of a page; the folder is checked before the work begins.

    Raises:
        ConfigError: A file is in the way of the folder.
        typer.BadParameter: A folder without tables.
    """
    from fusion_bench.util.files.atomic_files import require_folder

    if not formats:
        base.refuse_options("a comparison that writes no tables", {"--out": out})
        return lambda _: []
    folder = require_folder(out or Path("reports/compare"))

    def write(page: Page) -> list[Path]:
        from fusion_bench.report.table_files.table_files import render_tables
        from fusion_bench.report.write import write_files

        return write_files(folder, render_tables(page, "comparison", formats))

    return write


def _build_files_page(
    report: Report,
    qrels: Path,
    lists: Mapping[str, Path],
    options: Mapping[str, Sequence[object] | None],
) -> Page:
    """The page of compared run files, and the command that may follow."""
    from fusion_bench.cli._next_steps_compare import after_compare
    from fusion_bench.report.evaluation.evaluation_page import build_page

    return replace(build_page(report), next_steps=tuple(after_compare(qrels, lists, options)))


def _read_reports(files: list[Path]) -> list[Report]:
    """One or two finished reports.

    Raises:
        typer.BadParameter: More than two files.
        DataError: A file that is no report.
    """
    from fusion_bench.errors import DataError
    from fusion_bench.evaluation.report_records.report import read_report

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
