"""The history of a search: every trial, and the best so far."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import (
    MARKS,
    format_tuning_title,
    limit_to_best,
    trial_values,
)
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number

#: The search had converged if its last gain came before this share of the trials.
CONVERGED = 0.5


@base.register_plot("history", "tuning", position=2)
def history_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, with what it says about more trials."""
    best = max(report.completed_trials, key=lambda trial: (trial.value or 0.0, -trial.number))
    default = next(trial.value for trial in report.trials if trial.origin == "default")
    position = [trial.number for trial in report.trials].index(best.number) + 1
    if position > CONVERGED * len(report.trials):
        advice = "The best trial came late; more trials may improve on it."
    else:
        advice = "The best trial came early; more trials are unlikely to improve much."
    caption = (
        f"Each point is a trial. The default has {format_number(default)}; the best trial, "
        f"{best.number} of {len(report.trials):,}, has {format_number(best.value)}. {advice} The "
        "axis omits the worst quarter of the trials where they are below the default."
    )
    yield Figure("history.png", "Optimization history", caption, partial(draw_history, report))


def draw_history(report: TuningReport) -> Drawing:
    """Value of every trial in the order of the search, and the best so far."""
    with base.open_drawing(3.4, legend_columns=5) as (drawing, [axes]):
        for origin, (mark, color) in MARKS.items():
            trials = [trial for trial in report.completed_trials if trial.origin == origin]
            if trials:
                numbers = [trial.number for trial in trials]
                size = 5 if mark == "." else 7
                axes.plot(numbers, trial_values(trials), mark, color=color, ms=size, label=origin)
        best = np.maximum.accumulate(trial_values(report.completed_trials))
        numbers = [trial.number for trial in report.completed_trials]
        axes.step(numbers, best, where="post", color=base.BLUE, lw=1.4, label="best so far")
        limit_to_best(axes, report)
        axes.set(xlabel="trial", ylabel=f"{base.plot_text(report.measure)}, tuning queries")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        drawing.suptitle(format_tuning_title(report, "Optimization history"))
    return drawing
