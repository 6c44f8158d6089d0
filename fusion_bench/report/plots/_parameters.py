"""Trials and parameters on an axis: what the plots of a search share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

import fusion_bench.report.plots._base as base
from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.tuning.format_values import format_value
from fusion_bench.report.tuning_records.trials import ParameterInfo, Trial, Value
from fusion_bench.report.tuning_records.tuning_report import TuningReport

#: By origin of a trial, and for the chosen one: marker and color.
MARKS = {
    "default": ("s", base.INK),
    "seed": ("D", base.ORANGE),
    "sampler": (".", base.GRAY),
    "chosen": ("*", base.GREEN),
}


def format_tuning_title(report: TuningReport, what: str) -> str:
    """What a plot shows, of which system on which dataset."""
    system, dataset = (base.plot_text(name, 30) for name in (report.system, report.dataset))
    return f"{what}: {system} on {dataset}"


def marked_trials(report: TuningReport) -> dict[str, Trial]:
    """The default trial and the chosen one, by the key of their mark."""
    default = next(trial for trial in report.trials if trial.origin == "default")
    chosen = next(trial for trial in report.completed_trials if trial.number == report.choice.trial)
    return {"default": default, "chosen": chosen}


def sort_by_importance(report: TuningReport) -> list[ParameterInfo]:
    """The parameters, the most important first."""
    shares = {importance.path: importance.share for importance in report.importances}
    return sorted(report.parameters, key=lambda parameter: -shares.get(parameter.path, 0.0))


def trial_values(trials: Sequence[Trial]) -> FloatArray:
    """Shape (T,): the value of each trial; NaN = could not be computed."""
    return np.array([trial.value for trial in trials], dtype=np.float64)


def axis_positions(parameter: ParameterInfo, trials: Sequence[Trial]) -> FloatArray:
    """Shape (T,): numbers as they are, choices by their position in the list."""
    values = [trial.params[parameter.path] for trial in trials]
    if parameter.kind == "choice":
        return np.array([float(parameter.choices.index(value)) for value in values])
    return np.array(values, dtype=np.float64)


def unit_positions(parameter: ParameterInfo, values: Sequence[Value]) -> list[float]:
    """Positions in the parameter's range, 0 … 1; without None and choices that are not offered."""
    choices = parameter.choices if parameter.kind == "choice" else values
    present = [value for value in values if value is not None and value in choices]
    return [parameter.range.unit_position(value) for value in present]


def set_parameter_scale(axes: Axes, parameter: ParameterInfo) -> None:
    """A logarithmic axis for what was searched that way; names for choices."""
    if parameter.kind == "choice":
        names = [base.plot_text(format_value(choice), 24) for choice in parameter.choices]
        axes.set_xticks(range(len(names)), names, fontsize=7, rotation=30, ha="right")
        axes.set_xlim(-0.5, len(names) - 0.5)
    elif parameter.log:
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))


def limit_to_best(axes: Axes, report: TuningReport) -> None:
    """Show the better three quarters and the default: bad trials would flatten the rest."""
    values = trial_values(report.completed_trials)
    default = marked_trials(report)["default"].value
    bottom = min(float(np.quantile(values, 0.25)), *([] if default is None else [default]))
    height = max(float(values.max()) - bottom, 1e-6)
    axes.set_ylim(bottom - 0.08 * height, float(values.max()) + 0.08 * height)
