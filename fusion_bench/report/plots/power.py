"""The power curve of the gate: how likely a drop of each size is called a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base

#: Drop, share, and the interval of the share.
Point = tuple[float, float, float, float]
HEIGHT = 2.7


def draw_power(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float], float]],
    points: Mapping[str, Sequence[Point]],
) -> Drawing:
    """One panel a check: the computed curve, the measured shares and the tolerance.

    Args:
        curves: By check: drops, computed powers and the tolerance.
        points: By check: measured shares at planted drops.
    """
    with base.open_drawing(HEIGHT, len(curves), columns=1) as (drawing, panels):
        for axes, (name, (drops, power, max_drop)) in zip(panels, curves.items(), strict=True):
            axes.plot(drops, power, color=base.BLUE, label="computed power")
            if points.get(name):
                at, share, low, high = np.array(points[name]).T
                errors = [share - low, high - share]
                axes.errorbar(at, share, errors, None, "ok", ms=3, capsize=2, label="measured")
            axes.axvline(max_drop, ls=":", color=base.RED, label="max_drop")
            axes.axhline(0.8, ls="--", lw=0.8, color=base.GRAY, label="80 % power")
            axes.set_title(base.plot_text(name))
            axes.set_ylabel("share called regressed")
            axes.set_xlabel("true drop")
            axes.set_ylim(-0.03, 1.03)
    return drawing
