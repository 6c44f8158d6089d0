"""The rows of all benchmarks as Markdown and as a picture."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.timing import Row

__all__ = ["draw", "markdown", "put"]

#: How a number is written, by the unit that its column ends in.
FORMATS = {"ms": "{:,.2f} ms", "s": "{:,.3g} s", "GB": "{:.1f} GB", "ratio": "{:,.0f}×"}
#: Below it a ratio has a decimal place.
SMALL = 20


def markdown(title: str, rows: list[Row]) -> str:
    """A table of what each row has, in the columns of the first."""
    columns = list(rows[0])
    numbers = [isinstance(rows[0][column], float) for column in columns]
    lines = [
        f"**{title}**\n",
        "| " + " | ".join(_heading(column) for column in columns) + " |",
        "|" + "|".join("---:" if number else "---" for number in numbers) + "|",
        *("| " + " | ".join(_cell(row, column) for column in columns) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _heading(column: str) -> str:
    name, _, unit = column.rpartition(" ")
    return f"{name} ×" if unit == "ratio" else name if unit in FORMATS else column


def _cell(row: Row, column: str) -> str:
    value = row.get(column, "")
    if isinstance(value, str):
        return value
    unit = column.rpartition(" ")[2]
    return _times(value) if unit == "ratio" else FORMATS.get(unit, "{:,.3g}").format(value)


def _times(value: float) -> str:
    return f"{value:.1f}×" if value < SMALL else FORMATS["ratio"].format(value)


def put(path: Path, text: str, mark: str = "bench") -> None:
    """Replace what stands between the two marks in a file.

    Raises:
        ValueError: The marks are not there.
    """
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    after, count = pattern.subn(lambda _: f"{begin}\n{text}{end}", before)
    if count != 1:
        raise ValueError(f"{path}: {begin} … {end} must stand there once")
    path.write_text(after, encoding="utf-8")


def draw(groups: dict[str, list[Row]], path: Path) -> None:
    """How many times as fast as the peer, a bar for each ratio of each row."""
    from matplotlib.figure import Figure

    bars = [
        (f"{_named(row)}: {column.removesuffix(' ratio')}", float(value))
        for rows in groups.values()
        for row in rows
        for column, value in row.items()
        if column.endswith("ratio")
    ]
    figure = Figure(figsize=(10, 0.9 + 0.26 * len(bars)), layout="constrained")
    axes = figure.subplots()
    axes.barh([name for name, _ in bars], [value for _, value in bars], color="#3b6ea5")
    for at, (_, value) in enumerate(bars):
        axes.text(value * 1.05, at, _times(value), va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(1, 2 * max(value for _, value in bars))
    axes.margins(y=0.01)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("times as fast as the peer named in the table (log scale)")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _named(row: Row) -> str:
    return ", ".join(value for value in row.values() if isinstance(value, str))
