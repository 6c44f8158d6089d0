"""The power curve of the gate: how likely a drop of each size is called a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.plots import BLUE, INK, RED, SOFT, new_figure, plain, styled

__all__ = ["Point", "power_curves"]

#: Drop, share, and the interval of the share.
Point = tuple[float, float, float, float]
WIDTH, HEIGHT = 9.0, 2.7


def power_curves(
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    points: Mapping[str, Sequence[Point]],
    max_drops: Mapping[str, float],
) -> Figure:
    """A panel a check: the printed curve, what was measured, and the tolerance.

    Args:
        curves: By check: drops and printed powers.
        points: By check: what was measured at planted drops.
        max_drops: By check.
    """
    with styled():
        figure = new_figure(WIDTH, HEIGHT * max(len(curves), 1))
        for row, (name, (drops, power)) in enumerate(curves.items()):
            axes = figure.add_subplot(len(curves), 1, row + 1)
            axes.plot(drops, power, color=BLUE, label="printed power")
            _measured(axes, points.get(name, ()))
            axes.axvline(max_drops[name], linestyle=":", color=RED, label="max_drop")
            axes.axhline(0.8, linestyle="--", linewidth=0.8, color=SOFT, label="power .8")
            axes.set_title(plain(name), loc="left")
            axes.set_ylabel("share called regressed")
            axes.set_xlabel("true drop")
            axes.set_ylim(-0.03, 1.03)
            axes.legend(loc="lower right", frameon=False)
    return figure


def _measured(axes: Axes, points: Sequence[Point]) -> None:
    """What happened at planted drops, with the interval of each share."""
    if not points:
        return
    drops, shares, lows, highs = np.array(points).T
    axes.errorbar(
        drops,
        shares,
        yerr=[shares - lows, highs - shares],
        color=INK,
        fmt="o",
        markersize=3,
        capsize=2,
        label="measured",
    )
