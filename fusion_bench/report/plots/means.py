"""Means with intervals, one figure a measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.report_records import Collection, Report, SystemResult
from fusion_bench.report.page import Figure
from fusion_bench.util.formatting import format_coverage, format_number

#: By verdict: marker, color, filled, legend.
MARKS: dict[str, tuple[str, str, bool, str]] = {
    "baseline": ("s", base.INK, True, "baseline"),
    "better": ("^", base.BLUE, True, "better than the baseline (Holm)"),
    "worse": ("v", base.RED, True, "worse (Holm)"),
    "no difference shown": ("o", base.GRAY, True, "no difference shown"),
    "identical": ("o", base.GRAY, True, "no difference shown"),
    "no verdict": ("o", base.GRAY, False, "no verdict: judged only, the sign differs"),
    "": ("o", base.GRAY, True, "not adjusted: no verdict"),
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


@base.evaluation_plot("means", position=1)
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
    marks = [_mark(collection, measure, row) for row in rows]
    with base.plot_style():
        drawing = base.create_drawing(
            base.WIDTH, 2.1 + ROW_HEIGHT * len(rows) + 0.1 * len(set(marks))
        )
        axes = drawing.add_subplot()
        for y, (row, mark) in enumerate(zip(rows, marks, strict=True)):
            _draw_mean(axes, row, measure, y, mark)
        _label_rows(axes, rows, measure)
        labels = {MARKS[mark][3]: _legend_mark(mark) for mark in MARKS if mark in marks}
        handles = [*labels.values(), *_draw_references(axes, collection, measure)]
        drawing.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
        axes.set_xlabel(
            f"{base.plot_text(measure)}: mean and {format_coverage(alpha)} interval of each "
            "system\n"
            f"{_caption(collection, measure)}"
        )
        drawing.suptitle(format_title(collection, measure), fontsize=11, fontweight="bold")
    return drawing


def format_title(collection: Collection, measure: str) -> str:
    """``nDCG@10 on name, split test: 30 queries``."""
    scope = "" if collection.split is None else f", split {base.plot_text(collection.split, 14)}"
    if collection.query_type is not None:
        scope += f", type {base.plot_text(collection.query_type, 14)}"
    name = base.plot_text(collection.name, 30)
    return f"{base.plot_text(measure)} on {name}{scope}: {len(collection.queries):,} queries"


def _caption(collection: Collection, measure: str) -> str:
    if measure == collection.primary_measure:
        return "colors show the paired test, which can tell systems whose intervals overlap"
    return f"sorted by {base.plot_text(collection.primary_measure)}, as in the tables"


def _mark(collection: Collection, measure: str, row: SystemResult) -> str:
    if row.name == collection.baseline:
        return "baseline"
    comparison = collection.comparison(row.name, measure)
    return "" if comparison is None else comparison.answer or ""


def _to_float(value: float | None) -> float:
    return math.nan if value is None else value


def _draw_mean(axes: Axes, row: SystemResult, measure: str, y: int, mark: str) -> None:
    result = row.measures[measure]
    shape, color, is_filled, _ = MARKS[mark]
    ends = [_to_float(result.low), _to_float(result.high)]
    axes.plot(ends, [y, y], color=color, lw=1.6, zorder=2, alpha=0.8)
    face = color if is_filled else "white"
    axes.plot([_to_float(result.mean)], [y], shape, ms=6, color=color, mfc=face)


def _legend_mark(mark: str) -> Line2D:
    shape, color, is_filled, label = MARKS[mark]
    face = color if is_filled else "white"
    return Line2D([], [], marker=shape, color=color, mfc=face, lw=1.6, label=label)


def _label_rows(axes: Axes, rows: Sequence[SystemResult], measure: str) -> None:
    """Names on the left, means on the right."""
    axes.set_yticks(range(len(rows)), [base.plot_text(row.name) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.tick_params(left=False)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), [format_number(row.measures[measure].mean) for row in rows])
    right.tick_params(right=False)
    right.spines["right"].set_visible(False)


def _draw_references(axes: Axes, collection: Collection, measure: str) -> list[Line2D]:
    """Baseline, floor and ceilings as lines, with their legend entries.

    One that is far away is only named, so that the systems can be told apart.
    """
    baseline = collection.system(collection.baseline)
    low, high = axes.get_xlim()
    handles = []
    references = (baseline, *collection.reference_rows)
    for row, (dashes, color) in zip(references, REFERENCE_LINES, strict=False):
        mean = _to_float(row.measures[measure].mean)
        is_near = low - (high - low) <= mean <= high + MAX_STRETCH * (high - low)
        if is_near:
            axes.axvline(mean, ls=dashes, color=color, lw=1.3, zorder=1)
        prefix, suffix = (
            "baseline " if row is baseline else "",
            "" if is_near else " (off the axis)",
        )
        label = f"{prefix}{base.plot_text(row.name)} {format_number(mean)}{suffix}"
        handles.append(Line2D([], [], ls=dashes, color=color, lw=1.3, label=label))
    return handles
