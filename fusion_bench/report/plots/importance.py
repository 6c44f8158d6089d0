"""Importance of each parameter, beside what it alone is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from fusion_bench.report.page import Figure
from fusion_bench.report.plots._base import (
    BLUE,
    INK,
    WIDTH,
    create_drawing,
    plot_style,
    plot_text,
    tuning_plot,
)
from fusion_bench.report.plots._parameters import sort_by_importance
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.util.formatting import format_number, format_percent

__all__ = ["draw_importance"]


@tuning_plot("importance", position=3)
def importance_figures(report: TuningReport) -> Iterator[Figure]:
    """The figure, where enough trials tell."""
    if not report.importances:
        return
    first = report.importances[0]
    caption = (
        f"Left: {first.path} has {format_percent(first.share)} of the importance (PED-ANOVA): the "
        "best tenth of the trials differs most from the others in it. Importance describes where "
        "the search went; a choice that it soon gave up has little."
    )
    losses = report.ablation_losses
    if losses:
        path = max(losses, key=lambda path: losses[path])
        caption += (
            " Right: loss on the tuning queries with one parameter of the tuned system back at its "
            f"default. {path} loses most ({format_number(losses[path])} {report.measure}). "
            "Parameters with little on both sides can stay at their defaults."
        )
    draw = partial(draw_importance, report)
    yield Figure("importance.png", "Parameter importance", caption, draw)


def draw_importance(report: TuningReport) -> Drawing:
    """Importance of each parameter, the greatest on top, and the loss without its tuning."""
    shares = {importance.path: importance.share for importance in report.importances}
    losses = report.ablation_losses
    ordered = [parameter.path for parameter in sort_by_importance(report)]
    paths = [path for path in ordered if path in {*shares, *losses}][::-1]
    with plot_style():
        drawing = create_drawing(WIDTH, 1.3 + 0.3 * len(paths))
        panels = drawing.subplots(1, 2 if losses else 1, sharey=True, squeeze=False)[0]
        _draw_bars(panels[0], [shares.get(path) for path in paths], "share of importance", "{:.2f}")
        if losses:
            label = f"{plot_text(report.measure)} lost, back at the default"
            _draw_bars(panels[1], [losses.get(path) for path in paths], label, "{:.4f}")
        panels[0].set_yticks(range(len(paths)), [plot_text(path) for path in paths])
    return drawing


def _draw_bars(axes: Axes, values: Sequence[float | None], label: str, template: str) -> None:
    """One bar a parameter; none, and a dash, where nothing is known."""
    bars = axes.barh(range(len(values)), [v or 0.0 for v in values], color=BLUE, height=0.6)
    texts = ["–" if value is None else template.format(value) for value in values]
    axes.bar_label(bars, texts, padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.axvline(0, color=INK, lw=0.6)
    axes.set_xlabel(label)
