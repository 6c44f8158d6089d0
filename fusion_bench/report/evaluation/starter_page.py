"""The page of ``try``: what can be seen at all, one table, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.evaluation_page import build_page
from fusion_bench.report.evaluation.findings import compared_findings
from fusion_bench.report.evaluation.tables import judged_notes, primary_table
from fusion_bench.report.lint_page import lint_section
from fusion_bench.report.page import Finding, Page, Section, Table
from fusion_bench.util.formatting import format_number, pluralize


def build_starter_page(report: Report, notes: Sequence[str]) -> Page:
    """The page of a starter comparison.

    Args:
        report: With one collection.
        notes: What the systems' names stand for, what was guessed, what was left out.
    """
    (collection,) = report.collections
    full_page = build_page(report)
    systems = Section(
        title=f"{collection.name}: {pluralize(len(collection.queries), 'query')}",
        findings=(
            Finding(describe_power(report, collection), key="power"),
            *compared_findings(collection),
        ),
        parts=(_systems_table(report, collection, notes),),
    )
    warnings = Section(findings=tuple(data_warnings(report, collection)))
    title = f"Starter systems against {collection.baseline}"
    return Page(
        title,
        (*lint_section(report.lint), systems, warnings),
        full_page.headline,
        full_page.provenance,
    )


def describe_power(report: Report, collection: Collection) -> str:
    """Which differences the queries suffice to see, by the rule of the table."""
    primary, queries = collection.primary_measure, pluralize(len(collection.queries), "query")
    known = [
        comparison.min_detectable_difference
        for comparison in collection.ranked_comparisons
        if comparison.min_detectable_difference is not None
    ]
    if not known:
        return f"With {queries} no difference can be shown: too few queries changed."
    middle, least, most = map(format_number, (median(known), min(known), max(known)))
    return (
        f"With {queries} you can see differences of ≥ {middle} in {primary}: the median minimum "
        f"detectable difference (80 % power, all comparisons together at level {report.alpha:g}; "
        f"{least} to {most} by system)."
    )


def _systems_table(report: Report, collection: Collection, notes: Sequence[str]) -> Table:
    """The primary measure of the systems alone, with what their names stand for."""
    table = primary_table(report, collection)
    rows = tuple(row for row in table.rows if row.tone != "reference")
    return replace(table, rows=rows, notes=(table.notes[0], *judged_notes(collection), *notes))
