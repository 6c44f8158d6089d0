"""Pictures of a collection, for those who see faster than they read.

Importing this module imports matplotlib. Nothing global is used: no pyplot, no rc file of the
user, so the same report gives the same bytes.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.util.formatting import escape_control_chars, format_number

__all__ = ["bars", "differences", "new_figure", "plain", "png", "styled"]

# Okabe & Ito's palette: told apart with any colour vision; marks differ in shape as well.
BLUE, RED, ORANGE, GREEN, INK, SOFT = (
    "#0072B2",
    "#D55E00",
    "#B07800",
    "#007A5E",
    "#222222",
    "#777777",
)
#: By verdict: marker, colour, filled, legend.
MARKS: dict[str, tuple[str, str, bool, str]] = {
    "baseline": ("s", INK, True, "baseline"),
    "better": ("^", BLUE, True, "better than the baseline (Holm)"),
    "worse": ("v", RED, True, "worse (Holm)"),
    "no difference shown": ("o", SOFT, True, "no difference shown"),
    "identical": ("o", SOFT, True, "no difference shown"),
    "no verdict": ("o", SOFT, False, "no verdict: judged only, the sign flips"),
    "": ("o", SOFT, True, "not adjusted: does not decide"),
}
LINES: tuple[tuple[Any, str], ...] = (
    ("--", INK),
    (":", RED),
    ("-.", ORANGE),
    ((0, (6, 2, 1, 2, 1, 2)), GREEN),
)
WIDTH, ROW, DPI = 9.0, 0.27, 120
#: Longer names are shortened in the middle: both ends tell systems apart.
LONGEST = 44
#: The same above a panel, for a collection in a title, and for its split and type there.
IN_PANEL, IN_TITLE, PART = 32, 30, 14
#: A ceiling stays off the axis where it would take more than this many times the systems' range.
STRETCH = 1.2
PANELS = 6
STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
}


def png(figure: Figure) -> bytes:
    """The picture; the same bytes for the same figure."""
    out = io.BytesIO()
    with styled():
        figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def bars(collection: Collection, measure: str, *, alpha: float = 0.05) -> Figure:
    """Means with intervals, in the order of the tables, and what to hold them against.

    Args:
        collection: What was found.
        measure: One of its measures. Only on the primary one do marks tell real differences.
        alpha: 1 − coverage of the intervals.
    """
    rows = _as_in_tables(collection)
    marks = [_mark(collection, measure, row) for row in rows]
    with styled():
        figure = new_figure(WIDTH, 2.1 + ROW * len(rows) + 0.1 * len(set(marks)))
        axes = figure.add_subplot()
        for y, (row, mark) in enumerate(zip(rows, marks, strict=True)):
            _dot(axes, row, measure, y, mark)
        _name_rows(axes, rows, measure)
        seen = {MARKS[mark][3]: _handle(mark) for mark in MARKS if mark in marks}
        handles = [*seen.values(), *_reference_lines(axes, collection, measure)]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
        axes.set_xlabel(
            f"{plain(measure)}: mean and {100 - 100 * alpha:.6g} % interval of each system alone\n"
            f"{_caption(collection, measure)}"
        )
        figure.suptitle(_title(collection, measure), fontsize=11, fontweight="bold")
    return figure


def differences(collection: Collection, candidates: Sequence[str] | None = None) -> Figure:
    """Per query: system − baseline on the primary measure, sorted; one panel a system.

    Args:
        collection: What was found.
        candidates: Which systems; by default the best few by mean.
    """
    names = [row.name for row in collection.ranked_systems if row.name != collection.baseline]
    chosen = list(names[:PANELS] if candidates is None else candidates)
    columns = min(3, max(1, len(chosen)))
    lines = max(1, math.ceil(len(chosen) / columns))
    with styled():
        figure = new_figure(WIDTH, 1.2 + 2.3 * lines)
        title = _title(collection, collection.primary_measure)
        figure.suptitle(
            f"{title}\nper query: system - {plain(_short(collection.baseline))} (the baseline)",
            fontsize=11,
            fontweight="bold",
        )
        if not chosen:
            figure.text(0.5, 0.4, "only one system: nothing to compare", ha="center")
            return figure
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        for axes, name in zip(panels, chosen, strict=False):
            _panel(axes, collection, name)
        for axes in panels[len(chosen) :]:
            axes.set_visible(False)
        figure.supylabel(f"difference in {plain(collection.primary_measure)}", fontsize=9)
        figure.supxlabel("queries, sorted by their difference", fontsize=9)
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's own defaults and ours; no word about characters that its font lacks."""
    defaults = {k: v for k, v in mpl.rcParamsDefault.items() if not k.startswith("backend")}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        with mpl.rc_context(cast("Any", {**defaults, **STYLE})):
            yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def plain(text: str) -> str:
    """Text that is shown as it is, and no formula."""
    return escape_control_chars(text).replace("$", r"\$")


