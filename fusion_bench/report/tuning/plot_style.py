"""What the pictures of a tuning run share: marks, and where a value stands on an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.plots import GREEN, INK, ORANGE, SOFT, _short, plain
from fusion_bench.report.tuning.tables import setting
from fusion_bench.report.tuning.tuning_records import ParameterInfo, Trial, TuningReport, Value

__all__ = [
    "MARKS",
    "by_importance",
    "chosen_trial",
    "default_trial",
    "in_range",
    "in_unit",
    "on_axis",
    "set_scale",
    "worth",
]

MARKS = {
    "default": ("s", INK),
    "seed": ("D", ORANGE),
    "sampler": (".", SOFT),
    "chosen": ("*", GREEN),
}


def default_trial(tuning: TuningReport) -> Trial:
    """The system as it was."""
    return next(t for t in tuning.trials if t.origin == "default")


def by_importance(tuning: TuningReport) -> list[ParameterInfo]:
    """The parameters, the most important first."""
    share = {one.path: one.share for one in tuning.importances}
    return sorted(tuning.parameters, key=lambda one: -share.get(one.path, 0.0))


def worth(trials: Sequence[Trial]) -> FloatArray:
    """(T,): the value of each trial; NaN = could not be computed."""
    return np.array([trial.value for trial in trials], dtype=np.float64)


def chosen_trial(tuning: TuningReport) -> Trial:
    """What was chosen."""
    return next(t for t in tuning.done if t.number == tuning.choice.trial)


def in_unit(parameter: ParameterInfo, trials: Sequence[Trial]) -> FloatArray:
    """(T,): the place of each trial in the parameter's range."""
    return np.array(in_range(parameter, [trial.params[parameter.path] for trial in trials]))


def on_axis(parameter: ParameterInfo, trials: Sequence[Trial]) -> FloatArray:
    """Numbers as they are, choices by their place in the list."""
    values = [trial.params[parameter.path] for trial in trials]
    if parameter.kind == "choice":
        return np.array([float(parameter.choices.index(value)) for value in values])
    return np.array(values, dtype=np.float64)


def in_range(parameter: ParameterInfo, values: Sequence[Value]) -> list[float]:
    """Places in the range, 0 … 1; without choices that are not offered."""
    if parameter.kind == "choice":
        values = [value for value in values if value in parameter.choices]
    searched = parameter.range
    return [searched.unit_position(value) for value in values]


def set_scale(axes: Axes, parameter: ParameterInfo, which: str) -> None:
    """A logarithmic axis for what was searched that way; names for choices."""
    if parameter.kind == "choice":
        names = [plain(_short(setting(one), 24)) for one in parameter.choices]
        axes.set_xticks(range(len(names)), names, fontsize=7, rotation=30, ha="right")
        axes.set_xlim(-0.5, len(names) - 0.5)
    elif not parameter.log:
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_major_locator(MaxNLocator(nbins=5))
    else:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
