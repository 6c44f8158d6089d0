"""The page of each record for a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_bench.evaluation.details.records import ReportDetails
from fusion_bench.evaluation.report_changes.find_changes import find_changes
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.changes.change_page import mount_views
from fusion_bench.report.changes.verdict_text import change_number
from fusion_bench.report.evaluation.change_section import change_section
from fusion_bench.report.evaluation.evaluation_page import build_page
from fusion_bench.report.html.change_data import change_data
from fusion_bench.report.html.evaluation_data import evaluation_data, evaluation_number
from fusion_bench.report.html.render import render_html
from fusion_bench.report.page import Page, Section
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number


def evaluation_html(
    report: Report, details: ReportDetails | None = None, last: Report | None = None
) -> str:
    """The page of an evaluation; its views take the place of the figures.

    Args:
        report: What it shows.
        details: Documents, terms and sources; None = its views leave them out.
        last: The report that this one replaces; None = there is none.
    """
    page = build_page(report)
    change = None if last is None else find_changes(last, report)
    if change is not None:
        section = change_section(change, report.min_gain)
        shown = sum(not section.is_folded for section in page.sections)
        page = replace(page, sections=(*page.sections[:shown], section, *page.sections[shown:]))
    data = evaluation_data(report, details, change)
    return render_html(page, data, number=evaluation_number(report))


def change_html(
    change: ReportChange, old: Report, new: Report, *, page: Page, tables: Sequence[Section] = ()
) -> str:
    """The page of two reports.

    Args:
        change: From the old to the new one, with its paired comparisons.
        old: The report before.
        new: The report now.
        page: From ``build_change_page``.
        tables: Sections to add at its end, such as systems against one baseline.
    """
    page = mount_views(page, change)
    page = replace(page, sections=(*page.sections, *tables))
    return render_html(page, change_data(change, old, new), number=change_number(change))


def tuning_html(report: TuningReport, page: Page, figures: Mapping[str, bytes]) -> str:
    """The page of a tuning run.

    Args:
        report: Whose held-out gain is the number of the page.
        page: What it says.
        figures: File name → contents of its figures.
    """
    gain = format_number(report.held_out.difference, signed=True)
    return render_html(page, number=f"{report.measure} {gain} held out", figures=figures)
