"""What all plots share: the registry, the style, and how text and names are drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing

from fusion_bench.config.registry import Registry
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_records import Collection, Report
from fusion_bench.report.page import Figure
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.util.formatting import escape_control_chars

# Okabe & Ito's palette: told apart with any color vision; marks differ in shape as well.
BLUE, RED, ORANGE, GREEN = "#0072B2", "#D55E00", "#B07800", "#007A5E"
INK, GRAY = "#222222", "#777777"
#: Inches, and pixels per inch.
WIDTH, DPI = 9.0, 120
#: Longer names are shortened in the middle: both ends tell systems apart.
MAX_LENGTH = 44
STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRAY,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
}

EvaluationFigures: TypeAlias = Callable[[Report, Collection], Iterable[Figure]]
TuningFigures: TypeAlias = Callable[[TuningReport], Iterable[Figure]]


@dataclass(frozen=True)
class Plot:
    """A plot of one kind of page.

    Attributes:
        page: Where it appears.
        position: Plots appear in this order, then by name.
        make_figures: The figures of a record; empty where it has nothing to show. Called with the
            report and one of its collections, or with the tuning report.
    """

    page: Literal["evaluation", "tuning"]
    position: int
    make_figures: Callable[..., Iterable[Figure]]


REGISTRY: Registry[Plot] = Registry("plot", "fusion_bench.report.plots", "fusion_bench.plots")


def evaluation_plot(
    name: str, *, position: int
) -> Callable[[EvaluationFigures], EvaluationFigures]:
    """Decorator: register the figures of one collection of an evaluation."""

    def register(function: EvaluationFigures) -> EvaluationFigures:
        REGISTRY.add_plugin(name, Plot("evaluation", position, function))
        return function

    return register


def tuning_plot(name: str, *, position: int) -> Callable[[TuningFigures], TuningFigures]:
    """Decorator: register the figures of a tuning run."""

    def register(function: TuningFigures) -> TuningFigures:
        REGISTRY.add_plugin(name, Plot("tuning", position, function))
        return function

    return register


def _plots_of(page: str) -> list[Plot]:
    plots = [plot for plot in REGISTRY.load_all().values() if plot.page == page]
    return sorted(plots, key=lambda plot: plot.position)


def collection_figures(report: Report, collection: Collection) -> Iterator[Figure]:
    """All figures of one collection of an evaluation."""
    for plot in _plots_of("evaluation"):
        yield from plot.make_figures(report, collection)


def tuning_figures(report: TuningReport) -> Iterator[Figure]:
    """All figures of a tuning run."""
    for plot in _plots_of("tuning"):
        yield from plot.make_figures(report)


def render_png(drawing: Drawing) -> bytes:
    """The drawing as PNG; the same bytes for the same drawing."""
    out = io.BytesIO()
    with plot_style():
        drawing.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


@contextmanager
def plot_style() -> Iterator[None]:
    """Matplotlib's defaults and ours, without warnings about missing glyphs."""
    defaults = {k: v for k, v in mpl.rcParamsDefault.items() if not k.startswith("backend")}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        with mpl.rc_context(cast("Any", {**defaults, **STYLE})):
            yield


def create_drawing(width: float, height: float) -> Drawing:
    """An empty drawing, in inches."""
    drawing = Drawing(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(drawing)
    return drawing


def create_panels(
    count: int, *, margin: float, height: float, sharey: bool = True
) -> tuple[Drawing, list[Axes]]:
    """A drawing with ``count`` panels, at most three in a line; heights in inches."""
    columns = min(3, max(1, count))
    lines = max(1, -(-count // columns))
    drawing = create_drawing(WIDTH, margin + height * lines)
    panels = list(drawing.subplots(lines, columns, sharey=sharey, squeeze=False).ravel())
    for axes in panels[count:]:
        axes.set_visible(False)
    return drawing, panels[:count]


def plot_text(text: str, max_length: int = MAX_LENGTH) -> str:
    """Text that is drawn as it is, and is no formula; shortened in the middle."""
    half = max_length // 2
    if len(text) > max_length:
        text = f"{text[: half - 1]}…{text[-half:]}"
    return escape_control_chars(text).replace("$", r"\$")


def draw_sorted_differences(axes: Axes, differences: FloatArray) -> None:
    """One bar a query, the largest first: gains blue, losses red."""
    ordered = -np.sort(-differences)
    for color, where in ((BLUE, ordered > 0), (RED, ordered < 0)):
        axes.stairs(np.where(where, ordered, 0.0), fill=True, color=color, zorder=1.5)
    axes.axhline(0, color=INK, lw=0.8)
