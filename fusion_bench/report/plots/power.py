"""The power curve of the gate: how likely a drop of each size is called a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.data.ordering import FloatArray

#: Drop, share, and the interval of the share.
Point = tuple[float, float, float, float]
HEIGHT = 2.7


def draw_power(
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    points: Mapping[str, Sequence[Point]],
    max_drops: Mapping[str, float],
) -> Drawing:
    """One panel a check: the computed curve, the measured shares and the tolerance.

    Args:
        curves: By check: drops and computed powers.
        points: By check: measured shares at planted drops.
        max_drops: By check.
    """
    with base.plot_style():
        drawing = base.create_drawing(base.WIDTH, HEIGHT * max(len(curves), 1))
        for i, (name, (drops, power)) in enumerate(curves.items()):
            axes = drawing.add_subplot(len(curves), 1, i + 1)
            axes.plot(drops, power, color=base.BLUE, label="computed power")
            _draw_shares(axes, points.get(name, ()))
            axes.axvline(max_drops[name], linestyle=":", color=base.RED, label="max_drop")
            axes.axhline(0.8, linestyle="--", linewidth=0.8, color=base.GRAY, label="80 % power")
            axes.set_title(base.plot_text(name), loc="left")
            axes.set_ylabel("share called regressed")
            axes.set_xlabel("true drop")
            axes.set_ylim(-0.03, 1.03)
            axes.legend(loc="lower right", frameon=False)
    return drawing


def _draw_shares(axes: Axes, points: Sequence[Point]) -> None:
    """Measured shares with their intervals."""
    if points:
        drops, shares, lows, highs = np.array(points).T
        axes.errorbar(
            drops,
            shares,
            yerr=[shares - lows, highs - shares],
            color=base.INK,
            fmt="o",
            markersize=3,
            capsize=2,
            label="measured",
        )
