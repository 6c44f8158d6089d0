"""Differences as bars of text characters, where nothing but text can be shown.

One line a difference: its bar begins at 0, a thin line goes on to its bound, and a mark stands at
the largest drop that is allowed::

    attack / nDCG@10  -0.0173  ├─██████┊███████│
    attack / RR@10    +0.0020          ┊      ├│██
                               -0.019          0          +0.019
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from fusion_bench.util.formatting import escape_control_chars, format_number

#: Characters on each side of 0.
HALF_WIDTH = 16
#: Longer names are cut.
MAX_NAME_WIDTH = 40
ZERO, BAR, LIMIT, LINE, BOUND = "│", "█", "┊", "─", "├"


@dataclass(frozen=True)
class BarRow:
    """A difference and what it is held to.

    Attributes:
        name: What was measured.
        difference: Candidate − baseline.
        bound: Lower bound of the difference; None = not known.
        limit: The difference that is still allowed; 0 or less.
    """

    name: str
    difference: float
    bound: float | None
    limit: float


def draw_bars(rows: Sequence[BarRow]) -> list[str]:
    """One line for each row, all on one scale, which the last line gives.

    Args:
        rows: At least one; every number finite.
    """
    numbers = [
        abs(number) for row in rows for number in (row.difference, row.bound or 0.0, row.limit)
    ]
    scale = max(numbers) or 1.0
    names = _align_texts([_cut_name(row.name) for row in rows])
    values = [format_number(row.difference, signed=True) for row in rows]
    width = max(map(len, values))
    lines = [
        f"{name}  {value:>{width}}  {_draw_bar(row, scale)}".rstrip()
        for name, value, row in zip(names, values, rows, strict=True)
    ]
    ends = f"-{scale:.2g}".ljust(HALF_WIDTH) + "0" + f"+{scale:.2g}".rjust(HALF_WIDTH)
    return [*lines, f"{'':{cell_len(names[0])}}  {'':{width}}  {ends}"]


def _draw_bar(row: BarRow, scale: float) -> str:
    """The bar of one difference, 0 in the middle."""
    zero = HALF_WIDTH
    end = zero + round(row.difference / scale * HALF_WIDTH)
    cells = [" "] * (2 * HALF_WIDTH + 1)
    if row.bound is not None:
        bound = zero + round(row.bound / scale * HALF_WIDTH)
        cells[bound : end + 1] = [BOUND, *LINE * (end - bound)][: end + 1 - bound]
    first, last = min(zero, end), max(zero, end)
    cells[first : last + 1] = [BAR] * (last + 1 - first)
    cells[zero] = ZERO
    if row.limit < 0:
        cells[min(zero - 1, zero + round(row.limit / scale * HALF_WIDTH))] = LIMIT
    return "".join(cells)


def _cut_name(name: str) -> str:
    shown = escape_control_chars(name)
    if cell_len(shown) <= MAX_NAME_WIDTH:
        return shown
    return f"{set_cell_size(shown, MAX_NAME_WIDTH - 1)}…"


def _align_texts(texts: Sequence[str]) -> list[str]:
    """The texts with spaces behind them, all as wide as the widest."""
    width = max(map(cell_len, texts))
    return [set_cell_size(text, width) for text in texts]
