"""Every trial by one parameter at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import (
    MARKS,
    axis_positions,
    format_tuning_title,
    limit_to_best,
    marked_trials,
    set_parameter_scale,
    sort_by_importance,
    trial_values,
)
from fusion_bench.report.tuning_records.trials import ParameterInfo
from fusion_bench.report.tuning_records.tuning_report import TuningReport

#: Parameters in one figure; the most important first.
MAX_PANELS = 9
CAPTION = (
    "Every trial by one parameter at a time (square: default, star: tuned, darker: later). A flat "
    "top edge means that the parameter does not matter. A slope that ends at the border means that "
    "the range is too narrow. The axis omits the worst quarter of the trials where they are below "
    "the default."
)


@base.register_plot("slices", "tuning", position=4)
def slice_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where anything was tuned."""
    if report.parameters:
        yield Figure("slices.png", "Slices", CAPTION, partial(draw_slices, report))


def draw_slices(report: TuningReport) -> Drawing:
    """Value against each parameter alone; the default and the chosen trial are marked."""
    parameters = sort_by_importance(report)[:MAX_PANELS]
    with base.open_drawing(2.3, len(parameters), margin=0.6, sharey=True) as (drawing, panels):
        for axes, parameter in zip(panels, parameters, strict=True):
            _draw_panel(axes, report, parameter)
        limit_to_best(panels[0], report)
        drawing.supylabel(f"{base.plot_text(report.measure)}, tuning queries")
        drawing.suptitle(format_tuning_title(report, "Slices"))
    return drawing


def _draw_panel(axes: Axes, report: TuningReport, parameter: ParameterInfo) -> None:
    trials = [trial for trial in report.completed_trials if parameter.path in trial.params]
    colors = [trial.number for trial in trials]
    x, y = axis_positions(parameter, trials), trial_values(trials)
    axes.scatter(x, y, s=9, c=colors, cmap="Blues", vmin=-len(trials) / 2, label="darker = later")
    for key, trial in marked_trials(report).items():
        if parameter.path in trial.params:
            mark, color = MARKS[key]
            x, y = axis_positions(parameter, [trial]), trial_values([trial])
            axes.plot(x, y, mark, color=color, ms=7, label=key)
    set_parameter_scale(axes, parameter)
    axes.set_title(base.plot_text(parameter.path, 32))
