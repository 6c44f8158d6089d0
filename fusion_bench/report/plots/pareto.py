"""The Pareto front: quality against rerank effort, one panel a known kind of effort."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

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
#: Characters of all tick labels at most.
MAX_TICK_LENGTH = 22


@base.tuning_plot("front", position=8)
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
    efforts = [key for key in EFFORT_LABELS if key == "candidates" or _is_complete(front, key)]
    with base.plot_style():
        drawing = base.create_drawing(base.WIDTH, 4.0)
        panels = drawing.subplots(1, len(efforts), sharey=True, squeeze=False)[0]
        for axes, effort in zip(panels, efforts, strict=True):
            _draw_panel(axes, front, effort)
            axes.set_xlabel(EFFORT_LABELS[effort])
        panels[0].set_ylabel(base.plot_text(report.measure))
        legend = panels[0].get_legend_handles_labels()
        drawing.legend(*legend, loc="outside lower center", ncols=4, frameon=False)
    return drawing


def _is_complete(front: ParetoFront, effort: str) -> bool:
    return all(is_known(getattr(point, effort)) for point in front.points)


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
        axes.plot(_efforts(others, effort), _values(others), mark, color=color, ms=3, alpha=0.5)
        axes.plot(
            _efforts(efficient, effort), _values(efficient), mark, color=color, ms=5, label=label
        )
        if is_separate:
            joined = [point for point in front.efficient_points if point.reranker in {name, None}]
            _join_points(axes, joined, effort, color)
    if not is_separate:
        _join_points(axes, front.efficient_points, effort, base.BLUE)
    _mark_points(axes, front.points, effort)
    _set_effort_scale(axes, _efforts(front.points, effort))


def _join_points(axes: Axes, points: Sequence[ParetoPoint], effort: str, color: str) -> None:
    """A front, and the same systems on held-out queries."""
    ordered = sorted(points, key=lambda point: (getattr(point, effort), point.value))
    x, held_out = _efforts(ordered, effort), [point.held_out for point in ordered]
    labels: tuple[str | None, str | None] = ("front, tuning queries", "the same, held out")
    if labels[0] in axes.get_legend_handles_labels()[1]:
        labels = (None, None)
    axes.step(x, _values(ordered), where="post", color=color, lw=1.2, label=labels[0])
    axes.plot(x, held_out, "^-", color=base.GREEN, ms=4, lw=0.7, label=labels[1])


def _mark_points(axes: Axes, points: Sequence[ParetoPoint], effort: str) -> None:
    """The default and the choice, by their values on the tuning queries."""
    for role in ("default", "chosen"):
        marked_points = [point for point in points if role in point.roles]
        mark, color = MARKS[role]
        x, y = _efforts(marked_points, effort), _values(marked_points)
        axes.plot(x, y, mark, color=color, mfc="none", mew=1.5, ms=10, label=role)


def _set_effort_scale(axes: Axes, efforts: Sequence[float]) -> None:
    """Linear up to the smallest effort above 0, logarithmic beyond."""
    positive = [effort for effort in efforts if effort > 0]
    for line in axes.lines:
        line.set_clip_on(False)
    if not positive or max(positive) < LINEAR_FACTOR * min(positive):
        axes.set_xlim(left=0)
        return
    axes.set_xscale("symlog", linthresh=min(positive), linscale=0.5)
    axes.set_xlim(0, max(positive) * 1.25)
    ticks = [0.0, *_log_ticks(min(positive), max(positive))]
    axes.set_xticks(ticks, [f"{tick:.6g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … between two numbers; only powers of ten where those are too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= 1.1 * high]
        if sum(len(f"{tick:.6g}") + 1 for tick in ticks) <= MAX_TICK_LENGTH:
            break
    return ticks


def _efforts(points: Sequence[ParetoPoint], effort: str) -> list[float]:
    return [float(getattr(point, effort)) for point in points]


def _values(points: Sequence[ParetoPoint]) -> list[float]:
    return [point.value for point in points]
