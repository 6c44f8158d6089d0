"""Plots outside evaluations or tuning: sample size, rerankers that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
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


#: By (breaker, fallback): label, color, marker, line.
DEGRADATION_LINES = {
    (False, False): ("without either", base.RED, "v", ":"),
    (True, False): ("breaker", base.ORANGE, "s", "-."),
    (False, True): ("second provider", base.GREEN, "D", "--"),
    (True, True): ("breaker and second provider", base.BLUE, "o", "-"),
}


def draw_degradation(study: Mapping[str, Any], title: str) -> Drawing:
    """Three panels: quality and latency by failure rate, and both by deadline.

    Args:
        study: The fields of a ``SimulationResult``.
        title: What was simulated.
    """
    points, measure = study["by_failure"], str(study["measure"])
    with base.open_drawing(4.6, 3, width=12.0, legend_columns=6) as (drawing, panels):
        drawing.suptitle(title)
        _draw_by_failure(panels[:2], points)
        first, second, third = panels
        first.set_ylabel(f"expected {measure}")
        first.axhline(study["reranked"], color=base.INK, lw=0.8, ls="--", label="always reranked")
        first.axhline(study["fused"], color=base.INK, lw=0.8, ls=":", label="fused order")
        second.set_ylabel("reranking, ms: mean (thin: 95th percentile)")
        second.set_ylim(bottom=0)
        _draw_by_deadline(third, study["by_deadline"], measure)
    return drawing


def _draw_by_failure(panels: Sequence[Axes], points: Sequence[Mapping[str, Any]]) -> None:
    """Quality, and mean and 95th percentile of the latency."""
    for setup, (name, color, marker, dashes) in DEGRADATION_LINES.items():
        selected = [point for point in points if (point["breaker"], point["fallback"]) == setup]
        x = [100 * point["failure_rate"] for point in selected]
        # Drawn larger, as others may cover it.
        size, face = (4, color) if any(setup) else (8, "none")
        for axes, key in zip(panels, ("quality", "mean"), strict=True):
            y = [point[key] for point in selected]
            axes.plot(x, y, marker + dashes, color=color, mfc=face, ms=size, label=name)
            axes.set_xlabel("provider down, % of the time")
        panels[1].plot(x, [point["p95"] for point in selected], dashes, color=color, lw=0.8)


def _draw_by_deadline(axes: Axes, points: Sequence[Mapping[str, Any]], measure: str) -> None:
    """Quality by deadline; below each deadline the 95th percentile of the latency."""
    x = range(len(points))
    axes.plot(x, [point["quality"] for point in points], color=base.BLUE, marker="o", ms=4, lw=1.2)
    names = [
        f"{'none' if p['deadline_ms'] is None else format(p['deadline_ms'], 'g')}\n({p['p95']:.0f})"
        for p in points
    ]
    axes.set_xticks(x, names)
    axes.set_xlabel("deadline, ms (below: 95th percentile of latency)")
    axes.set_ylabel(f"expected {measure}, no failures")
