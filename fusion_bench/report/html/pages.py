"""The page of each record for a browser."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.evaluation.evaluation_page import build_page
from fusion_bench.report.html.evaluation_data import evaluation_data, evaluation_number
from fusion_bench.report.html.render import render_html


def evaluation_html(report: Report) -> str:
    """The page of an evaluation; its views take the place of the figures."""
    page = build_page(report)
    return render_html(page, evaluation_data(report), number=evaluation_number(report))
