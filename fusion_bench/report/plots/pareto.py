"""The Pareto front: quality against rerank effort, one panel a known kind of effort."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import NullLocator

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import MARKS
from fusion_bench.report.tuning.pareto_findings import pareto_texts
from fusion_bench.report.tuning_records import ParetoFront, ParetoPoint, TuningReport
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
#: About so many powers of ten get a tick.
MAX_DECADES = 4


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
    return drawing


def _draw_panel(axes: Axes, front: ParetoFront, effort: str) -> None:
    names = [source.reranker for source in front.efforts]
    # A candidate of one reranker is not one of another: there each has a line of its own.
    is_separate = effort == "candidates" and len(names) > 1
    for i, name in enumerate(names):
        color, mark = RERANKER_MARKS[i % len(RERANKER_MARKS)]
        rerankers = {name, None} if i == 0 else {name}
        points = [point for point in front.points if point.reranker in rerankers]
        others = [point for point in points if not point.efficient]
        efficient = [point for point in points if point.efficient]
        label = base.plot_text(name, 32) if len(names) > 1 else None
        _plot_points(axes, effort, others, mark, color=color, ms=3, alpha=0.5)
        _plot_points(axes, effort, efficient, mark, color=color, ms=5, label=label)
        if is_separate:
            joined = [point for point in front.efficient_points if point.reranker in {name, None}]
            _join_points(axes, joined, effort, color)
    if not is_separate:
        _join_points(axes, front.efficient_points, effort, base.BLUE)
    for role in ("default", "chosen"):
        mark, color = MARKS[role]
        points = [point for point in front.points if role in point.roles]
        style = {"color": color, "mfc": "none", "mew": 1.5, "ms": 10, "label": role}
        _plot_points(axes, effort, points, mark, **style)
    _set_effort_scale(axes, [float(getattr(point, effort)) for point in front.points])


def _plot_points(
    axes: Axes,
    effort: str,
    points: Sequence[ParetoPoint],
    mark: str,
    **style: Any,  # noqa: ANN401 - as Matplotlib takes them
) -> None:
    x = [float(getattr(point, effort)) for point in points]
    axes.plot(x, [point.value for point in points], mark, **style)


def _join_points(axes: Axes, points: Sequence[ParetoPoint], effort: str, color: str) -> None:
    """A front, and the same systems on held-out queries."""
    ordered = sorted(points, key=lambda point: (getattr(point, effort), point.value))
    style: dict[str, Any] = {"ds": "steps-post", "lw": 1.2, "label": "front, tuning queries"}
    _plot_points(axes, effort, ordered, "-", color=color, **style)
    x = [float(getattr(point, effort)) for point in ordered]
    held_out = [point.held_out for point in ordered]
    axes.plot(x, held_out, "^-", color=base.GREEN, ms=4, lw=0.7, label="the same, held out")


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
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if high < SHORT_FACTOR * low else (1,)
    decades = range(first, last + 1, max(1, (last - first) // MAX_DECADES))
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    ticks = [0.0, *(tick for tick in ticks if low <= tick <= 1.1 * high)]
    axes.set_xticks(ticks, [f"{tick:.6g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
