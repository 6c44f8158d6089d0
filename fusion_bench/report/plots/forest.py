"""Paired differences from the baseline with their intervals: what the verdicts rest on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.report.page import Figure
from fusion_bench.report.plots.means import MARKS, ROW_HEIGHT, find_mark, format_title
from fusion_bench.util.formatting import format_coverage, format_number


@base.register_plot("forest", "evaluation", position=0)
def forest_figures(report: Report, collection: Collection) -> Iterator[Figure]:
    """The figure, where systems are compared."""
    if not collection.comparisons:
        return
    primary, baseline = collection.primary_measure, collection.baseline
    title = f"{primary} on {collection.name}: paired differences from {baseline}"
    held = "all hold together" if report.correction == "max_t" else "each holds alone"
    caption = (
        f"Each mark is the mean difference from the baseline {baseline} with its "
        f"{format_coverage(report.alpha)} interval; {held}. The "
        "gray bars are the differences too small to be detected with 80 % power."
    )
    draw = partial(draw_forest, collection, alpha=report.alpha)
    yield Figure(f"{primary}-forest.png", title, caption, draw)


def draw_forest(collection: Collection, *, alpha: float = 0.05) -> Drawing:
    """Differences on the primary measure, best system first, over what can be detected.

    Args:
        collection: The results, with a comparison or more.
        alpha: 1 - coverage of the intervals.
    """
    primary = collection.primary_measure
    pairs = [(row, collection.comparison(row.name, primary)) for row in collection.ranked_systems]
    rows = [(row, item) for row, item in pairs if item is not None][::-1]  # as y grows upwards
    comparisons = [item for _, item in rows]
    marks = np.array([find_mark(collection, primary, row) for row, _ in rows])
    height = 2.2 + ROW_HEIGHT * len(rows) + 0.1 * len(set(marks))
    with base.open_drawing(height, legend_columns=2) as (drawing, [axes]):
        _draw_detectable(axes, comparisons)
        ends = [(item.low, item.difference, item.high) for item in comparisons]
        low, mean, high = np.array(ends, dtype=np.float64).T
        for mark, (shape, color, face, label) in MARKS.items():
            (y,) = np.nonzero(marks == mark)
            if len(y):
                axes.hlines(y, low[y], high[y], color=color, lw=1.8)
                axes.plot(mean[y], y, shape, ms=6, color=color, mfc=face, label=label)
        axes.axvline(0, color=base.INK, lw=0.9)
        _label_rows(axes, [row.name for row, _ in rows], comparisons)
        name = f"{base.plot_text(primary)}: system - {base.plot_text(collection.baseline)}"
        axes.set_xlabel(f"{name} (the baseline), mean and {format_coverage(alpha)} interval")
        drawing.suptitle(f"Differences in {format_title(collection, primary)}")
    return drawing


def _draw_detectable(axes: Axes, comparisons: list[ComparisonResult]) -> None:
    """A bar a row around 0: the differences below the minimum detectable one."""
    detectable = [item.min_detectable_difference or 0.0 for item in comparisons]
    if any(detectable):
        axes.barh(
            range(len(detectable)),
            [2 * value for value in detectable],
            left=[-value for value in detectable],
            height=0.74,
            color="#dcdcdc",
            label="below the minimum detectable difference (80 % power)",
        )


def _label_rows(axes: Axes, names: list[str], comparisons: list[ComparisonResult]) -> None:
    """System names on the left, differences on the right."""
    positions = range(len(names))
    axes.set_yticks(positions, [base.plot_text(name) for name in names])
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.tick_params(left=False)
    right = axes.secondary_yaxis("right")
    texts = [format_number(item.difference, signed=True) for item in comparisons]
    right.set_yticks(positions, texts)
    right.tick_params(right=False)
    right.spines["right"].set_visible(False)
