"""Files of an evaluation for a paper or a spreadsheet: what options ask for, as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import fusion_bench.cli.application.commands as base
from fusion_bench.config.options import PaperOptions

if TYPE_CHECKING:
    from fusion_bench.evaluation.compared_reports import CollectionComparison
    from fusion_bench.evaluation.report_file import Report


def check_paper_options(options: PaperOptions, measures: Sequence[str] | None) -> None:
    """Refuse options that have no effect, and unknown measures, before any file is read.

    Args:
        options: Of the command.
        measures: What is asked for, as a user writes it; None = known from a report alone.

    Raises:
        typer.BadParameter: Columns of no table.
        ConfigError: No such measure or column.
    """
    from fusion_bench.measures import parse_measure

    if not options.latex:
        base.refuse(options, "does not go without --latex", "columns", "letters")
    names = [parse_measure(name).name for name in measures or ()]
    if options.columns and names:
        from fusion_bench.report.paper_table import find_columns

        find_columns(options.columns, names)


def paper_files(
    options: PaperOptions,
    stem: str,
    *reports: Report,
    compared: Sequence[CollectionComparison] | None = None,
) -> dict[str, str]:
    """File name → text of the tables that options ask for.

    Args:
        options: Of the command; its baseline and candidates choose systems.
        stem: What the file names begin with.
        reports: What was found: one, or two to compare.
        compared: Their comparison; None = the first report as it is.
    """
    files: dict[str, str] = {}
    if options.latex:
        from fusion_bench.report.paper_table import render_paper_tables

        files[f"{stem}.tex"] = options.call(render_paper_tables, *reports)
    if options.csv:
        from fusion_bench.evaluation.compared_reports import plan_comparison
        from fusion_bench.report.record_rows import comparison_rows, csv_files, report_rows

        if compared is None:
            rows = report_rows(reports[0])
        else:
            rows = comparison_rows(options.call(plan_comparison, *reports), compared)
        files |= csv_files(stem, rows, options.csv)
    return files
