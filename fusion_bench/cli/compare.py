"""Compare run files, or systems of finished reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.options.columns import (
    QrelsColumns,
    RunColumns,
    parse_qrels_columns,
    parse_run_columns,
)
from fusion_bench.cli.options.named_files import parse_named_files, report_file
from fusion_bench.cli.output.console import print_result
from fusion_bench.experiment.defaults import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.collector import DetailsCollector
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
        from fusion_bench.cli.subcommands.compare_reports import compare_report_files

        result = compare_report_files(
            files, baseline, candidate or [], has_summary=markdown is not None, html=html
        )
        written = write(result.page, result.texts)
        print_result(result.records, result.page, as_json=json, written=written, markdown=markdown)
        return
    base.refuse_options("run files", {"--baseline": baseline, "--candidate": candidate})
    from fusion_bench.evaluation.compare_files import compare_files
    from fusion_bench.evaluation.details.collector import DetailsCollector
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
    from fusion_bench.util.files.atomic_files import require_folder

    if not (formats or html):
        base.refuse_options("a comparison that writes no tables and no page", {"--out": out})
        return lambda _page, _texts: []
    folder = require_folder(out or Path("reports/compare"))

    def write(page: Page, texts: Mapping[str, str]) -> list[Path]:
        from fusion_bench.report.table_files.table_files import render_tables
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
    from fusion_bench.cli.next_steps.compare import after_compare
    from fusion_bench.report.evaluation.evaluation_page import build_page

    return replace(build_page(report), next_steps=tuple(after_compare(qrels, lists, options)))
