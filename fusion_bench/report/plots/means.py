"""Means with intervals, one figure a measure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.evaluation.report_records.scope import format_scope
from fusion_bench.report.page import Figure
from fusion_bench.stats.answers import BETTER, NOT_SHOWN, WORSE
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
        low, mean, high = np.array(ends, dtype=np.float64).T
        for mark, (shape, color, face, label) in MARKS.items():
            (y,) = np.nonzero(marks == mark)
            if len(y):
                axes.hlines(y, low[y], high[y], color=color, lw=1.6, alpha=0.8)
                axes.plot(mean[y], y, shape, ms=6, color=color, mfc=face, label=label)
        axes.set_yticks(range(len(rows)), [base.plot_text(row.name) for row in rows])
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.tick_params(left=False)
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(rows)), [format_number(result.mean) for result in results])
        right.tick_params(right=False)
        right.spines["right"].set_visible(False)
        _draw_references(axes, collection, measure)
        interval = f"mean and {format_coverage(alpha)} interval of each system"
        axes.set_xlabel(f"{name}: {interval}\n{note}")
        drawing.suptitle(format_title(collection, measure))
    return drawing


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
    return "not shown" if answer in (*NOT_SHOWN, "identical") else answer


def _draw_references(axes: Axes, collection: Collection, measure: str) -> None:
    """Baseline, floor and ceilings as lines.

    One that is far away is only named, so that the systems can be told apart.
    """
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
