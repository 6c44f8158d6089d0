"""Compare run files, or systems of finished reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import file_options
from fusion_bench.cli.application.console import check_paper_options, paper_files, print_result
from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.config.options import (
    Argument,
    CheckOptions,
    Count,
    File,
    Folder,
    Name,
    Names,
    Option,
    PaperOptions,
)
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.util.files import require_folder
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.evaluation.report_file import Report
    from fusion_bench.report.page import Page

    #: Records that ``--json`` prints, the page, and file name → contents of what is written.
    ComparedReports: TypeAlias = tuple[list[dict[str, Any]], Page, dict[str, str]]


class CompareOptions(
    file_options.ColumnOptions, CheckOptions, PaperOptions, base.PluginOptions, base.PageOptions
):
    """Options of ``compare``.

    Attributes:
        files: Run files and their names (with --qrels; the first is the baseline; one alone is
            only measured), or one or two report.json or their folders.
        qrels: Judgments file; then FILE are run files.
        binary_relevance: Grade of run files from which binary measures count. Default: 1.
        baseline: System of the first report to compare with.
        candidates: System to compare; may be given again.
        html: Write the page for a browser and its data: comparison.html of reports, report.html of
            run files.
        out: Folder of tables and page. Default: reports/compare.
    """

    files: Annotated[Sequence[str], Argument("NAME=FILE")]
    qrels: File | None = None
    binary_relevance: Count | None = None
    baseline: Name | None = None
    candidates: Annotated[Names, Option("--candidate")] = ()
    html: Annotated[bool, Option("--html/--no-html")] = False
    out: Folder | None = None


#: Options of run files, which ``try`` has too.
RUN_OPTIONS = ("measure", "binary_relevance", *file_options.FILES)


@base.single_command()
def command(options: CompareOptions) -> None:
    """Compare run files with the first of them, or systems of finished reports.

    Examples:
        fusion-bench compare --qrels qrels.txt bm25.trec hybrid.trec
        fusion-bench compare --qrels qrels.txt today=old/run.trec new=new/run.trec
        fusion-bench compare reports/default/report.json --baseline rrf --candidate rrf-v2
        fusion-bench compare reports/default/report.json --candidate rrf-v2 --markdown -
        fusion-bench compare before/report.json after/report.json --candidate rrf
        fusion-bench compare before after --html
        fusion-bench compare reports/default/report.json --latex --letters --out paper
    """
    from fusion_bench.io.outputs import refuse_inputs

    write = _file_writer(options)
    measures = options.measure or DEFAULT_MEASURES
    check_paper_options(options, None if options.qrels is None else measures)
    if options.qrels is None:
        refuse_inputs(map(file_options.report_file, map(Path, options.files)))
        of_runs = (*RUN_OPTIONS, "plugins", "allow_unmatched", "allow_suspect")
        base.refuse(options, "does not go with reports", *of_runs)
        records, page, texts = _compare_reports(options)
        print_result(records, page, options, write(texts))
    else:
        base.refuse(options, "does not go with run files", "baseline", "candidates")
        _compare_runs(options, options.qrels, write)


def _file_writer(options: CompareOptions) -> Callable[[Mapping[str, str]], list[Path]]:
    """Writes what options ask for; the folder is checked before the work begins.

    Raises:
        ConfigError: A file is in the way of the folder.
        typer.BadParameter: A folder without anything to write.
    """
    if not (options.latex or options.csv or options.html):
        nothing = "does not go with a comparison that writes no tables and no page"
        base.refuse(options, nothing, "out")
        return lambda _texts: []
    folder = require_folder(options.out or Path("reports/compare"))

    def write(texts: Mapping[str, str]) -> list[Path]:
        from fusion_bench.io.outputs import write_files

        return write_files(folder, texts)

    return write


def _compare_runs(
    options: CompareOptions, qrels: Path, write: Callable[[Mapping[str, str]], list[Path]]
) -> None:
    """Run files against the first of them, with the page of ``eval``."""
    from fusion_bench.cli.application.next_steps import after_compare
    from fusion_bench.evaluation.details.collector import DetailsCollector
    from fusion_bench.evaluation.in_memory import compare_files
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.measures.aliases import list_renamed
    from fusion_bench.report.evaluation_page import build_page

    lists = file_options.parse_named_files(options.files, "FILE")
    refuse_inputs(lists.values())
    collector = DetailsCollector() if options.html else None
    with progress_bar() as progress:
        report = compare_files(
            *(qrels, lists),
            measures=options.measure or DEFAULT_MEASURES,
            binary_relevance=options.binary_relevance or 1,
            settings=options.state_files(lists),
            details=collector,
            progress=progress,
            allowed=options.allowed,
        )
    steps = tuple(after_compare(qrels, lists, options.words(*RUN_OPTIONS)))
    page = replace(build_page(report), next_steps=steps)
    files = {}
    if collector is not None:
        from fusion_bench.report.html.pages import evaluation_html

        html = evaluation_html(report, collector.make_details(report), next_steps=steps)
        files = {"report.json": f"{report.model_dump_json()}\n", "report.html": html}
    written = write({**files, **paper_files(options, "comparison", report)})
    print_result(report, page, options, written)
    base.echo_notes(list_renamed(options.measure))


def _compare_reports(options: CompareOptions) -> ComparedReports:
    """Compare systems of one report or of two.

    Two reports whose queries or judgments differ have a page, but no tests.

    Returns:
        What ``--json`` prints: one record a collection; what a terminal shows; file name →
        contents of what is written, empty where nothing was asked for.

    Raises:
        DataError: A file that is no report.
        FusionBenchError: The systems cannot be compared.
    """
    from fusion_bench.evaluation.report_file import read_report

    paths = [file_options.report_file(Path(name)) for name in options.files]
    with progress_bar() as progress:
        progress(f"reading {pluralize(len(paths), 'report')}", 0, 1)
        if len(paths) > 2:
            raise typer.BadParameter(
                "needs one or two reports; run files need --qrels", param_hint="FILE"
            )
        try:
            reports = [read_report(path) for path in paths]
        except DataError as error:
            others = [path for path in paths if path.suffix != ".json" and path.exists()]
            named = [path for path in paths if "=" in str(path) and not path.exists()]
            if named and not others:
                text = "a report cannot be named; NAME=FILE is a run file and needs --qrels FILE"
                raise DataError(f"{named[0]}: {text}") from error
            if not others:
                raise
            raise DataError(
                f"{others[0]}: not a JSON report; run files need --qrels FILE"
            ) from error
        progress("comparing systems", 0, 1)
        if options.html and len(reports) == 2:
            return _compare_versions(paths, reports, options)
        records, page, texts = _compare(paths, reports, options)
    if options.html:
        from fusion_bench.report.html.render import render_html

        record = _format_json({"comparisons": records, "change": None})
        texts = {"comparison.json": record, "comparison.html": render_html(page), **texts}
    return records, page, texts


def _compare(
    paths: Sequence[Path], reports: Sequence[Report], options: CompareOptions
) -> ComparedReports:
    """Systems against one baseline."""
    from fusion_bench.cli.application.next_steps import after_compare_reports
    from fusion_bench.evaluation.compared_reports import compare_reports
    from fusion_bench.report.comparison_page import build_comparison_page

    collections = options.call(compare_reports, *reports)
    has_summary = options.markdown is not None
    steps = tuple(after_compare_reports(paths, reports, collections[0], has_summary=has_summary))
    origins = [
        f"{path}: {report.provenance.source}, {report.provenance.created}"
        f"{'' if report.provenance.v2_enabled else ', RAG_FUSION_V2_ENABLED off'}"
        for path, report in zip(paths, reports, strict=True)
    ]
    page = build_comparison_page(collections, origins, [report.provenance for report in reports])
    records = [{name: getattr(each, name) for name in RECORD_KEYS} for each in collections]
    texts = paper_files(options, "comparison", *reports, compared=collections)
    return records, replace(page, next_steps=steps), texts


#: What ``--json`` prints of a collection.
RECORD_KEYS = (
    *("collection", "queries", "family", "v2_enabled", "comparisons", "first_group"),
    *("unjudged", "bounds", "warnings"),
)


def _compare_versions(
    paths: Sequence[Path], reports: Sequence[Report], options: CompareOptions
) -> ComparedReports:
    """Two reports with their page: what changed, then systems against one baseline."""
    from fusion_bench.evaluation.compared_reports import add_comparisons
    from fusion_bench.evaluation.report_changes import find_changes
    from fusion_bench.report.change_page import build_change_page
    from fusion_bench.report.html.pages import change_html

    old, new = reports
    is_chosen = bool(options.baseline or options.candidates)
    change = add_comparisons(find_changes(old, new), old, new)
    page = build_change_page(change, old, new, list(map(str, paths)))
    try:
        records, compared, texts = _compare(paths, reports, options)
    except UnknownNameError:
        raise
    except ConfigError:
        if is_chosen:
            raise
        records = [{"collection": each.name, "change": each} for each in change.collections]
        compared, texts = page, {}
        tables: list[Any] = []
    else:
        tables = [
            replace(section, title="Against one baseline", is_folded=not is_chosen)
            for section in compared.sections
            if section.key != "judge"  # stands at the beginning
        ]
    record = {"comparisons": records, "change": change.to_dict()}
    page = replace(page, next_steps=compared.next_steps)
    html = change_html(change, old, new, page=page, tables=tables)
    files = {"comparison.json": _format_json(record), "comparison.html": html}
    return records, compared, {**files, **texts}


def _format_json(record: object) -> str:
    from pydantic_core import to_json

    return f"{to_json(record, inf_nan_mode='null').decode()}\n"
