"""Pictures of the search: its history, its parameters alone and in pairs.

Importing this module imports matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.tri import Triangulation

from fusion_bench.report.plots import (
    BLUE,
    SOFT,
    WIDTH,
    _short,
    new_figure,
    plain,
    styled,
)
from fusion_bench.report.tuning.marks import (
    MARKS,
    chosen_trial,
    default_trial,
    in_unit,
    on_axis,
    set_scale,
    worth,
)
from fusion_bench.report.tuning.model import ParameterInfo, Trial, TuningReport

__all__ = ["contours", "history", "importance", "slices"]

#: Parameters shown in pictures that would otherwise grow without end; most important first.
MOST_SLICES, MOST_CONTOURS = 9, 4
#: A contour wants enough points on both axes to be more than noise.
LEAST_POINTS = 12


def history(tuning: TuningReport) -> Figure:
    """Value of every trial in the order of the search, and the best so far."""
    with styled():
        figure = new_figure(WIDTH, 3.4)
        axes = figure.add_subplot()
        for origin, (mark, colour) in MARKS.items():
            own = [trial for trial in tuning.done if trial.origin == origin]
            if own:
                size = 5 if mark == "." else 7
                axes.plot(
                    [t.number for t in own],
                    worth(own),
                    mark,
                    color=colour,
                    ms=size,
                    label=origin,
                )
        values = np.maximum.accumulate(worth(tuning.done))
        numbers = [trial.number for trial in tuning.done]
        axes.step(numbers, values, where="post", color=BLUE, lw=1.4, label="best so far")
        _cut_off_the_worst(axes, tuning)
        axes.set_xlabel("trial")
        axes.set_ylabel(f"{plain(tuning.measure)}, tuning queries")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return figure


def importance(tuning: TuningReport) -> Figure:
    """Importance of each parameter, greatest on top."""
    ordered = tuning.importances[::-1]
    with styled():
        figure = new_figure(WIDTH, 1.2 + 0.3 * len(ordered))
        axes = figure.add_subplot()
        bars = axes.barh(
            range(len(ordered)), [one.share for one in ordered], color=BLUE, height=0.6
        )
        axes.bar_label(bars, [f"{one.share:.2f}" for one in ordered], padding=3, fontsize=8)
        axes.set_yticks(range(len(ordered)), [plain(_short(one.path)) for one in ordered])
        axes.set_xlim(0, 1.1 * max((one.share for one in ordered), default=1.0) or 1.0)
        axes.set_xlabel("share of importance")
    return figure


def slices(tuning: TuningReport) -> Figure:
    """Value against each parameter alone; the chosen setting and the default are marked."""
    shown = _by_importance(tuning)[:MOST_SLICES]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    with styled():
        figure = new_figure(WIDTH, 0.6 + 2.3 * lines)
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        for axes, parameter in zip(panels, shown, strict=False):
            _slice(axes, tuning, parameter)
        _cut_off_the_worst(panels[0], tuning)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        figure.supylabel(f"{plain(tuning.measure)}, tuning queries", fontsize=9)
        handles = [
            Line2D([], [], ls="", marker=MARKS[kind][0], color=MARKS[kind][1], label=label)
            for kind, label in (("default", "default"), ("polish", "tuned"))
        ]
        handles.append(Line2D([], [], ls="", marker="o", ms=3, color=BLUE, label="darker = later"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _slice(axes: Axes, tuning: TuningReport, parameter: ParameterInfo) -> None:
    own = [trial for trial in tuning.done if parameter.path in trial.params]
    at, values = on_axis(parameter, own), worth(own)
    axes.scatter(at, values, s=9, c=[t.number for t in own], cmap="Blues", vmin=-len(own) / 2)
    marked = ((default_trial(tuning), "default"), (chosen_trial(tuning), "polish"))
    for trial, kind in marked:
        if parameter.path in trial.params:
            mark, colour = MARKS[kind]
            axes.plot(on_axis(parameter, [trial]), worth([trial]), mark, color=colour, ms=7)
    set_scale(axes, parameter, "x")
    axes.set_title(plain(_short(parameter.path, 32)), fontsize=9, loc="left")


def contours(tuning: TuningReport) -> Figure | None:
    """Value over pairs of the most important numbers; None where there are too few trials."""
    pairs = [
        (a, b, own)
        for a, b in combinations(_by_importance(tuning)[:MOST_CONTOURS], 2)
        if a.kind != "choice" and b.kind != "choice" and len(own := _both(tuning, a, b))
    ][: MOST_CONTOURS + 2]
    pairs = [pair for pair in pairs if _spans(pair[0], pair[1], pair[2])]
    if not pairs:
        return None
    columns = min(3, len(pairs))
    lines = -(-len(pairs) // columns)
    with styled():
        figure = new_figure(WIDTH, 0.6 + 2.7 * lines)
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, (a, b, own) in zip(panels, pairs, strict=False):
            _contour(axes, tuning, a, b, own)
        for axes in panels[len(pairs) :]:
            axes.set_visible(False)
    return figure


def _both(tuning: TuningReport, a: ParameterInfo, b: ParameterInfo) -> list[Trial]:
    return [t for t in tuning.done if a.path in t.params and b.path in t.params]


def _spans(a: ParameterInfo, b: ParameterInfo, own: Sequence[Trial]) -> bool:
    """Whether the points span an area that can be cut into triangles."""
    points = np.array([in_unit(a, own), in_unit(b, own)]).T
    distinct = np.unique(points.round(6), axis=0)
    return len(distinct) >= LEAST_POINTS and np.linalg.matrix_rank(distinct - distinct[0]) == 2


def _contour(
    axes: Axes, tuning: TuningReport, a: ParameterInfo, b: ParameterInfo, own: Sequence[Trial]
) -> None:
    x, y = on_axis(a, own), on_axis(b, own)
    _, first = np.unique(np.array([x, y]).T, axis=0, return_index=True)
    values = worth(own)
    # Levels from the median up: what bad settings are like would hide what good ones are like.
    low, high = np.median(values), values.max()
    levels = np.linspace(low, high if high > low else low + 1e-9, 9)
    # Neighbours by their place in the range, so that a logarithmic axis gets its own.
    places = Triangulation(in_unit(a, own)[first], in_unit(b, own)[first])
    axes.tricontourf(
        Triangulation(x[first], y[first], places.triangles),
        np.maximum(values[first], low),
        levels=levels,
        cmap="Blues",
        alpha=0.8,
    )
    axes.plot(x, y, ".", color=SOFT, ms=2.5)
    for trial, kind in ((default_trial(tuning), "default"), (chosen_trial(tuning), "polish")):
        if a.path in trial.params and b.path in trial.params:
            mark, colour = MARKS[kind]
            axes.plot(on_axis(a, [trial]), on_axis(b, [trial]), mark, color=colour, ms=8)
    set_scale(axes, a, "x")
    set_scale(axes, b, "y")
    axes.set_xlabel(plain(_short(a.path, 32)))
    axes.set_ylabel(plain(_short(b.path, 32)))


def _cut_off_the_worst(axes: Axes, tuning: TuningReport) -> None:
    """Show the better three quarters and the default: bad settings would flatten the rest."""
    values = worth(tuning.done)
    bottom = min(float(np.quantile(values, 0.25)), *worth([default_trial(tuning)]))
    height = max(float(values.max()) - bottom, 1e-6)
    axes.set_ylim(bottom - 0.08 * height, float(values.max()) + 0.08 * height)


def _by_importance(tuning: TuningReport) -> list[ParameterInfo]:
    share = {one.path: one.share for one in tuning.importances}
    return sorted(tuning.parameters, key=lambda one: -share.get(one.path, 0.0))
