"""The page of ``try``: what can be seen at all, one table, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from fusion_bench.evaluation.report_records import Collection, ComparisonResult, Report
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.tables import primary_table
from fusion_bench.report.page import Finding, Page, Section, Table
from fusion_bench.util.formatting import (
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    pluralize,
)


def build_starter_page(report: Report, notes: Sequence[str]) -> Page:
    """The page of a starter comparison.

    Args:
        report: With one collection.
        notes: What the systems' names stand for, what was guessed, what was left out.
    """
    (collection,) = report.collections
    systems = Section(
        title=f"{collection.name}: {pluralize(len(collection.queries), 'query')}",
        findings=(Finding(describe_power(report, collection), key="power"),),
        parts=(_systems_table(report, collection, notes),),
    )
    warnings = Section(findings=tuple(data_warnings(report, collection)))
    return Page(
        f"Starter systems against {collection.baseline}",
        (systems, warnings),
        headline=verdict_finding(report, collection),
    )


def describe_power(report: Report, collection: Collection) -> str:
    """Which differences the queries suffice to see, before any correction."""
    primary, queries = collection.primary_measure, pluralize(len(collection.queries), "query")
    known = [
        comparison.min_detectable_difference
        for comparison in _primary_comparisons(collection)
        if comparison.min_detectable_difference is not None
    ]
    if not known:
        return f"With {queries} you cannot tell which differences are seen: no spread is known."
    middle, least, most = map(format_number, (median(known), min(known), max(known)))
    return (
        f"With {queries} you can see differences of ≥ {middle} in {primary}: the median minimum "
        f"detectable difference (80 % power, level {report.alpha:g}; {least} to {most} by system)."
    )


def _systems_table(report: Report, collection: Collection, notes: Sequence[str]) -> Table:
    """The primary measure of the systems alone, with what their names stand for."""
    table = primary_table(report, collection)
    rows = tuple(row for row in table.rows if row.tone != "reference")
    return replace(table, rows=rows, notes=(table.notes[0], *notes))


def verdict_finding(report: Report, collection: Collection) -> Finding:
    """The best system against the baseline, in a sentence to hand on."""
    comparisons = _primary_comparisons(collection)
    better = next((c for c in comparisons if c.answer == "better"), None)
    if better is not None:
        text = (
            f"{better.candidate} is better than {better.baseline}: "
            f"{_describe(report, collection, better)}."
        )
        return Finding(text, "better", "decision")
    top = comparisons[0]
    text = f"No system is shown to be better than {collection.baseline}: keep it."
    if top.difference > 0:
        evidence = _describe(report, collection, top)
        text += f" Highest mean: {top.candidate}, {evidence}; {top.answer}."
    return Finding(text, "plain", "decision")


def _primary_comparisons(collection: Collection) -> list[ComparisonResult]:
    """Of the primary measure, the highest mean first."""
    primary = collection.primary_measure
    pairs = (collection.comparison(row.name, primary) for row in collection.ranked_systems)
    return [comparison for comparison in pairs if comparison is not None]


def _describe(report: Report, collection: Collection, comparison: ComparisonResult) -> str:
    """``nDCG@10 0.6063 against 0.5145 (+17.8 %; …)``, with the queries won and lost."""
    names = (comparison.candidate, comparison.baseline)
    means = [collection.system(name).measures[comparison.measure].mean for name in names]
    mean, base = means
    share = "" if not base else f"{_signed_percent(comparison.difference / base)}; "
    interval = format_interval(comparison.low, comparison.high, signed=True)
    p = format_p_value(comparison.p_holm, alpha=report.alpha)
    return (
        f"{comparison.measure} {format_number(mean)} against {format_number(base)} ({share}"
        f"difference {format_number(comparison.difference, signed=True)} {interval}, adjusted p "
        f"{p}; {pluralize(comparison.wins, 'query')} better, {comparison.losses:,} worse of "
        f"{len(collection.queries):,})"
    )


def _signed_percent(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{format_percent(abs(value))}"
