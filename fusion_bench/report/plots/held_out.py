"""Held-out queries: the difference of each, and the interval that decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import format_tuning_title
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_interval, format_number


@base.register_plot("held-out", "tuning", position=1)
def held_out_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where a query differs."""
    gain = report.held_out
    if not any(side.wins + side.losses for side in (gain, report.tune)):
        return
    caption = (
        f"Left, one bar a held-out query: {gain.wins:,} gain, {gain.losses:,} lose, {gain.ties:,} "
        "tie. Right, the mean with its interval "
        f"{format_interval(gain.low, gain.high, signed=True)}: above 0 the verdict is ship, below "
        "0 worse, below the dotted line keep. The gray interval of the tuning queries is biased, "
        "because the parameters were chosen there."
    )
    yield Figure("held-out.png", "Held-out differences", caption, partial(draw_held_out, report))


def draw_held_out(report: TuningReport) -> Drawing:
    """Tuned - default of every held-out query, sorted, beside the mean and its interval."""
    values = np.array(report.held_out_values)
    with base.open_drawing(3.2, 2, width_ratios=(3, 1)) as (drawing, [left, right]):
        base.draw_sorted_differences(left, values[:, 1] - values[:, 0])
        label = f"tuned - default, {base.plot_text(report.measure)}"
        left.set(xlabel="held-out queries, sorted by their difference", ylabel=label)
        left.set_xlim(0, len(values))
        _draw_gains(right, report)
        drawing.suptitle(format_tuning_title(report, "Held-out differences"))
    return drawing


def _draw_gains(axes: Axes, report: TuningReport) -> None:
    """Both gains against 0 and against the least gain."""
    axes.axhline(0, color=base.INK, lw=0.8)
    axes.axhline(report.min_gain, color=base.GREEN, lw=1, ls=":", label="least gain")
    for x, (gain, color) in enumerate(((report.tune, base.GRAY), (report.held_out, base.BLUE))):
        if gain.low is not None and gain.high is not None:
            axes.plot([x, x], [gain.low, gain.high], color=color, lw=2)
        axes.plot([x], [gain.difference], "o", color=color, ms=7)
    axes.set_xticks([0, 1], ["tuning", "held out"])
    title = f"{format_number(report.held_out.difference, signed=True)}: {report.verdict}"
    axes.set(xlim=(-0.5, 1.5), ylabel="mean gain and its interval", title=title)
