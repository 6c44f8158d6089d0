"""The rows of all benchmarks as Markdown and as a picture."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.timing import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How a number is written, by the unit that its column ends in.
FORMATS = {
    "µs": "{:,.1f} µs",
    "ms": "{:,.2f} ms",
    "s": "{:,.3g} s",
    "GB": "{:.1f} GB",
    "ratio": "{:,.0f}×",
}
#: Colors and hatches of a table's bars.
BARS = (("#3b6ea5", ""), ("#9fc2e6", "//"), ("#d07c2e", ""), ("#efc08f", "//"))
PEERS = ("ranx", "pytrec_eval", "scipy")
#: What columns are called in a picture.
WORDS = {"one": "one configuration alone", "of 32": "one of 32 evaluated together"}
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
    return _format_ratio(value) if unit == "ratio" else FORMATS.get(unit, "{:,.3g}").format(value)


def _format_ratio(value: float) -> str:
    return f"{value:.1f}×" if value < SMALL else FORMATS["ratio"].format(value)


def replace_between_marks(path: Path, text: str, mark: str = "bench") -> None:
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


Rows = Sequence[Sequence[str]]


def read_rows(table: str, repeated: int = 0) -> list[list[str]]:
    """Header and rows of a Markdown table; text around the table is skipped.

    Args:
        table: The text.
        repeated: Leading columns in which an empty cell repeats the one above.
    """
    lines = [line for line in table.splitlines() if line.startswith("|")]
    header, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    for above, row in pairwise(rows):
        row[:repeated] = [cell or old for cell, old in zip(row, above[:repeated], strict=False)]
    return [header, *rows]


def format_rows(rows: Rows, text_columns: int = 1) -> str:
    """Header and rows as a Markdown table; columns behind the first ones are aligned right."""
    header, *body = rows
    alignment = [":--"] * text_columns + ["--:"] * (len(header) - text_columns)
    return "\n".join(
        [f"| {' | '.join(header)} |", f"|{'|'.join(alignment)}|"]
        + [f"| {' | '.join(row)} |" for row in body]
    )


def keep_columns(rows: Rows, names: Sequence[str]) -> list[list[str]]:
    """The columns of these names, in this order."""
    places = [rows[0].index(name) for name in names]
    return [[row[place] for place in places] for row in rows]


def pivot(rows: Rows, by: Sequence[str], column: str, value: str) -> list[list[str]]:
    """One row for each combination of ``by``, and one column for each value of ``column``."""
    cells = keep_columns(rows, [*by, column, value])[1:]
    columns = list(dict.fromkeys(cell for *_, cell, _ in cells))
    table: dict[tuple[str, ...], dict[str, str]] = {}
    for *key, name, cell in cells:
        table.setdefault(tuple(key), {})[name] = cell
    body = [[*key, *(known.get(name, "–") for name in columns)] for key, known in table.items()]
    return [[*by, *columns], *body]


def encode_csv(rows: Rows) -> str:
    """Header and rows as CSV, without the marks of Markdown."""
    text = io.StringIO()
    clean = ([re.sub(r"[`\\]|\*\*", "", cell) for cell in row] for row in rows)
    csv.writer(text, lineterminator="\n").writerows(clean)
    return text.getvalue()


def write_csv(page: Path, name: str, rows: Rows) -> str:
    """Write rows as CSV beside a page, and return a sentence that links to the file."""
    path = page.with_name(f"{page.stem}-{name}.csv")
    path.write_text(encode_csv(rows), encoding="utf-8")
    return f"[All {len(rows) - 1} rows as CSV]({path.name})."


def draw(groups: dict[str, list[Row]], path: Path) -> None:
    """How many times as fast as the peer: a panel a table, a group of bars a row."""
    from matplotlib.figure import Figure

    charts = {title: rows for title, rows in groups.items() if _ratio_columns(rows)}
    heights = [len(rows) * len(_ratio_columns(rows)) + len(rows) for rows in charts.values()]
    figure = Figure(
        figsize=(10, 0.8 + 0.21 * sum(heights) + 0.5 * len(charts)), layout="constrained"
    )
    figure.suptitle("Times as fast as the named peer at the same work (queries × runs × documents)")
    panels = figure.subplots(len(charts), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes, (title, rows) in zip(panels[:, 0], charts.items(), strict=True):
        draw_panel(axes, title, rows)
    most = max(row[c] for rows in charts.values() for row in rows for c in _ratio_columns(rows))
    panels[-1, 0].set(xscale="log", xlim=(1, 3 * float(most)))
    panels[-1, 0].set_xlabel("times as fast (logarithmic)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _ratio_columns(rows: list[Row]) -> list[str]:
    return [column for column in rows[0] if column.endswith(" ratio")]


def draw_panel(axes: Axes, title: str, rows: list[Row]) -> None:
    """The bars of one table; columns differ in color and hatch."""
    columns = _ratio_columns(rows)
    height = 0.8 / len(columns)
    for n, column in enumerate(columns):
        at = [y + (n - (len(columns) - 1) / 2) * height for y in range(len(rows))]
        values = [float(row[column]) for row in rows]
        color, hatch = BARS[n % len(BARS)]
        label = _label_of(column)
        bars = axes.barh(at, values, height, color=color, hatch=hatch, ec="white", label=label)
        axes.bar_label(bars, [_format_ratio(value) for value in values], padding=3, fontsize=7)
    axes.set_yticks(range(len(rows)), [_name_row(row, rows) for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(_add_peer(title, rows), loc="left", fontsize=10)
    axes.legend(
        fontsize=7,
        loc="lower right",
        bbox_to_anchor=(1, 0.98),
        ncols=2 if len(columns) > 2 else 1,
        frameon=False,
    )
    axes.spines[["top", "right"]].set_visible(False)


def _add_peer(title: str, rows: list[Row]) -> str:
    """With the peer, where there is one and nothing else names it."""
    names = {column.split()[0] for column in rows[0]}.intersection(PEERS)
    return f"{title}, against {names.pop()}" if len(names) == 1 and "ranx" not in title else title


def _label_of(column: str) -> str:
    """What a column's bars are, in words."""
    name = column.removesuffix(" ratio")
    return WORDS.get(name, name.replace(" CPU", ", CPU time"))


def _name_row(row: Row, rows: list[Row]) -> str:
    """What tells a row from the others of its table."""
    differing = [c for c, v in row.items() if isinstance(v, str) and len({r[c] for r in rows}) > 1]
    texts = {"weights": "{} weights", "configurations at once": "{} at once", "ids": "ids: {}"}
    return ", ".join(texts.get(c, "{}").format(row[c]) for c in differing) or str(rows[0])
