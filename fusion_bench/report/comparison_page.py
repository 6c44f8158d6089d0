"""Comparisons of systems of finished reports as a page."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.evaluation.compare_systems import CollectionComparison
from fusion_bench.report.page import Column, Page, Row, Section, Table
from fusion_bench.util.formatting import format_coverage, pluralize


def build_comparison_page(collections: Sequence[CollectionComparison]) -> Page:
    """A table a collection: difference, interval, p and wins of every system."""
    return Page("Comparison", tuple(Section(parts=(_build_table(item),)) for item in collections))


def _build_table(item: CollectionComparison) -> Table:
    columns = (
        Column("measure", is_text=True),
        Column("system", is_text=True),
        *map(
            Column, ("mean", "difference", f"{format_coverage(item.alpha)} interval", "p", "W/T/L")
        ),
    )
    family = sum(comparison.p_holm is not None for comparison in item.comparisons)
    rows = []
    for comparison in item.comparisons:
        p, note = comparison.p_holm, f"Holm over {family}"
        if p is None:
            p, note = comparison.p, "unadjusted"
        cells = (
            *(comparison.measure, comparison.candidate, f"{comparison.candidate_mean:.4f}"),
            *(f"{comparison.difference:+.4f}", f"[{comparison.low:+.4f}, {comparison.high:+.4f}]"),
            *(f"{p:.4f} ({note})", f"{comparison.wins}/{comparison.ties}/{comparison.losses}"),
        )
        rows.append(Row(cells))
    queries, baseline = pluralize(item.queries, "query"), item.comparisons[0].baseline
    title = f"{item.collection}: {queries}, against {baseline}"
    return Table(title, columns, tuple(rows))
