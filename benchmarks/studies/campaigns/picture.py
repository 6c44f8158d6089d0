"""The picture: null campaigns that have shipped noise, by the number of asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rule → label, color, style of its line.
LINES: Final[Mapping[str, tuple[str, str, str]]] = {
    "unprotected": ("each ask at .05", "#c0392b", "-"),
    "looks": ("look j at .05·2⁻ʲ", "#d68910", "-."),
    "bonferroni": ("Student's t at .05/1,000", "#7d3c98", "--"),
    "tails t": ("campaign --tails t", "#2471a3", ":"),
    "campaign": ("campaign", "#2a7f62", "-"),
}


def draw_false_ships(
    panels: Mapping[str, tuple[int, Mapping[str, Sequence[int]]]], asks: int, level: float
) -> Figure:
    """A panel a kind of null: its title → campaigns, and rule → asks of first false ships."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 4.2))
    drawing.set_layout_engine("constrained")
    axes = drawing.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for each, (title, (campaigns, first)) in zip(axes, panels.items(), strict=True):
        _draw_panel(each, campaigns, first, asks)
        each.axhline(100 * level, color="#222222", lw=0.8, ls=":")
        each.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel("% of campaigns that shipped noise")
    axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    return drawing


def _draw_panel(axes: Axes, campaigns: int, first: Mapping[str, Sequence[int]], asks: int) -> None:
    numbers = np.arange(1, asks + 1)
    for rule, (label, color, style) in LINES.items():
        shipped = np.searchsorted(np.sort(first[rule]), numbers, side="right")
        share = 100 * shipped / campaigns
        axes.plot(numbers, share, style, color=color, label=label, lw=1.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlim=(1, asks), ylim=(-2, 102), xlabel="asks")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
