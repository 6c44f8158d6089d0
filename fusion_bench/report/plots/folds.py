"""Where each fold of the nested cross-validation put each parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

import fusion_bench.report.plots._base as base
from fusion_bench.report.page import Figure
from fusion_bench.report.plots._parameters import MARKS, format_tuning_title, unit_positions
from fusion_bench.report.tuning.format_values import format_range
from fusion_bench.report.tuning_records.trials import ParameterInfo
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_percent

#: Points nearer to each other than this share of the range are drawn as one, and counted.
MERGE_DISTANCE = 0.01


@base.register_plot("folds", "tuning", position=6)
def fold_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where there are folds."""
    if not report.folds:
        return
    caption = (
        "Values that the search chose without each fold, from the least (left) to the greatest of "
        "the range; choices stand in the order of their list. ×n marks n folds "
        "with the same value. Points close together mean that the queries agree. Points all over "
        "the range of a parameter that matters mean that it was fitted to the queries at hand."
    )
    spreads = report.fold_spreads
    if len(spreads) > 1:
        near, far = (extreme(spreads, key=lambda path: spreads[path]) for extreme in (min, max))
        caption += (
            f" Smallest spread: {near} ({format_percent(spreads[near])} of its range). Largest: "
            f"{far} ({format_percent(spreads[far])})."
        )
    yield Figure("folds.png", "Spread over the folds", caption, partial(draw_folds, report))


def draw_folds(report: TuningReport) -> Drawing:
    """One row a parameter: the value of each fold, the default and the tuned value."""
    parameters = report.parameters[::-1]
    with base.open_drawing(1.3 + 0.36 * len(parameters)) as (drawing, [axes]):
        for y, parameter in enumerate(parameters):
            _draw_row(axes, report, parameter, y)
        pairs = [(p.path, format_range(p)) for p in parameters]
        names = [f"{base.plot_text(path)}\n{base.plot_text(text)}" for path, text in pairs]
        axes.set_yticks(range(len(parameters)), names, fontsize=8)
        axes.set_xticks([0, 0.5, 1], ["least", "middle", "greatest"])
        axes.set_xlabel("position in its range, or in the list of its choices")
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.6, len(parameters) - 0.3))
        drawing.suptitle(format_tuning_title(report, "Spread over the folds"))
    return drawing


def _draw_row(axes: Axes, report: TuningReport, parameter: ParameterInfo, y: int) -> None:
    """One point a position, with the number of folds that it stands for, and the marked values."""
    positions = unit_positions(
        parameter, [fold.params.get(parameter.path) for fold in report.folds]
    )
    counts = Counter(round(x / MERGE_DISTANCE) * MERGE_DISTANCE for x in positions)
    label = "without one fold (×: so many folds)"
    axes.plot(list(counts), [y] * len(counts), "o", color=base.BLUE, ms=6, alpha=0.5, label=label)
    for x, count in counts.items():
        if count > 1:
            axes.text(x, y + 0.15, f"×{count}", ha="center", va="bottom", fontsize=7)
    chosen = report.choice.params.get(parameter.path)
    for key, value in (("default", parameter.default), ("chosen", chosen)):
        mark, color = MARKS[key]
        marked = unit_positions(parameter, [value])
        axes.plot(marked, [y] * len(marked), mark, color=color, ms=7, label=key)
