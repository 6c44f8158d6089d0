"""The power curve of the gate: how likely a drop of each size is called a regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base


def draw_power(study: Mapping[str, Any]) -> Drawing:
    """One panel a check: the stated curve, the measured power and the tolerance.

    Args:
        study: The fields of a ``SelfTestResult``.
    """
    curves = study["power_curves"]
    with base.open_drawing(2.7, len(curves), columns=1, margin=0.4) as (drawing, panels):
        for axes, (name, curve) in zip(panels, curves.items(), strict=True):
            axes.plot(curve["drop"], curve["power"], color=base.BLUE, label="computed power")
            rates = [r for r in study["error_rates"] if (r["check"], r["kind"]) == (name, "power")]
            x, y, low, high = ([r[key] for r in rates] for key in ("drop", "rate", "low", "high"))
            axes.plot(x, y, "ok", ms=3, label="measured")
            axes.vlines(x, low, high, color="k")
            axes.axvline(curve["max_drop"], ls=":", color=base.RED, label="max_drop")
            axes.axhline(0.8, ls="--", lw=0.8, color=base.GRAY, label="80 % power")
            axes.set(title=base.plot_text(name), ylim=(-0.03, 1.03))
            axes.set(xlabel="true drop", ylabel="share called regressed")
        reference, candidate = (base.plot_text(name, 24) for name in study["systems"])
        drawing.suptitle(f"Power of the gate: {candidate} against {reference}")
    return drawing
