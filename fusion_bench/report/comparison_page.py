"""Comparisons of systems of finished reports as a page."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.evaluation.compare_systems import CollectionComparison
from fusion_bench.report.page import Column, Page, Row, Section, Table
from fusion_bench.stats.comparison import Comparison
from fusion_bench.util.formatting import pluralize


def build_comparison_page(collections: Sequence[CollectionComparison]) -> Page:
    """A table a collection: difference, interval, p and wins of every system."""
    return Page("Comparison", tuple(Section(parts=(_build_table(item),)) for item in collections))


def _build_table(item: CollectionComparison) -> Table:
    interval = f"{100 * (1 - item.alpha):g} % interval"
    columns = (
        Column("measure", is_text=True),
        Column("system", is_text=True),
        *map(Column, ("mean", "difference", interval, "p", "W/T/L")),
    )
    family = sum(comparison.p_holm is not None for comparison in item.comparisons)
    baseline = item.comparisons[0].baseline
    return Table(
        f"{item.collection}: {pluralize(item.queries, 'query')}, against {baseline}",
        columns,
        tuple(_build_row(comparison, family) for comparison in item.comparisons),
    )


def _build_row(item: Comparison, family: int) -> Row:
    if item.p_holm is None:
        p = f"{item.p:.4f} (unadjusted)"
    else:
        p = f"{item.p_holm:.4f} (Holm over {family})"
    return Row(
        (
            item.measure,
            item.candidate,
            f"{item.candidate_mean:.4f}",
            f"{item.difference:+.4f}",
            f"[{item.low:+.4f}, {item.high:+.4f}]",
            p,
            f"{item.wins}/{item.ties}/{item.losses}",
        )
    )
