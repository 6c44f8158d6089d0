"""Effects with their intervals, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fusion_bench.report.plots._base import BLUE, GRAY, open_drawing, plot_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fusion_bench.leaderboard.answers import Bar


def draw_effects(title: str, bars: Sequence[Bar]) -> Figure:
    """A row an effect, in the order given; 0 is marked.

    Args:
        title: The question.
        bars: At least one; an end that is NaN is not drawn.
    """
    with open_drawing(1.2 + 0.24 * len(bars)) as (drawing, (axes,)):
        drawing.suptitle(title)
        rows = np.arange(len(bars))
        ends = np.array([[bar.mean - bar.low, bar.high - bar.mean] for bar in bars]).T
        means = [bar.mean for bar in bars]
        axes.axvline(0, color=GRAY, lw=0.8)
        axes.errorbar(means, rows, xerr=np.nan_to_num(ends), fmt="o", color=BLUE, ms=4, lw=1.2)
        axes.set_yticks(rows, [plot_text(bar.name) for bar in bars])
        axes.invert_yaxis()
        axes.set_xlabel("difference in nDCG@10, with its 95 % interval")
    return drawing
