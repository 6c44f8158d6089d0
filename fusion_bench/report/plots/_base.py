"""What all plots share: the registry, the style, and how text and names are drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from fusion_bench.config.registry import Registry
from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.page import Figure
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
    "figure.dpi": DPI,
    "figure.constrained_layout.use": True,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "figure.labelsize": 9,
    "legend.frameon": False,
    "svg.hashsalt": "fusion_bench",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRAY,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
}

PageKind: TypeAlias = Literal["evaluation", "tuning"]
F = TypeVar("F", bound=Callable[..., Iterable[Figure]])


@dataclass(frozen=True)
class Plot:
    """A plot of one kind of page.

    Attributes:
        page: Where it appears.
        position: Plots appear in this order, then by name.
        make_figures: The figures of a record; empty where it has nothing to show. Called with the
            report and one of its collections, or with the tuning report.
    """

    page: PageKind
    position: int
    make_figures: Callable[..., Iterable[Figure]]


REGISTRY: Registry[Plot] = Registry("plot", "fusion_bench.report.plots", "fusion_bench.plots")


def register_plot(name: str, page: PageKind, *, position: int) -> Callable[[F], F]:
    """Decorator: register what makes a plot's figures; see :class:`Plot`."""

    def register(function: F) -> F:
        REGISTRY.add_plugin(name, Plot(page, position, function))
        return function

    return register


def make_figures(page: PageKind, *records: object) -> Iterator[Figure]:
    """All figures of one collection of an evaluation, or of a tuning run.

    Args:
        page: Which of the two.
        records: The report and the collection, or the tuning report.
    """
    plots = [plot for plot in REGISTRY.load_all().values() if plot.page == page]
    for plot in sorted(plots, key=lambda plot: plot.position):
        yield from plot.make_figures(*records)


def render_png(drawing: Drawing) -> bytes:
    """The drawing as PNG; the same bytes for the same drawing."""
    out = io.BytesIO()
    with plot_style():
        drawing.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def render_svg(drawing: Drawing) -> bytes:
    """The drawing as SVG with its texts as outlines; the same bytes for the same drawing."""
    out = io.BytesIO()
    with plot_style():
        drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


@contextmanager
def plot_style() -> Iterator[None]:
    """Matplotlib's defaults and ours, without warnings about missing glyphs."""
    defaults = {k: v for k, v in mpl.rcParamsDefault.items() if not k.startswith("backend")}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        with mpl.rc_context(cast("Any", {**defaults, **STYLE})):
            yield


@contextmanager
def open_drawing(
    height: float,
    count: int = 1,
    *,
    columns: int = 3,
    margin: float = 0.0,
    width: float = WIDTH,
    legend_columns: int = 4,
    **options: Any,  # noqa: ANN401 - as Matplotlib takes them
) -> Iterator[tuple[Drawing, list[Axes]]]:
    """A drawing and its panels; at the end the labels of all panels become its legend.

    Args:
        height: Of a row of panels, in inches.
        count: How many panels.
        columns: So many stand in a row at most.
        margin: Added to the height.
        width: Of the drawing, in inches.
        legend_columns: Of the legend, which stands below.
        options: For ``Figure.subplots``.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    with plot_style():
        drawing = Drawing(figsize=(width, margin + height * rows))
        panels = list(drawing.subplots(rows, columns, squeeze=False, **options).ravel())
        for axes in panels[count:]:
            axes.remove()
        yield drawing, panels[:count]
        pairs = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels[:count])
        handles = {label: handle for pair in pairs for handle, label in pair}
        if handles:
            drawing.legend(
                list(handles.values()),
                list(handles),
                loc="outside lower center",
                ncols=legend_columns,
            )


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