def _short(name: str, longest: int = LONGEST) -> str:
    half = longest // 2
    return name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}"


def _title(collection: Collection, measure: str) -> str:
    part = "" if collection.split is None else f", split {plain(_short(collection.split, PART))}"
    if collection.query_type is not None:
        part += f", type {plain(_short(collection.query_type, PART))}"
    queries = f"{len(collection.queries):,} queries"
    return f"{plain(measure)} on {plain(_short(collection.name, IN_TITLE))}{part}: {queries}"


def _value(value: float | None) -> float:
    return math.nan if value is None else value


def _caption(collection: Collection, measure: str) -> str:
    """What an eye could take for a contradiction."""
    if measure == collection.primary_measure:
        return "colours go by the paired test, which sees differences where such intervals overlap"
    return f"in the order of the tables, which is that of {plain(collection.primary_measure)}"


def _as_in_tables(collection: Collection) -> list[SystemResult]:
    """In the order of the tables, the last first, as y grows upwards."""
    return list(collection.ranked_systems)[::-1]


def _mark(collection: Collection, measure: str, row: SystemResult) -> str:
    if row.name == collection.baseline:
        return "baseline"
    found = collection.comparison(row.name, measure)
    return "" if found is None or found.answer is None else found.answer


def _dot(axes: Axes, row: SystemResult, measure: str, y: int, mark: str) -> None:
    result = row.measures[measure]
    shape, colour, filled, _ = MARKS[mark]
    axes.plot(
        [_value(result.low), _value(result.high)], [y, y], color=colour, lw=1.6, zorder=2, alpha=0.8
    )
    axes.plot(
        [_value(result.mean)], [y], shape, ms=6, color=colour, mfc=colour if filled else "white"
    )


def _handle(mark: str) -> Line2D:
    shape, colour, filled, label = MARKS[mark]
    face = colour if filled else "white"
    return Line2D([], [], marker=shape, color=colour, mfc=face, lw=1.6, label=label)


def _name_rows(axes: Axes, rows: Sequence[SystemResult], measure: str) -> None:
    """Names on the left, means on the right."""
    axes.set_yticks(range(len(rows)), [plain(_short(row.name)) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.tick_params(left=False)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), [format_number(row.measures[measure].mean) for row in rows])
    right.tick_params(right=False)
    right.spines["right"].set_visible(False)


def _reference_lines(axes: Axes, collection: Collection, measure: str) -> list[Line2D]:
    """Baseline, floor and ceilings, with their legend entries.

    One that is far away is only named, so that the rest can be told apart.
    """
    bounds = [row for row in collection.systems if row.kind != "system"]
    base = collection.system(collection.baseline)
    low, high = axes.get_xlim()
    reach = high + STRETCH * (high - low)
    handles = []
    for row, (dashes, colour) in zip((base, *bounds), LINES, strict=False):
        mean = _value(row.measures[measure].mean)
        beyond = " (off the axis)" if not low - (high - low) <= mean <= reach else ""
        if not beyond:
            axes.axvline(mean, ls=dashes, color=colour, lw=1.3, zorder=1)
        what = "baseline " if row is base else ""
        label = f"{what}{plain(_short(row.name))} {format_number(mean)}{beyond}"
        handles.append(Line2D([], [], ls=dashes, color=colour, lw=1.3, label=label))
    return handles


def _panel(axes: Axes, collection: Collection, name: str) -> None:
    primary = collection.primary_measure
    rows = (collection.system(name), collection.system(collection.baseline))
    values = [np.array(row.measures[primary].values, dtype=np.float64) for row in rows]
    difference = values[0] - values[1]
    difference = -np.sort(-difference[np.isfinite(difference)])
    _steps(axes, difference, BLUE, difference > 0)
    _steps(axes, difference, RED, difference < 0)
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_xlim(0, max(1, len(difference)))
    last = max(1, len(difference))
    axes.set_xticks([0, last // 2, last] if last > 1 else [0, 1])
    # The last one of a panel would run into the first of its neighbour.
    axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.set_title(plain(_short(name, IN_PANEL)), fontsize=9, loc="left")
    found = collection.comparison(name, primary)
    if found is not None:
        axes.axhline(found.difference, color=INK, lw=1.1, ls="--")
        axes.text(
            0.97,
            0.95,
            f"mean (dashed) {format_number(found.difference, signed=True)}\n{found.answer}\n"
            f"{found.wins:,} wins · {found.ties:,} ties · {found.losses:,} losses",
            transform=axes.transAxes,
            ha="right",
            va="top",
            fontsize=8,
        )


def _steps(axes: Axes, difference: FloatArray, colour: str, where: NDArray[np.bool_]) -> None:
    """One bar a query, without a seam between neighbours."""
    axes.stairs(np.where(where, difference, 0.0), fill=True, color=colour, zorder=1.5)
