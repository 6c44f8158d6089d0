"""Pictures of the search: its history, and its parameters one at a time.

Importing this module imports matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fusion_bench.report.plots import (
    BLUE,
    INK,
    WIDTH,
    _short,
    new_figure,
    plain,
    styled,
)
from fusion_bench.report.tuning.plot_style import (
    MARKS,
    by_importance,
    chosen_trial,
    default_trial,
    on_axis,
    set_scale,
    worth,
)
from fusion_bench.report.tuning.tables import lost_without
from fusion_bench.report.tuning.tuning_records import ParameterInfo, TuningReport

__all__ = ["history", "importance", "slices"]

#: Parameters shown in a picture that would otherwise grow without end; most important first.
MOST_SLICES = 9


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
    """Importance of each parameter, greatest on top, beside what it alone is worth."""
    share = {one.path: one.share for one in tuning.importances}
    lost = {one.path: lost_without(tuning, one) for one in tuning.parameters}
    known = {path: worth for path, worth in lost.items() if worth is not None}
    ordered = [one.path for one in by_importance(tuning) if one.path in {*share, *known}][::-1]
    with styled():
        figure = new_figure(WIDTH, 1.3 + 0.3 * len(ordered))
        panels = figure.subplots(1, 2 if known else 1, sharey=True, squeeze=False)[0]
        _bars(panels[0], [share.get(path) for path in ordered], "share of importance", "{:.2f}")
        if known:
            label = f"{plain(tuning.measure)} lost, back at the default"
            _bars(panels[1], [known.get(path) for path in ordered], label, "{:.4f}")
        panels[0].set_yticks(range(len(ordered)), [plain(_short(path)) for path in ordered])
    return figure


def _bars(axes: Axes, values: Sequence[float | None], label: str, form: str) -> None:
    """One bar a parameter; none, and a dash, where nothing is known."""
    bars = axes.barh(range(len(values)), [v or 0.0 for v in values], color=BLUE, height=0.6)
    axes.bar_label(
        bars, ["–" if v is None else form.format(v) for v in values], padding=3, fontsize=8
    )
    axes.margins(x=0.2)
    axes.axvline(0, color=INK, lw=0.6)
    axes.set_xlabel(label)


def slices(tuning: TuningReport) -> Figure:
    """Value against each parameter alone; the chosen setting and the default are marked."""
    shown = by_importance(tuning)[:MOST_SLICES]
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
            for kind, label in (("default", "default"), ("chosen", "tuned"))
        ]
        handles.append(Line2D([], [], ls="", marker="o", ms=3, color=BLUE, label="darker = later"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _slice(axes: Axes, tuning: TuningReport, parameter: ParameterInfo) -> None:
    own = [trial for trial in tuning.done if parameter.path in trial.params]
    at, values = on_axis(parameter, own), worth(own)
    axes.scatter(at, values, s=9, c=[t.number for t in own], cmap="Blues", vmin=-len(own) / 2)
    marked = ((default_trial(tuning), "default"), (chosen_trial(tuning), "chosen"))
    for trial, kind in marked:
        if parameter.path in trial.params:
            mark, colour = MARKS[kind]
            axes.plot(on_axis(parameter, [trial]), worth([trial]), mark, color=colour, ms=7)
    set_scale(axes, parameter, "x")
    axes.set_title(plain(_short(parameter.path, 32)), fontsize=9, loc="left")


def _cut_off_the_worst(axes: Axes, tuning: TuningReport) -> None:
    """Show the better three quarters and the default: bad settings would flatten the rest."""
    values = worth(tuning.done)
    bottom = min(float(np.quantile(values, 0.25)), *worth([default_trial(tuning)]))
    height = max(float(values.max()) - bottom, 1e-6)
    axes.set_ylim(bottom - 0.08 * height, float(values.max()) + 0.08 * height)
