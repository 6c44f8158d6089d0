"""Pictures of two parameters at a time: what the settings around each place were worth.

The other parameters differ from trial to trial, so that neighbours differ by chance: what is drawn
is a local mean, and where hardly anybody looked it is as low as the worst quarter of the trials.

Importing this module imports matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.plots import SOFT, WIDTH, _short, new_figure, plain, styled
from fusion_bench.report.tuning.plot_style import (
    MARKS,
    by_importance,
    chosen_trial,
    default_trial,
    in_unit,
    on_axis,
    set_scale,
    worth,
)
from fusion_bench.report.tuning.tuning_records import ParameterInfo, Trial, TuningReport

__all__ = ["contours", "surface"]

#: Of the most important parameters, those that are numbers, in pairs.
MOST: Final = 4
#: A picture wants enough different places to be more than noise.
LEAST_POINTS: Final = 12
#: Width of the local mean, as a share of a range.
WIDTH_OF_MEAN: Final = 0.08
#: The worst quarter's bound counts as so many trials at every place: one trial proves nothing.
PRIOR: Final = 1.0
CELLS: Final = 60
LEVELS: Final = 8

Pair = tuple[ParameterInfo, ParameterInfo, list[Trial]]


def contours(tuning: TuningReport) -> Figure | None:
    """Value over pairs of the most important numbers; None where there are too few trials."""
    shown = [one for one in by_importance(tuning)[:MOST] if one.kind != "choice"]
    # Of two weights of which only the ratio counts one stands at 1: they span no plane.
    apart = [(a, b) for a, b in combinations(shown, 2) if not (a.ratio and b.ratio)]
    pairs = [(a, b, _both(tuning, a, b)) for a, b in apart]
    pairs = [pair for pair in pairs if _spans(*pair)]
    if not pairs:
        return None
    found = [surface(in_unit(a, own), in_unit(b, own), worth(own)) for a, b, own in pairs]
    levels = _levels(found)
    columns = min(3, len(pairs))
    lines = -(-len(pairs) // columns)
    with styled():
        figure = new_figure(WIDTH, 0.6 + 2.7 * lines)
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, pair, mean in zip(panels, pairs, found, strict=False):
            _panel(axes, tuning, pair, mean, levels)
        for axes in panels[len(pairs) :]:
            axes.set_visible(False)
        figure.colorbar(
            ScalarMappable(BoundaryNorm(levels, 256, extend="min"), "Blues"),
            ax=panels,
            label=f"{plain(tuning.measure)}, tuning queries, local mean",
            format="%.3f",
            aspect=40,
        )
    return figure


def surface(x: FloatArray, y: FloatArray, values: FloatArray) -> FloatArray:
    """Mean of the trials around each place, those near by counting most.

    Source: Nadaraya 1964, Watson 1964, with a Gaussian kernel; shrunk to the lower
    quartile: a search is seldom where it is bad.

    Args:
        x: Shape (T,), places in the first parameter's range, 0 … 1.
        y: Shape (T,), in the second's.
        values: Shape (T,).

    Returns:
        Shape (CELLS, CELLS), rows along y.
    """
    at = np.linspace(0, 1, CELLS)
    near_x, near_y = (
        np.exp(-((at[:, None] - places) ** 2) / (2 * WIDTH_OF_MEAN**2)) for places in (x, y)
    )
    bad = float(np.quantile(values, 0.25))
    return np.asarray(((near_y * values) @ near_x.T + PRIOR * bad) / (near_y @ near_x.T + PRIOR))


def _levels(found: Sequence[FloatArray]) -> FloatArray:
    """The same for all panels, from where hardly anybody looked to the best."""
    low, high = float(np.median(found)), float(np.max(found))
    return np.linspace(low, max(high, low + 1e-9), LEVELS + 1)


def _both(tuning: TuningReport, a: ParameterInfo, b: ParameterInfo) -> list[Trial]:
    return [t for t in tuning.done if a.path in t.params and b.path in t.params]


def _spans(a: ParameterInfo, b: ParameterInfo, own: Sequence[Trial]) -> bool:
    """Whether there are places enough, and not all on one line."""
    if len(own) < LEAST_POINTS:
        return False
    places = np.unique(np.array([in_unit(a, own), in_unit(b, own)]).T.round(6), axis=0)
    return len(places) >= LEAST_POINTS and np.linalg.matrix_rank(places - places[0]) == 2


def _panel(
    axes: Axes, tuning: TuningReport, pair: Pair, mean: FloatArray, levels: FloatArray
) -> None:
    a, b, own = pair
    axes.contourf(_axis(a), _axis(b), mean, levels=levels, cmap="Blues", extend="min")
    axes.contour(_axis(a), _axis(b), mean, levels=levels, colors="white", linewidths=0.5)
    axes.plot(on_axis(a, own), on_axis(b, own), ".", color=SOFT, ms=2, clip_on=False)
    for trial, kind in ((default_trial(tuning), "default"), (chosen_trial(tuning), "chosen")):
        if a.path in trial.params and b.path in trial.params:
            mark, colour = MARKS[kind]
            place = on_axis(a, [trial]), on_axis(b, [trial])
            axes.plot(*place, mark, color=colour, ms=10, mec="white", mew=0.5, clip_on=False)
    set_scale(axes, a, "x")
    set_scale(axes, b, "y")
    axes.set_xlabel(plain(_short(a.path, 32)))
    axes.set_ylabel(plain(_short(b.path, 32)))


def _axis(parameter: ParameterInfo) -> FloatArray:
    """(CELLS,): the values at evenly spread places of the range."""
    ends = np.array([parameter.low, parameter.high], dtype=np.float64)
    if parameter.log:
        return np.asarray(np.geomspace(ends[0], ends[1], CELLS))
    return np.linspace(ends[0], ends[1], CELLS)
