"""Pictures of what a search is worth: folds, held-out queries, calibration.

Importing this module imports matplotlib.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fusion_bench.report.plots import (
    BLUE,
    GREEN,
    INK,
    RED,
    SOFT,
    WIDTH,
    _short,
    _steps,
    new_figure,
    plain,
    styled,
)
from fusion_bench.report.tuning.plot_style import MARKS, in_range
from fusion_bench.report.tuning.tables import setting
from fusion_bench.report.tuning.tuning_records import (
    ParameterInfo,
    ThresholdReport,
    TuningReport,
    Value,
)
from fusion_bench.util.formatting import format_number

__all__ = ["calibration", "fold_spread", "held_out"]

#: Points nearer to each other than this share of the range are drawn as one, and counted.
ONE_POINT = 0.01
#: Nearer to an end than this, a text runs inwards.
LEFT = 0.08


def fold_spread(tuning: TuningReport) -> Figure:
    """Where in its range each fold put each parameter, with the default and the final choice."""
    listed = tuning.parameters[::-1]
    with styled():
        figure = new_figure(WIDTH, 1.3 + 0.36 * len(listed))
        axes = figure.add_subplot()
        for y, parameter in enumerate(listed):
            folds = [fold.params.get(parameter.path) for fold in tuning.folds]
            _fold_row(axes, parameter, [value for value in folds if value is not None], y)
            ours = (parameter.default, tuning.choice.params.get(parameter.path))
            if parameter.kind == "choice":
                _names(axes, parameter, [*folds, *ours], y)
            for value, kind in zip(ours, ("default", "chosen"), strict=True):
                if value is not None:
                    mark, colour = MARKS[kind]
                    axes.plot(in_range(parameter, [value]), [y], mark, color=colour, ms=7)
        names = [f"{plain(_short(one.path))}\n{plain(_ends(one))}" for one in listed]
        axes.set_yticks(range(len(listed)), names, fontsize=8)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1], ["least", "middle", "greatest"])
        axes.set_xlabel("place in its range (of a choice: as named)")
        axes.set_ylim(-0.6, len(listed) - 0.3)
        for kind, label in (("default", "default"), ("chosen", "tuned")):
            axes.plot([], [], MARKS[kind][0], color=MARKS[kind][1], label=label)
        axes.plot([], [], "o", color=BLUE, alpha=0.5, label="without one fold (×: so many folds)")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _fold_row(axes: Axes, parameter: ParameterInfo, values: Sequence[Value], y: int) -> None:
    """A point a place, with the number of folds that it stands for."""
    places = [round(place / ONE_POINT) * ONE_POINT for place in in_range(parameter, values)]
    folds = Counter(places)
    axes.plot(list(folds), [y] * len(folds), "o", color=BLUE, ms=6, alpha=0.5)
    for x, count in folds.items():
        if count > 1:
            _beside(axes, f"×{count}", x, y, up=-11 if parameter.kind == "choice" else 5)


def _names(axes: Axes, parameter: ParameterInfo, values: Sequence[Value], y: int) -> None:
    """What the places of a choice are called, where anything stands."""
    named = [value for value in dict.fromkeys(values) if value in parameter.choices]
    for value, x in zip(named, in_range(parameter, named), strict=True):
        _beside(axes, plain(_short(setting(value), 24)), x, y, up=6)


def _beside(axes: Axes, text: str, x: float, y: int, *, up: int) -> None:
    """A text above or below a point, running inwards at the ends."""
    side = "left" if x < LEFT else "right" if x > 1 - LEFT else "center"
    axes.annotate(text, (x, y), xytext=(0, up), textcoords="offset points", ha=side, fontsize=7)


def _ends(parameter: ParameterInfo) -> str:
    """The range of a number, the names of a choice."""
    if parameter.kind == "choice":
        return f"{len(parameter.choices)} choices"
    scale = ", log" if parameter.log else ""
    return f"{setting(parameter.low)} to {setting(parameter.high)}{scale}"


def held_out(tuning: TuningReport) -> Figure:
    """Tuned − default of every held-out query, sorted; and the interval that decides."""
    pairs = np.array(tuning.held_out_values)
    difference = -np.sort(-(pairs[:, 1] - pairs[:, 0]))
    with styled():
        figure = new_figure(WIDTH, 3.2)
        left, right = figure.subplots(1, 2, width_ratios=(3, 1))
        _steps(left, difference, BLUE, difference > 0)
        _steps(left, difference, RED, difference < 0)
        left.axhline(0, color=INK, lw=0.8)
        left.set_xlim(0, len(difference))
        left.set_xlabel("held-out queries, sorted by their difference")
        left.set_ylabel(f"tuned - default, {plain(tuning.measure)}")
        _decision(right, tuning)
    return figure


def _decision(axes: Axes, tuning: TuningReport) -> None:
    """The interval against 0 and against the least gain."""
    found = tuning.held_out
    axes.axhline(0, color=INK, lw=0.8)
    axes.axhline(tuning.min_gain, color=GREEN, lw=1, ls=":")
    axes.annotate(
        "least gain",
        (0.5, tuning.min_gain),
        xycoords=("axes fraction", "data"),
        ha="center",
        va="bottom",
        fontsize=8,
        color=GREEN,
    )
    for x, (gain, colour) in enumerate(((tuning.tune, SOFT), (found, BLUE))):
        if gain.low is not None and gain.high is not None:
            axes.plot([x, x], [gain.low, gain.high], color=colour, lw=2)
        axes.plot([x], [gain.difference], "o", color=colour, ms=7)
    axes.set_ylabel("mean gain and its interval")
    axes.set_xticks([0, 1], ["tuning", "held out"])
    axes.set_xlim(-0.5, 1.5)
    axes.set_title(f"{format_number(found.difference, signed=True)}: {tuning.verdict}", fontsize=9)


def calibration(found: ThresholdReport) -> Figure:
    """Best score against the share of queries with a relevant document, and the thresholds."""
    with styled():
        figure = new_figure(WIDTH, 3.6)
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=":", label="a score is a probability")
        axes.plot(
            [one.score for one in found.calibration],
            [one.share for one in found.calibration],
            "o-",
            color=BLUE,
            label="held-out queries, in tenths",
        )
        for rule, dashes, label in (
            (found.default, "--", "default thresholds"),
            (found.tuned, "-", "tuned thresholds"),
        ):
            axes.axvline(rule.upper, color=GREEN, lw=1, ls=dashes, label=label)
            axes.axvline(rule.lower, color=RED, lw=1, ls=dashes)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel(f"best rerank score in the top {found.top}")
        axes.set_ylabel("share with a relevant document")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure
