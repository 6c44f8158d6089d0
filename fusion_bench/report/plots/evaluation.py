"""Plots of an evaluation: means, differences from the baseline, the same query by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    Collection,
    SystemResult,
    format_scope,
)
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.report.page import Figure
from fusion_bench.stats.comparison import BETTER, WORSE
from fusion_bench.stats.comparison_family import MIN_GAIN
from fusion_bench.util.formatting import format_coverage, format_number

#: By verdict: marker, color, filling, legend.
MARKS: dict[str, tuple[str, str, str, str]] = {
    "baseline": ("s", base.INK, base.INK, "baseline"),
    "better": ("^", base.BLUE, base.BLUE, "better than the baseline"),
    "worse": ("v", base.RED, base.RED, "worse"),
    "equivalent": ("D", base.GREEN, base.GREEN, "equivalent within min_gain"),
    "not shown": ("o", base.GRAY, base.GRAY, "not shown"),
    "unjudged decide": ("o", base.GRAY, "white", "unjudged documents decide"),
    "": ("o", base.GRAY, base.GRAY, "not adjusted: no verdict"),
}
Ends: TypeAlias = tuple[float | None, float | None, float | None]
REFERENCE_LINES: tuple[tuple[Any, str], ...] = (
    ("--", base.INK),
    (":", base.RED),
    ("-.", base.ORANGE),
    ((0, (6, 2, 1, 2, 1, 2)), base.GREEN),
)
ROW_HEIGHT = 0.27
#: A ceiling stays off the axis where it would take more than this many times the systems' range.
MAX_STRETCH = 1.2


@base.register_plot("means", "evaluation", position=1)
def mean_figures(report: Report, collection: Collection) -> Iterator[Figure]:
    """One figure a measure, the primary one first."""
    for measure in collection.measures:
        title = f"{measure} on {collection.name}, by system"
        draw = partial(draw_means, collection, measure, alpha=report.alpha)
        yield Figure(f"{measure}.png", title, "", draw)


def draw_means(collection: Collection, measure: str, *, alpha: float = 0.05) -> Drawing:
    """Means with intervals in the order of the tables, and the reference points as lines.

    Args:
        collection: The results.
        measure: One of its measures. Only on the primary one marks show verdicts.
        alpha: 1 - coverage of the intervals.
    """
    rows = list(collection.ranked_systems)[::-1]  # as y grows upwards
    marks = np.array([find_mark(collection, measure, row) for row in rows])
    height = 2.1 + ROW_HEIGHT * len(rows) + 0.1 * len(set(marks))
    name = base.plot_text(measure)
    if measure == collection.primary_measure:
        note = "colors show the paired test, which can tell systems whose intervals overlap"
    else:
        note = f"sorted by {base.plot_text(collection.primary_measure)}, as in the tables"
    with base.open_drawing(height, legend_columns=2) as (drawing, [axes]):
        results = [row.measures[measure] for row in rows]
        ends = [(result.low, result.mean, result.high) for result in results]
        _draw_marks(axes, marks, ends, lw=1.6, alpha=0.8)
        _label_rows(axes, rows, [format_number(result.mean) for result in results])
        baseline = collection.system(collection.baseline)
        low, high = axes.get_xlim()
        references = (baseline, *collection.reference_rows)
        for row, (dashes, color) in zip(references, REFERENCE_LINES, strict=False):
            mean = row.measures[measure].mean
            prefix = "baseline " if row is baseline else ""
            label = f"{prefix}{base.plot_text(row.name)} {format_number(mean)}"
            style = {"ls": dashes, "color": color, "lw": 1.3, "zorder": 1}
            if mean is not None and low - (high - low) <= mean <= high + MAX_STRETCH * (high - low):
                axes.axvline(mean, label=label, **style)
            else:
                axes.plot([], [], label=f"{label} (off the axis)", **style)
        interval = f"mean and {format_coverage(alpha)} interval of each system"
        axes.set_xlabel(f"{name}: {interval}\n{note}")
        drawing.suptitle(format_title(collection, measure))
    return drawing


def _draw_marks(
    axes: Axes, marks: NDArray[np.str_], ends: Sequence[Ends], lw: float, alpha: float | None = None
) -> None:
    """A mark a row, by its verdict, and its interval.

    Args:
        axes: Where to.
        marks: Shape (rows,), keys of :data:`MARKS`.
        ends: Lower end, mean and upper end of each row.
        lw: Width of the intervals' lines.
        alpha: Their opacity.
    """
    low, mean, high = np.array(ends, dtype=np.float64).T
    for mark, (shape, color, face, label) in MARKS.items():
        (y,) = np.nonzero(marks == mark)
        if len(y):
            axes.hlines(y, low[y], high[y], color=color, lw=lw, alpha=alpha)
            axes.plot(mean[y], y, shape, ms=6, color=color, mfc=face, label=label)


def format_title(collection: Collection, measure: str) -> str:
    """Measure, collection, and which queries."""
    short = partial(base.plot_text, max_length=14)
    scope = format_scope(collection.split, collection.query_type, collection.where, short)
    name = base.plot_text(collection.name, 30)
    return f"{base.plot_text(measure)} on {name}{scope}: {len(collection.queries):,} queries"


def find_mark(collection: Collection, measure: str, row: SystemResult) -> str:
    """The key of a row in :data:`MARKS`: its verdict, or that it is the baseline."""
    if row.name == collection.baseline:
        return "baseline"
    comparison = collection.comparison(row.name, measure)
    answer = "" if comparison is None else comparison.answer or ""
    if answer in BETTER:
        return "better"
    if answer in WORSE:
        return "worse"
    return "not shown" if answer in ("not shown", "identical") else answer


@base.register_plot("forest", "evaluation", position=0)
def forest_figures(report: Report, collection: Collection) -> Iterator[Figure]:
    """The figure, where systems are compared."""
    if not collection.comparisons:
        return
    primary, baseline = collection.primary_measure, collection.baseline
    title = f"{primary} on {collection.name}: paired differences from {baseline}"
    caption = (
        f"Each mark is the mean difference from the baseline {baseline} with its "
        f"{format_coverage(report.alpha)} interval; all hold together. The "
        "gray bars are the differences that are often missed: below 80 % power, about."
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
        detectable = [item.min_detectable_difference or 0.0 for item in comparisons]
        if any(detectable):
            axes.barh(
                range(len(detectable)),
                [2 * value for value in detectable],
                left=[-value for value in detectable],
                height=0.74,
                color="#dcdcdc",
                label="often missed: below 80 % power",
            )
        ends = [(item.low, item.difference, item.high) for item in comparisons]
        _draw_marks(axes, marks, ends, lw=1.8)
        axes.axvline(0, color=base.INK, lw=0.9)
        texts = [format_number(item.difference, signed=True) for item in comparisons]
        _label_rows(axes, [row for row, _ in rows], texts)
        name = f"{base.plot_text(primary)}: system - {base.plot_text(collection.baseline)}"
        axes.set_xlabel(f"{name} (the baseline), mean and {format_coverage(alpha)} interval")
        drawing.suptitle(f"Differences in {format_title(collection, primary)}")
    return drawing


def _label_rows(axes: Axes, rows: list[SystemResult], texts: list[str]) -> None:
    """System names on the left, numbers on the right."""
    axes.set_yticks(range(len(rows)), [base.plot_text(row.name) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.tick_params(left=False)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), texts)
    right.tick_params(right=False)
    right.spines["right"].set_visible(False)


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
                axes.text(
                    0.97, 0.95, text, transform=axes.transAxes, ha="right", va="top", fontsize=8
                )
        drawing.supylabel(f"difference in {base.plot_text(collection.primary_measure)}")
        drawing.supxlabel("queries, sorted by their difference")
        drawing.suptitle(title)
    return drawing
