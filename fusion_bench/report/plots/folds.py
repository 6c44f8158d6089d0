"""Where each fold of the nested cross-validation put each parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import MARKS, unit_positions
from fusion_bench.report.tuning.format_values import format_value
from fusion_bench.report.tuning_records import ParameterInfo, TuningReport, Value
from fusion_bench.util.formatting import format_percent

#: Points nearer to each other than this share of the range are drawn as one, and counted.
MERGE_DISTANCE = 0.01
#: Nearer to an end than this, a text runs inwards.
TEXT_MARGIN = 0.08


@base.register_plot("folds", "tuning", position=6)
def fold_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where there are folds."""
    if not report.folds:
        return
    caption = (
        "Values that the search chose without each fold, from the least (left) to the greatest of "
        "the range; choices are named. ×n marks n folds with the same value. Points close together "
        "mean that the queries agree. Points all over the range of a parameter that matters mean "
        "that it was fitted to the queries at hand."
    )
    spreads = report.fold_spreads
    if len(spreads) > 1:
        near, far = (extreme(spreads, key=lambda path: spreads[path]) for extreme in (min, max))
        caption += (
            f" Smallest spread: {near} ({format_percent(spreads[near])} of its range). Largest: "
            f"{far} ({format_percent(spreads[far])})."
        )
    yield Figure("folds.png", "Spread over the folds", caption, partial(draw_folds, report))


def draw_folds(report: TuningReport) -> Drawing:
    """One row a parameter: the value of each fold, the default and the tuned value."""
    parameters = report.parameters[::-1]
    with base.open_drawing(1.3 + 0.36 * len(parameters)) as (drawing, [axes]):
        for y, parameter in enumerate(parameters):
            _draw_row(axes, report, parameter, y)
        names = [
            f"{base.plot_text(p.path)}\n{base.plot_text(_format_range(p))}" for p in parameters
        ]
        axes.set_yticks(range(len(parameters)), names, fontsize=8)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1], ["least", "middle", "greatest"])
        axes.set_xlabel("position in its range (choices: as named)")
        axes.set_ylim(-0.6, len(parameters) - 0.3)
    return drawing


def _draw_row(axes: Axes, report: TuningReport, parameter: ParameterInfo, y: int) -> None:
    folds = [fold.params.get(parameter.path) for fold in report.folds]
    marked = {
        "default": parameter.default,
        "chosen": report.choice.params.get(parameter.path),
    }
    _draw_points(axes, parameter, [value for value in folds if value is not None], y)
    if parameter.kind == "choice":
        _name_choices(axes, parameter, [*folds, *marked.values()], y)
    for key, value in marked.items():
        if value is not None:
            mark, color = MARKS[key]
            x = unit_positions(parameter, [value])
            axes.plot(x, [y] * len(x), mark, color=color, ms=7, label=key)


def _draw_points(axes: Axes, parameter: ParameterInfo, values: Sequence[Value], y: int) -> None:
    """One point a position, with the number of folds that it stands for."""
    positions = unit_positions(parameter, values)
    counts = Counter(round(x / MERGE_DISTANCE) * MERGE_DISTANCE for x in positions)
    label = "without one fold (×: so many folds)"
    axes.plot(list(counts), [y] * len(counts), "o", color=base.BLUE, ms=6, alpha=0.5, label=label)
    offset = -11 if parameter.kind == "choice" else 5
    for x, count in counts.items():
        if count > 1:
            _annotate(axes, f"×{count}", x, y, offset=offset)


def _name_choices(axes: Axes, parameter: ParameterInfo, values: Sequence[Value], y: int) -> None:
    """The names of the choices that anything stands at."""
    choices = [value for value in dict.fromkeys(values) if value in parameter.choices]
    for value, x in zip(choices, unit_positions(parameter, choices), strict=True):
        _annotate(axes, base.plot_text(format_value(value), 24), x, y, offset=6)


def _annotate(axes: Axes, text: str, x: float, y: int, *, offset: int) -> None:
    """A text above or below a point, running inwards at the ends."""
    side = "left" if x < TEXT_MARGIN else "right" if x > 1 - TEXT_MARGIN else "center"
    axes.annotate(text, (x, y), xytext=(0, offset), textcoords="offset points", ha=side, fontsize=7)


def _format_range(parameter: ParameterInfo) -> str:
    if parameter.kind == "choice":
        return f"{len(parameter.choices)} choices"
    scale = ", log" if parameter.log else ""
    return f"{format_value(parameter.low)} to {format_value(parameter.high)}{scale}"
