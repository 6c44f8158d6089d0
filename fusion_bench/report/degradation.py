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
    (False, False): ("neither", RED, "v", ":"),
    (True, False): ("breaker", ORANGE, "s", "-."),
    (False, True): ("fallback", GREEN, "D", "--"),
    (True, True): ("breaker and fallback", BLUE, "o", "-"),
}


def degradation(study: Mapping[str, Any], title: str) -> Figure:
    """Three panels: quality and 95th percentile by failure rate, and quality against latency.

    Args:
        study: As ``rerank.simulate.Study.as_json`` gives it.
        title: What was simulated.
    """
    with styled():
        figure = new_figure(12.0, 4.2)
        axes = figure.subplots(1, 3)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
        _by_failure(axes[0], study["by_failure"], "quality", f"expected {study['measure']}")
        _by_failure(axes[1], study["by_failure"], "p95", "95th percentile of reranking, ms")
        for key, name in (("reranked", "always reranked"), ("fused", "fused order")):
            axes[0].axhline(study[key], color=INK, lw=0.8, ls=":" if key == "fused" else "--")
            axes[0].annotate(name, (1, study[key]), xycoords=("axes fraction", "data"), ha="right")
        axes[0].legend(fontsize=7, loc="lower left")
        _by_budget(axes[2], study["by_budget"], str(study["measure"]))
    return figure


def _by_failure(axes: Axes, points: Sequence[Mapping[str, Any]], value: str, label: str) -> None:
    for (breaker, fallback), (name, colour, marker, dashes) in LINES.items():
        mine = [p for p in points if (p["breaker"], p["fallback"]) == (breaker, fallback)]
        axes.plot(
            [100 * point["failure_rate"] for point in mine],
            [point[value] for point in mine],
            color=colour,
            marker=marker,
            ls=dashes,
            ms=4,
            lw=1.4,
            label=name,
        )
    axes.set_xlabel("provider down, % of the time")
    axes.set_ylabel(label)


def _by_budget(axes: Axes, points: Sequence[Mapping[str, Any]], measure: str) -> None:
    axes.plot(
        [point["p95"] for point in points],
        [point["quality"] for point in points],
        color=BLUE,
        marker="o",
        ms=4,
        lw=1.2,
    )
    for point in points:
        budget = point["budget_ms"]
        name = "no deadline" if budget is None else f"{budget:g} ms"
        place = (point["p95"], point["quality"])
        axes.annotate(name, place, xytext=(4, -9), textcoords="offset points", fontsize=7)
    axes.set_xlabel("95th percentile of reranking, ms")
    axes.set_ylabel(f"expected {measure}, nothing failing")
