"""Plots outside evaluations or tuning: power and sample size, thresholds."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.evaluation.thresholds import ThresholdCollection
from fusion_bench.report.power_page import PowerPlan
from fusion_bench.stats.power import power_by_queries

CURVE_COLORS = (base.BLUE, base.RED, base.ORANGE, base.GREEN, base.INK)
#: Numbers of queries of each curve, and their range where no queries are at hand.
POINTS, LEAST, MOST = 60, 10, 100_000


def draw_sample_size(plan: PowerPlan) -> Drawing:
    """The power of "better or worse", with the asked power and the queries at hand as lines."""
    numbers = np.unique(np.geomspace(LEAST, MOST, POINTS).astype(np.int64))
    rule = plan.rules[0]
    with base.open_drawing(3.4, 1, columns=1) as (drawing, (axes,)):
        for i, each in enumerate(rule.differences):
            curve = [power_by_queries(rule, plan.spread, each.difference, int(n)) for n in numbers]
            label = f"difference {each.difference:g}"
            axes.plot(numbers, curve, color=CURVE_COLORS[i % len(CURVE_COLORS)], label=label)
        axes.axhline(plan.power, ls="--", lw=0.8, color=base.GRAY, label=f"power {plan.power:g}")
        if plan.spread.queries is not None:
            axes.axvline(plan.spread.queries, ls=":", color=base.GRAY, label="queries at hand")
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="queries", ylabel="power")
        drawing.suptitle(f"Power of “better or worse”, {plan.systems:,} compared")
    return drawing


#: Most signals that are drawn: those that keep most.
MOST_CURVES = len(CURVE_COLORS)


def draw_threshold_curves(collection: ThresholdCollection) -> Drawing:
    """Answered share of the answerable queries by that of the others, a curve a signal."""
    signals = sorted(collection.signals, key=lambda each: -(each.kept.share or 0.0))
    with base.open_drawing(3.4, 1, columns=1) as (drawing, (axes,)):
        for color, signal in zip(CURVE_COLORS, signals[:MOST_CURVES], strict=False):
            false_answers, answered = np.array(signal.curve).T
            label = base.plot_text(signal.label)
            axes.step(false_answers, answered, where="post", color=color, label=label)
        axes.plot([0, 1], [0, 1], ls=":", lw=0.8, color=base.GRAY, label="by chance")
        axes.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="answerable queries answered")
        axes.set_xlabel("unanswerable queries answered")
        drawing.suptitle(base.plot_text(f"Answers kept against false answers on {collection.name}"))
    return drawing
