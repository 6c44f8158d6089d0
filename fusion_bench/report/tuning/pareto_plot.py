"""Quality against rerank effort, drawn: one panel for each kind of effort that is known.

Importing this module imports matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from fusion_bench.report.plots import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    SOFT,
    WIDTH,
    _short,
    new_figure,
    plain,
    styled,
)
from fusion_bench.report.tuning.plot_style import MARKS
from fusion_bench.report.tuning.tuning_records import Front, FrontPoint, TuningReport
from fusion_bench.util.formatting import is_known

__all__ = ["draw"]

#: What is drawn against, and how its axis is called.
PANELS = {
    "candidates": "candidates reranked a query",
    "cost": "cost of 1,000 queries",
    "seconds": "seconds a query",
}
#: One a reranker: line, mark.
LOOKS = ((BLUE, "o"), (ORANGE, "D"), (RED, "v"), (SOFT, "X"))

#: Efforts further apart than this are drawn by their logarithm, with so many characters of ticks.
SPAN, ROOM = 4, 22


def draw(tuning: TuningReport, front: Front) -> Figure:
    """Everything that was found, the efficient points joined, and what they are worth held out."""
    shown = [axis for axis in PANELS if axis == "candidates" or _known(front, axis)]
    with styled():
        figure = new_figure(WIDTH, 4.0)
        panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for axes, axis in zip(panels, shown, strict=True):
            _panel(axes, front, axis)
            axes.set_xlabel(PANELS[axis])
        panels[0].set_ylabel(plain(tuning.measure))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _known(front: Front, axis: str) -> bool:
    return all(is_known(getattr(point, axis)) for point in front.points)


def _panel(axes: Axes, front: Front, axis: str) -> None:
    names = [one.reranker for one in front.efforts]
    # A candidate of one reranker is not one of another: there each has a line of its own.
    apart = axis == "candidates" and len(names) > 1
    for n, name in enumerate(names):
        colour, mark = LOOKS[n % len(LOOKS)]
        own = [p for p in front.points if p.reranker == name or (p.reranker is None and n == 0)]
        rest = [point for point in own if not point.efficient]
        axes.plot(_at(rest, axis), _values(rest), mark, color=colour, ms=3, alpha=0.5)
        on = [point for point in own if point.efficient]
        label = plain(_short(name, 32)) if len(names) > 1 else None
        axes.plot(_at(on, axis), _values(on), mark, color=colour, ms=5, label=label)
        if apart:
            _joined(axes, [p for p in front.efficient if p.reranker in {name, None}], axis, colour)
    if not apart:
        _joined(axes, front.efficient, axis, BLUE)
    _marked(axes, front.points, axis)
    _scale(axes, [float(getattr(point, axis)) for point in front.points])


def _joined(axes: Axes, points: Sequence[FrontPoint], axis: str, colour: str) -> None:
    """A front, and what is left of it on held-out queries."""
    ordered = sorted(points, key=lambda p: (getattr(p, axis), p.value))
    at, held_out = _at(ordered, axis), [point.held_out for point in ordered]
    first = "front, tuning queries" not in axes.get_legend_handles_labels()[1]
    labels = ("front, tuning queries", "the same, held out") if first else (None, None)
    axes.step(at, _values(ordered), where="post", color=colour, lw=1.2, label=labels[0])
    axes.plot(at, held_out, "^-", color=GREEN, ms=4, lw=0.7, label=labels[1])


def _marked(axes: Axes, points: Sequence[FrontPoint], axis: str) -> None:
    """The default and the choice, by their tuning values, as in the other pictures."""
    for role, kind in (("default", "default"), ("chosen", "chosen")):
        own = [point for point in points if role in point.roles]
        mark, colour = MARKS[kind]
        axes.plot(
            _at(own, axis),
            _values(own),
            mark,
            color=colour,
            mfc="none",
            mew=1.5,
            ms=10,
            label=role,
        )


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Zero and small efforts apart: straight up to the smallest, by the logarithm beyond."""
    above = [value for value in values if value > 0]
    for line in axes.lines:
        line.set_clip_on(False)
    if not above or max(above) < SPAN * min(above):
        axes.set_xlim(left=0)
        return
    axes.set_xscale("symlog", linthresh=min(above), linscale=0.5)
    axes.set_xlim(0, max(above) * 1.25)
    ticks = [0.0, *_ticks(min(above), max(above))]
    axes.set_xticks(ticks, [f"{tick:.6g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … between two numbers; only powers of ten where those are too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**decade for decade in decades for step in steps]
        found = [tick for tick in found if low <= tick <= 1.1 * high]
        if sum(len(f"{tick:.6g}") + 1 for tick in found) <= ROOM:
            break
    return found


def _at(points: Sequence[FrontPoint], axis: str) -> list[float]:
    return [float(getattr(point, axis)) for point in points]


def _values(points: Sequence[FrontPoint]) -> list[float]:
    return [point.value for point in points]
