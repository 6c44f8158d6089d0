"""The picture of a degradation study: what failures and a deadline do to quality and latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fusion_bench.report.plots import BLUE, GREEN, INK, ORANGE, RED, new_figure, styled

__all__ = ["degradation"]

#: By (breaker, fallback): label, colour, marker, line.
LINES = {
    (False, False): ("without either", RED, "v", ":"),
    (True, False): ("breaker", ORANGE, "s", "-."),
    (False, True): ("second provider", GREEN, "D", "--"),
    (True, True): ("breaker and second provider", BLUE, "o", "-"),
}


def degradation(study: Mapping[str, Any], title: str) -> Figure:
    """Three panels: quality and latency by failure rate, and both by deadline.

    Args:
        study: As ``SimulationResult.as_json`` gives it.
        title: What was simulated.
    """
    with styled():
        figure = new_figure(12.0, 4.6)
        axes = figure.subplots(1, 3)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
        _by_failure(axes[0], study["by_failure"], "quality", f"expected {study['measure']}")
        _by_failure(
            axes[1], study["by_failure"], "mean", "reranking, ms: mean (thin: 95th percentile)"
        )
        _by_failure(axes[1], study["by_failure"], "p95", "", thin=True)
        axes[1].set_ylim(bottom=0)
        _bounds(axes[0], study)
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            frameon=False,
        )
        _by_deadline(axes[2], study["by_deadline"], str(study["measure"]))
    return figure


def _bounds(axes: Axes, study: Mapping[str, Any]) -> None:
    """The two qualities between which all others lie, each named on its outer side."""
    highest = max(study["reranked"], study["fused"])
    for key, name, dashes in (("reranked", "always reranked", "--"), ("fused", "fused order", ":")):
        axes.axhline(study[key], color=INK, lw=0.8, ls=dashes)
        above = study[key] == highest and (key == "reranked" or study["reranked"] < highest)
        axes.annotate(
            name,
            (0.99, study[key]),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom" if above else "top",
            fontsize=8,
        )


def _by_failure(
    axes: Axes, points: Sequence[Mapping[str, Any]], value: str, label: str, *, thin: bool = False
) -> None:
    for (breaker, fallback), (name, colour, marker, dashes) in LINES.items():
        mine = [p for p in points if (p["breaker"], p["fallback"]) == (breaker, fallback)]
        if not mine:
            continue
        alone = not (breaker or fallback)  # drawn larger, as others may cover it
        axes.plot(
            [100 * point["failure_rate"] for point in mine],
            [point[value] for point in mine],
            color=colour,
            marker="" if thin else marker,
            mfc="none" if alone else colour,
            ls=dashes,
            ms=8 if alone else 4,
            lw=0.8 if thin else 1.4,
            label=None if thin else name,
        )
    axes.set_xlabel("provider down, % of the time")
    if label:
        axes.set_ylabel(label)


def _by_deadline(axes: Axes, points: Sequence[Mapping[str, Any]], measure: str) -> None:
    """Quality by deadline; below each deadline the 95th percentile of the latency."""
    places = range(len(points))
    axes.plot(places, [point["quality"] for point in points], color=BLUE, marker="o", ms=4, lw=1.2)
    names = [
        f"{'none' if p['deadline_ms'] is None else format(p['deadline_ms'], 'g')}\n({p['p95']:.0f})"
        for p in points
    ]
    axes.set_xticks(places, names)
    axes.set_xlabel("deadline, ms (below: 95th percentile of latency)")
    axes.set_ylabel(f"expected {measure}, nothing failing")
