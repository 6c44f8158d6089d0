"""The leaderboard as a heat map: a row a system, a column a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.studies.leaderboard.methods import BASELINE
from benchmarks.studies.leaderboard.results import COMPARED, CollectionResults, row_names
from fusion_bench.stats.comparison import BETTER, WORSE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Differences beyond these have the last color.
LIMIT: Final = 0.1
#: Engines mostly repeat a method: they stand on the page alone.
DRAWN: Final = tuple(kind for kind in COMPARED if not kind.startswith("engine"))
MARKS: Final[dict[str, str]] = {**dict.fromkeys(BETTER, "▲"), **dict.fromkeys(WORSE, "▼")}


def draw_heat_map(results: Sequence[CollectionResults]) -> Figure:
    """Differences from the baseline, best mean rank first within each kind."""
    from matplotlib.figure import Figure

    names, borders = _ordered_rows(results)
    grid = np.array([[_difference(each, name) for each in results] for name in names])
    drawing = Figure(figsize=(3.5 + 0.85 * len(results), 1.6 + 0.19 * len(names)))
    drawing.set_layout_engine("constrained")
    axes = drawing.subplots()
    image = axes.imshow(grid, cmap="RdBu", vmin=-LIMIT, vmax=LIMIT, aspect="auto")
    axes.set_xticks(
        range(len(results)), [each.head.name for each in results], rotation=35, ha="left"
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(names)), names, fontsize=7)
    for border in borders:
        axes.axhline(border - 0.5, color="#222222", lw=0.8)
    for y, name in enumerate(names):
        for x, each in enumerate(results):
            if np.isfinite(grid[y, x]):
                mark = MARKS.get(each.answer(name) or "", "")
                color = "white" if abs(grid[y, x]) > 0.6 * LIMIT else "#222222"
                text = f"{1000 * grid[y, x]:+.0f} {mark}"
                axes.text(x, y, text, ha="center", va="center", fontsize=6, color=color)
    axes.set_title(f"Difference from {BASELINE} in nDCG@10 × 1,000; ▲ better, ▼ worse", fontsize=9)
    drawing.colorbar(image, ax=axes, shrink=0.3, extend="both")
    return drawing


def _ordered_rows(results: Sequence[CollectionResults]) -> tuple[list[str], list[int]]:
    """Names of the rows, and where a kind begins."""
    names: list[str] = []
    borders = []
    for kind in DRAWN:
        known = [name for name in row_names(results, kind) if name != BASELINE]
        borders += [len(names)] if names and known else []
        names += known
    return names, borders


def _difference(each: CollectionResults, name: str) -> float:
    first, baseline = each.mean(name), each.mean(BASELINE)
    return np.nan if first is None or baseline is None else first - baseline
