"""Differences from the baseline query by query, one panel a system."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.report.page import Figure
from fusion_bench.report.plots.means import format_title
from fusion_bench.stats.compare_family import MIN_GAIN
from fusion_bench.util.formatting import format_number

MAX_PANELS = 6


@base.register_plot("differences", "evaluation", position=2)
def difference_figures(report: Report, collection: Collection) -> Iterator[Figure]:
    """Differences on the primary measure, where there are any."""
    if collection.comparisons:
        file = f"{collection.primary_measure}-differences.png"
        title = f"{collection.primary_measure} on {collection.name}, differences per query"
        yield Figure(file, title, "", partial(draw_differences, collection, report.min_gain))


def draw_differences(collection: Collection, min_gain: float = MIN_GAIN) -> Drawing:
    """Per query: system - baseline on the primary measure, sorted; one panel a system.

    Shows the best few systems by mean.

    Args:
        collection: The results.
        min_gain: A smaller difference is not worth a change.
    """
    others = [row.name for row in collection.ranked_systems if row.name != collection.baseline]
    names = others[:MAX_PANELS]
    title = (
        f"{format_title(collection, collection.primary_measure)}\n"
        f"per query: system - {base.plot_text(collection.baseline)} (the baseline)"
    )
    with base.open_drawing(2.3, len(names), margin=1.2, sharey=True) as (drawing, panels):
        for axes, name in zip(panels, names, strict=True):
            _draw_panel(axes, collection, name, min_gain)
        drawing.supylabel(f"difference in {base.plot_text(collection.primary_measure)}")
        drawing.supxlabel("queries, sorted by their difference")
        drawing.suptitle(title)
    return drawing


def _draw_panel(axes: Axes, collection: Collection, name: str, min_gain: float) -> None:
    primary = collection.primary_measure
    rows = (collection.system(name), collection.system(collection.baseline))
    values = [np.array(row.measures[primary].values, dtype=np.float64) for row in rows]
    difference = values[0] - values[1]
    difference = difference[np.isfinite(difference)]
    base.draw_sorted_differences(axes, difference)
    last = max(1, len(difference))
    axes.set_xlim(0, last)
    axes.set_xticks([0, last // 2, last] if last > 1 else [0, 1])
    # The last one of a panel would run into the first of its neighbor.
    axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.set_title(base.plot_text(name, 32))
    comparison = collection.comparison(name, primary)
    if comparison is not None:
        axes.axhline(comparison.difference, color=base.INK, lw=1.1, ls="--")
        mean = format_number(comparison.difference, signed=True)
        counts = f"{comparison.wins:,}/{comparison.ties:,}/{comparison.losses:,}"
        answer = format_answer(comparison.answer, min_gain)
        text = f"mean (dashed) {mean}\n{answer}\nwins/ties/losses {counts}"
        axes.text(0.97, 0.95, text, transform=axes.transAxes, ha="right", va="top", fontsize=8)
