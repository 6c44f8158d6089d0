"""Two parameters at a time: the local mean of the trials.

The other parameters differ from trial to trial, so that neighbors differ by chance. The surface is
a local mean; where there are few trials it is as low as the worst quarter of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure as Drawing

from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._base import (
    GRAY,
    create_panels,
    plot_style,
    plot_text,
    tuning_plot,
)
from fusion_bench.report.plots._parameters import (
    MARKS,
    axis_positions,
    marked_trials,
    set_parameter_scale,
    sort_by_importance,
    trial_values,
    unit_positions,
)
from fusion_bench.report.tuning_records import ParameterInfo, Trial, TuningReport

__all__ = ["contour_pairs", "draw_contours", "smooth_values"]

#: Pairs are made of so many of the most important parameters, if they are numbers.
MAX_PARAMETERS = 4
#: A surface needs so many different positions.
MIN_POSITIONS = 12
#: Width of the local mean, as a share of a range.
BANDWIDTH = 0.08
#: The worst quarter's bound counts as so many trials at every position.
PRIOR_WEIGHT = 1.0
CELLS = 60
LEVELS = 8
CAPTION = (
    "Two parameters at a time (square: default, star: tuned, dots: trials). The darker, the better "
    "were the trials around. A diagonal ridge means that the two depend on each other: changing "
    "one alone undoes the other. In the palest area there are few trials or only bad ones."
)


class Pair(NamedTuple):
    """Two parameters and the trials that have both."""

    x: ParameterInfo
    y: ParameterInfo
    trials: list[Trial]

    def positions(self) -> FloatArray:
        """Shape (2, T): positions in both ranges, 0 … 1."""
        values = [[trial.params[p.path] for trial in self.trials] for p in (self.x, self.y)]
        return np.array([unit_positions(p, v) for p, v in zip(self[:2], values, strict=True)])


@tuning_plot("contours", position=5)
def contour_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where two numbers have enough trials."""
    pairs = contour_pairs(report)
    if pairs:
        draw = partial(draw_contours, report, pairs)
        yield Figure("contours.png", "Contours", CAPTION, draw)


def contour_pairs(report: TuningReport) -> list[Pair]:
    """Pairs of the most important numbers whose trials span a plane."""
    numbers = [p for p in sort_by_importance(report)[:MAX_PARAMETERS] if p.kind != "choice"]
    pairs = []
    for x, y in combinations(numbers, 2):
        trials = [t for t in report.done if x.path in t.params and y.path in t.params]
        pair = Pair(x, y, trials)
        # Of two weights of which only the ratio counts one is 1: they span no plane.
        if not (x.ratio and y.ratio) and _spans_plane(pair):
            pairs.append(pair)
    return pairs


def _spans_plane(pair: Pair) -> bool:
    """Whether there are enough positions, and not all on one line."""
    if len(pair.trials) < MIN_POSITIONS:
        return False
    positions = np.unique(pair.positions().T.round(6), axis=0)
    rank = np.linalg.matrix_rank(positions - positions[0])
    return len(positions) >= MIN_POSITIONS and bool(rank == 2)


def draw_contours(report: TuningReport, pairs: Sequence[Pair]) -> Drawing:
    """Local mean over each pair, with one scale for all."""
    surfaces = [smooth_values(pair.positions(), trial_values(pair.trials)) for pair in pairs]
    low, high = float(np.median(surfaces)), float(np.max(surfaces))
    levels = np.linspace(low, max(high, low + 1e-9), LEVELS + 1)
    with plot_style():
        drawing, panels = create_panels(len(pairs), margin=0.6, height=2.7, sharey=False)
        for axes, pair, surface in zip(panels, pairs, surfaces, strict=True):
            _draw_panel(axes, pair, surface, levels)
            _mark_trials(axes, report, pair)
        drawing.colorbar(
            ScalarMappable(BoundaryNorm(levels, 256, extend="min"), "Blues"),
            ax=panels,
            label=f"{plot_text(report.measure)}, tuning queries, local mean",
            format="%.3f",
            aspect=40,
        )
    return drawing


def smooth_values(positions: FloatArray, values: FloatArray) -> FloatArray:
    """Mean of the trials around each position, weighted by distance.

    Source: Nadaraya 1964, Watson 1964, with a Gaussian kernel; shrunk to the lower quartile, since
    a search rarely visits where it is bad.

    Args:
        positions: Shape (2, T), positions in the ranges of both parameters, 0 … 1.
        values: Shape (T,).

    Returns:
        Shape (CELLS, CELLS), rows along y.
    """
    grid = np.linspace(0, 1, CELLS)
    weights_x, weights_y = (
        np.exp(-((grid[:, None] - side) ** 2) / (2 * BANDWIDTH**2)) for side in positions
    )
    prior = PRIOR_WEIGHT * float(np.quantile(values, 0.25))
    totals = weights_y @ weights_x.T + PRIOR_WEIGHT
    return np.asarray(((weights_y * values) @ weights_x.T + prior) / totals)


def _draw_panel(axes: Axes, pair: Pair, surface: FloatArray, levels: FloatArray) -> None:
    grids = [_grid(parameter) for parameter in pair[:2]]
    axes.contourf(*grids, surface, levels=levels, cmap="Blues", extend="min")
    axes.contour(*grids, surface, levels=levels, colors="white", linewidths=0.5)
    positions = [axis_positions(parameter, pair.trials) for parameter in pair[:2]]
    axes.plot(*positions, ".", color=GRAY, ms=2, clip_on=False)
    set_parameter_scale(axes, pair.x, is_x=True)
    set_parameter_scale(axes, pair.y, is_x=False)
    axes.set_xlabel(plot_text(pair.x.path, 32))
    axes.set_ylabel(plot_text(pair.y.path, 32))


def _mark_trials(axes: Axes, report: TuningReport, pair: Pair) -> None:
    for key, trial in marked_trials(report).items():
        if pair.x.path in trial.params and pair.y.path in trial.params:
            mark, color = MARKS[key]
            position = [axis_positions(parameter, [trial]) for parameter in pair[:2]]
            axes.plot(*position, mark, color=color, ms=10, mec="white", mew=0.5, clip_on=False)


def _grid(parameter: ParameterInfo) -> FloatArray:
    """Shape (CELLS,): values at evenly spaced positions of the range."""
    ends = np.array([parameter.low, parameter.high], dtype=np.float64)
    return np.asarray((np.geomspace if parameter.log else np.linspace)(ends[0], ends[1], CELLS))
