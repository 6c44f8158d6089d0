"""What provider failures and a deadline do to quality and latency of reranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base

#: By (breaker, fallback): label, color, marker, line.
LINES = {
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
    with base.plot_style():
        drawing = base.create_drawing(12.0, 4.6)
        axes = drawing.subplots(1, 3)
        drawing.suptitle(title, fontsize=10, x=0.01, ha="left")
        _draw_by_failure(axes[0], points, "quality", f"expected {measure}")
        label = "reranking, ms: mean (thin: 95th percentile)"
        _draw_by_failure(axes[1], points, "mean", label)
        _draw_by_failure(axes[1], points, "p95", "", is_thin=True)
        axes[1].set_ylim(bottom=0)
        _draw_bounds(axes[0], study)
        legend = axes[0].get_legend_handles_labels()
        drawing.legend(*legend, loc="outside lower center", ncols=4, frameon=False)
        _draw_by_deadline(axes[2], study["by_deadline"], measure)
    return drawing


def _draw_bounds(axes: Axes, study: Mapping[str, Any]) -> None:
    """The two qualities between which all others lie, each named on its outer side."""
    highest = max(study["reranked"], study["fused"])
    for key, name, dashes in (("reranked", "always reranked", "--"), ("fused", "fused order", ":")):
        axes.axhline(study[key], color=base.INK, lw=0.8, ls=dashes)
        is_above = study[key] == highest and (key == "reranked" or study["reranked"] < highest)
        axes.annotate(
            name,
            (0.99, study[key]),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom" if is_above else "top",
            fontsize=8,
        )


def _draw_by_failure(
    axes: Axes,
    points: Sequence[Mapping[str, Any]],
    value: str,
    label: str,
    *,
    is_thin: bool = False,
) -> None:
    for setup, (name, color, marker, dashes) in LINES.items():
        selected = [point for point in points if (point["breaker"], point["fallback"]) == setup]
        if not selected:
            continue
        is_bare = not any(setup)  # drawn larger, as others may cover it
        axes.plot(
            [100 * point["failure_rate"] for point in selected],
            [point[value] for point in selected],
            color=color,
            marker="" if is_thin else marker,
            mfc="none" if is_bare else color,
            ls=dashes,
            ms=8 if is_bare else 4,
            lw=0.8 if is_thin else 1.4,
            label=None if is_thin else name,
        )
    axes.set_xlabel("provider down, % of the time")
    if label:
        axes.set_ylabel(label)


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
