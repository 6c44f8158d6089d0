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
    with base.open_drawing(4.6, 3, width=12.0, legend_columns=6) as (drawing, axes):
        drawing.suptitle(title)
        _draw_by_failure(axes[0], points, "quality", f"expected {measure}")
        label = "reranking, ms: mean (thin: 95th percentile)"
        _draw_by_failure(axes[1], points, "mean", label)
        _draw_by_failure(axes[1], points, "p95", "", is_thin=True)
        axes[1].set_ylim(bottom=0)
        axes[0].axhline(study["reranked"], color=base.INK, lw=0.8, ls="--", label="always reranked")
        axes[0].axhline(study["fused"], color=base.INK, lw=0.8, ls=":", label="fused order")
        _draw_by_deadline(axes[2], study["by_deadline"], measure)
    return drawing


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
