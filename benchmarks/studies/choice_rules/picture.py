"""The picture of the trial: what ships where nothing is better, and what is kept where it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAD, GOOD = "#c0392b", "#2a7f62"
#: Kind of a world → marker and label in the right panel.
MARKERS: Final = {
    "planted .02": ("o", "planted, .02"),
    "planted .05": ("s", "planted, .05"),
    "unseen half": ("^", "real, on unseen queries"),
}


@dataclass(frozen=True)
class Bar:
    """A rule.

    Attributes:
        title: Its name.
        share: Per cent of nulls that ship, with the ends of its interval.
        promise: Mean gain that these claim; NaN = none ships.
        holds: Whether at most 2.5 % may be.
        kept: Kind of a world → per cent of the possible gain that is kept.
    """

    title: str
    share: tuple[float, float, float]
    promise: float
    holds: bool
    kept: Mapping[str, float]


def draw_rules(bars: list[Bar], limit: float) -> Figure:
    """A row a rule: shares of nulls on the left, gains kept on the right."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 1.6 + 0.4 * len(bars)))
    drawing.set_layout_engine("constrained")
    left, right = drawing.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _draw_nulls(left, bars, limit)
    _draw_kept(right, bars)
    left.set_yticks(range(len(bars)), [bar.title for bar in bars])
    left.set_ylim(len(bars) - 0.5, -0.5)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return drawing


def _draw_nulls(axes: Axes, bars: list[Bar], limit: float) -> None:
    for y, bar in enumerate(bars):
        share, low, high = bar.share
        color = GOOD if bar.holds else BAD
        axes.barh(y, share, color=color, height=0.62, hatch="" if bar.holds else "//", ec="white")
        axes.errorbar(share, y, xerr=[[share - low], [high - share]], color="#222222", lw=1)
        promise = "" if math.isnan(bar.promise) else f", promising {bar.promise:+.3f}"
        axes.text(high + 1.5, y, f"{share:.1f} %{promise}", va="center", fontsize=8)
    axes.axvline(limit, color="#222222", lw=0.8, ls=":")
    axes.set(xlim=(0, 135), xticks=range(0, 101, 20))
    axes.set_xlabel("% of nulls shipped (95 % interval; dotted: 2.5 %)")
    axes.set_title("Ships where no setting is better", loc="left", fontsize=10)


def _draw_kept(axes: Axes, bars: list[Bar]) -> None:
    for kind, (marker, label) in MARKERS.items():
        known = [(bar.kept[kind], y) for y, bar in enumerate(bars) if kind in bar.kept]
        axes.plot(*zip(*known, strict=True), marker, label=label, alpha=0.8)
    axes.set_xlim(-5, 105)
    axes.set_xlabel("% of the greatest possible gain kept")
    axes.set_title("Keeps where one is better", loc="left", fontsize=10)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False)
