"""The Pareto front: quality against rerank effort, one panel a known kind of effort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import NullLocator, StrMethodFormatter, SymmetricalLogLocator

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import MARKS, format_tuning_title
from fusion_bench.report.tuning.pareto_findings import pareto_texts
from fusion_bench.report.tuning_records.pareto_front import ParetoFront
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import is_known

#: Kinds of effort, and their axis labels.
EFFORT_LABELS = {
    "candidates": "candidates reranked per query",
    "cost": "cost of 1,000 queries",
    "seconds": "seconds per query",
}
#: By reranker: color, mark.
RERANKER_MARKS = ((base.BLUE, "o"), (base.ORANGE, "D"), (base.RED, "v"), (base.GRAY, "X"))
#: Efforts further apart than this factor get a logarithmic axis.
LINEAR_FACTOR = 4
#: Closer than this factor, ticks stand at 1, 2 and 5, not only at powers of ten.
SHORT_FACTOR = 15


@base.register_plot("front", "tuning", position=8)
def pareto_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where a front was searched for."""
    front = report.front
    if front is None:
        return
    caption = (
        "Better points are left and high: more quality for less effort. Where the line is flat, "
        "more effort buys nothing. The front was found on the tuning queries; the triangles are "
        f"the same systems on held-out queries. {' '.join(pareto_texts(report, front))}"
    )
    draw = partial(draw_pareto_front, report, front)
    yield Figure("front.png", "Quality against effort", caption, draw)


def draw_pareto_front(report: TuningReport, front: ParetoFront) -> Drawing:
    """All points, the efficient ones joined, and their values on held-out queries."""
    efforts = [
        key
        for key in EFFORT_LABELS
        if key == "candidates" or all(is_known(getattr(point, key)) for point in front.points)
    ]
    with base.open_drawing(4.0, len(efforts), sharey=True) as (drawing, panels):
        for axes, effort in zip(panels, efforts, strict=True):
            _draw_panel(axes, front, effort)
            axes.set_xlabel(EFFORT_LABELS[effort])
        panels[0].set_ylabel(base.plot_text(report.measure))
        drawing.suptitle(format_tuning_title(report, "Quality against effort"))
    return drawing


def _draw_panel(axes: Axes, front: ParetoFront, effort: str) -> None:
    points = sorted(front.points, key=lambda point: (getattr(point, effort), point.value))
    keys = (effort, "value", "held_out")
    table = np.array([[getattr(point, key) for key in keys] for point in points], dtype=np.float64)
    x, value, held_out = table.T
    efficient = np.array([point.efficient for point in points])
    names = [source.reranker for source in front.efforts]
    # A candidate of one reranker is not one of another: there each has a line of its own.
    is_separate = effort == "candidates" and len(names) > 1
    for i, name in enumerate(names):
        color, mark = RERANKER_MARKS[i % len(RERANKER_MARKS)]
        label = base.plot_text(name, 32) if len(names) > 1 else None
        joined = efficient & np.array([point.reranker in {name, None} for point in points])
        shown = np.array([point.reranker in {name, None if i == 0 else name} for point in points])
        where = shown & ~efficient
        axes.plot(x[where], value[where], mark, color=color, ms=3, alpha=0.5)
        where = shown & efficient
        axes.plot(x[where], value[where], mark, color=color, ms=5, label=label)
        if is_separate or i == 0:
            where = joined if is_separate else efficient
            label = "front, tuning queries"
            axes.step(x[where], value[where], where="post", color=color, lw=1.2, label=label)
            label = "the same, held out"
            axes.plot(x[where], held_out[where], "^-", color=base.GREEN, ms=4, lw=0.7, label=label)
    for role in ("default", "chosen"):
        mark, color = MARKS[role]
        where = np.array([role in point.roles for point in points])
        axes.plot(x[where], value[where], mark, color=color, mfc="none", mew=1.5, ms=10, label=role)
    _set_effort_scale(axes, x.tolist())


def _set_effort_scale(axes: Axes, efforts: Sequence[float]) -> None:
    """Linear up to the smallest effort above 0, logarithmic beyond."""
    positive = [effort for effort in efforts if effort > 0]
    for line in axes.lines:
        line.set_clip_on(False)
    if not positive or max(positive) < LINEAR_FACTOR * min(positive):
        axes.set_xlim(left=0)
        return
    low, high = min(positive), max(positive)
    axes.set_xscale("symlog", linthresh=low, linscale=0.5)
    axes.set_xlim(0, high * 1.25)
    subs = (1, 2, 5) if high < SHORT_FACTOR * low else (1,)
    axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=low, subs=subs))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.6g}"))
    axes.xaxis.set_minor_locator(NullLocator())
