"""Calibration of rerank scores, with the thresholds of CRAG."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.tuning_records import ThresholdReport, TuningReport
from fusion_bench.util.formatting import format_number, format_percent


@base.tuning_plot("calibration", position=7)
def calibration_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where thresholds were fitted."""
    thresholds = report.thresholds
    if thresholds is None or not thresholds.calibration:
        return
    draw = partial(draw_calibration, thresholds)
    title = "Calibration of the rerank scores"
    yield Figure("calibration.png", title, _caption(thresholds), draw)


def _caption(thresholds: ThresholdReport) -> str:
    bins = thresholds.calibration
    total = sum(item.queries for item in bins)
    error = sum(item.queries * abs(item.score - item.share) for item in bins) / total
    first, last = bins[0], bins[-1]
    return (
        "Each point is a tenth of the held-out queries: its mean best score against the share of "
        f"queries with a relevant document in the top {thresholds.top}. On the diagonal a score is "
        f"a probability; the mean absolute error is {format_number(error)}. The share is "
        f"{format_percent(first.share)} in the lowest tenth (score {format_number(first.score)}) "
        f"and {format_percent(last.share)} in the highest ({format_number(last.score)}). Dashed: "
        "default thresholds; solid: tuned."
    )


def draw_calibration(thresholds: ThresholdReport) -> Drawing:
    """Best score against the share of queries with a relevant document, and the thresholds."""
    scores = [item.score for item in thresholds.calibration]
    shares = [item.share for item in thresholds.calibration]
    with base.plot_style():
        drawing = base.create_drawing(base.WIDTH, 3.6)
        axes = drawing.add_subplot()
        axes.plot([0, 1], [0, 1], color=base.GRAY, lw=1, ls=":", label="a score is a probability")
        axes.plot(scores, shares, "o-", color=base.BLUE, label="held-out queries, in tenths")
        for rule, dashes, label in (
            (thresholds.default, "--", "default thresholds"),
            (thresholds.tuned, "-", "tuned thresholds"),
        ):
            axes.axvline(rule.upper, color=base.GREEN, lw=1, ls=dashes, label=label)
            axes.axvline(rule.lower, color=base.RED, lw=1, ls=dashes)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel(f"best rerank score in the top {thresholds.top}")
        axes.set_ylabel("share with a relevant document")
        drawing.legend(loc="outside lower center", ncols=4, frameon=False)
    return drawing
