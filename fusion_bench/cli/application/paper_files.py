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


def paper_files(options: PaperOptions, stem: str, report: Report) -> dict[str, str]:
    """File name → text of the tables of an evaluation that options ask for.

    Args:
        options: Of the command.
        stem: What the file names begin with.
        report: What was found.
    """
    files: dict[str, str] = {}
    if options.latex:
        from fusion_bench.report.paper_table import render_paper_tables

        text = render_paper_tables(report, columns=options.columns, letters=options.letters)
        files[f"{stem}.tex"] = text
    if options.csv:
        from fusion_bench.report.record_rows import csv_files, report_rows

        files |= csv_files(stem, report_rows(report), options.csv)
    return files


def comparison_files(
    options: PaperOptions,
    reports: Sequence[Report],
    compared: Sequence[CollectionComparison],
    *,
    baseline: str | None,
    candidates: Sequence[str],
) -> dict[str, str]:
    """The same of systems of one or two reports against one of them."""
    from fusion_bench.evaluation.compared_reports import plan_comparison

    files: dict[str, str] = {}
    if options.latex:
        from fusion_bench.report.paper_table import render_paper_tables

        files["comparison.tex"] = render_paper_tables(
            *reports,
            baseline=baseline,
            candidates=candidates,
            columns=options.columns,
            letters=options.letters,
        )
    if options.csv:
        from fusion_bench.report.record_rows import comparison_rows, csv_files

        plans = plan_comparison(*reports, baseline=baseline, candidates=candidates)
        files |= csv_files("comparison", comparison_rows(plans, compared), options.csv)
    return files
