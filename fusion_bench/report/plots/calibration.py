"""Calibration of rerank scores, with the thresholds of CRAG."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import format_tuning_title
from fusion_bench.report.tuning_records.thresholds import ThresholdReport
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number, format_percent


@base.register_plot("calibration", "tuning", position=7)
def calibration_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure of the first list whose thresholds were fitted."""
    thresholds = next(iter(report.thresholds), None)
    if thresholds is None or not thresholds.calibration:
        return
    bins, draw = thresholds.calibration, partial(draw_calibration, report, thresholds)
    total = sum(item.queries for item in bins)
    error = sum(item.queries * abs(item.score - item.share) for item in bins) / total
    first, last = bins[0], bins[-1]
    caption = (
        "Each point is a tenth of the held-out queries: its mean best score against the share of "
        f"queries with a relevant document in the top {thresholds.top}. On the diagonal a score is "
        f"a probability; the mean absolute error is {format_number(error)}. The share is "
        f"{format_percent(first.share)} in the lowest tenth (score {format_number(first.score)}) "
        f"and {format_percent(last.share)} in the highest ({format_number(last.score)}). Dashed: "
        "default thresholds; solid: tuned."
    )
    yield Figure("calibration.png", "Calibration of the rerank scores", caption, draw)


def draw_calibration(report: TuningReport, thresholds: ThresholdReport) -> Drawing:
    """Best score against the share of queries with a relevant document, and the thresholds."""
    points = [(item.score, item.share) for item in thresholds.calibration]
    with base.open_drawing(3.6) as (drawing, [axes]):
        axes.plot([0, 1], [0, 1], color=base.GRAY, lw=1, ls=":", label="a score is a probability")
        axes.plot(
            *zip(*points, strict=True), "o-", color=base.BLUE, label="held-out queries, in tenths"
        )
        for rule, dashes, label in (
            (thresholds.default, "--", "default thresholds"),
            (thresholds.tuned, "-", "tuned thresholds"),
        ):
            axes.axvline(rule.upper, color=base.GREEN, lw=1, ls=dashes, label=label)
            axes.axvline(rule.lower, color=base.RED, lw=1, ls=dashes)
        label = f"best rerank score in the top {thresholds.top}"
        axes.set(ylim=(-0.03, 1.03), xlabel=label, ylabel="share with a relevant document")
        drawing.suptitle(format_tuning_title(report, "Calibration of the rerank scores"))
    return drawing
