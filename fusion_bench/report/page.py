"""One page for whatever is reported: built once, then rendered by terminal, Markdown and HTML.

A :class:`Page` has a title and sections. A :class:`Section` has facts, findings and parts (tables,
figures, YAML), in reading order. Builders fill in plain text and formatted numbers; renderers
escape every text, so builders never do::

    columns: list[Column[Check]] = [
        Column("check", lambda check: check.name, is_text=True),
        Column("difference", lambda check: format_number(check.difference, signed=True)),
        Column("p", lambda check: format_p_value(check.p), is_optional=True),
    ]
    table = make_table("Checks", columns, checks, notes=("p adjusted by max-T.",))
    section = Section(findings=(Finding("2 of 30 queries lost their answer.", "failed"),),
                      parts=(table,))
    page = Page("Gate: mine", (section,), headline=Finding("regressed: 1 check", "failed"))
    terminal.print_page(page, console)
    text = markdown.render_page(page)

What each renderer shows:

- The terminal leaves out facts, figures and folded sections (:attr:`Section.summary` stands for the
  facts). Where a table is too wide it drops optional columns, and names them. It ends with the
  headline and the next steps.
- Markdown begins with the headline and ends with the provenance; it has no next steps. Warnings
  become an alert; folded sections and the middle of long tables become ``<details>``.
- HTML has what Markdown has, headed by the answer in words, with what to do next; warnings stand
  before findings. :attr:`Section.key` names the views
  that a browser draws.
- :mod:`fusion_bench.report.markdown` makes at most 40 lines of Markdown from a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: What a row or a finding is. ``reference`` rows stand apart, below the others.
Tone: TypeAlias = Literal[
    "plain",
    "baseline",
    "reference",
    "better",
    "worse",
    "warning",
    "passed",
    "failed",
    "inconclusive",
]


#: Tones of findings that are marked with an exclamation mark.
ALERTS: frozenset[Tone] = frozenset({"warning", "failed", "inconclusive"})
#: Keys of findings about configurations begin with it; pages show them last.
LINT: str = "lint "
#: Stands before the name of a system of the best group.
BEST_MARK: str = "★"
#: Stands before the advice of a page.
WHAT_TO_DO: str = "What to do"
#: Rows that stay in a shortened table.
LASTING_TONES: frozenset[Tone] = frozenset({"baseline", "reference", "failed", "inconclusive"})
#: Columns that are shown where nobody asks for more.
MAX_COLUMNS = 7


#: What a row is made of.
R = TypeVar("R")
K = TypeVar("K")
S = TypeVar("S")


def _blank(_: object) -> str:
    return ""


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column: its heading, its cells, what it means; all that is known of it stands here.

    Attributes:
        header: Its heading, also in LaTeX and CSV.
        cell: The text of a record's cell; see :func:`make_table`.
        is_text: Text is aligned left and wraps; numbers are aligned right and never break.
        is_optional: A narrow terminal drops it.
        is_name: Text that does not break up to 30 characters; the first column is one anyway.
        legend: What it means, as :attr:`Table.legends` says it; empty = its heading says it all.
    """

    header: str
    cell: Callable[[R], str] = field(default=_blank, compare=False, repr=False)
    is_text: bool = False
    is_optional: bool = False
    is_name: bool = False
    legend: str = ""

    def of(self, find: Callable[[S], R | None]) -> Column[S]:
        """Turn the column into one of other records: find the value of each, or leave it blank."""

        def cell(record: S) -> str:
            part = find(record)
            return "" if part is None else self.cell(part)

        return Column(self.header, cell, self.is_text, self.is_optional, self.is_name, self.legend)


@dataclass(frozen=True)
class Row:
    """A row: one cell a column.

    Attributes:
        cells: Its texts.
        tone: What it is.
        is_best: It is of the best group: its name has a mark.
        is_kept: It stays in a shortened table, such as the recommended system.
    """

    cells: tuple[str, ...]
    tone: Tone = "plain"
    is_best: bool = False
    is_kept: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: Its heading.
        columns: The columns.
        rows: The rows.
        notes: What a reader must know to read it.
        is_transposable: Where it is too wide, its rows become columns.
        is_grid: It gives an overview in little space: a brief page shows it above the first table.
    """

    title: str
    columns: tuple[Column[Any], ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    is_transposable: bool = False
    is_grid: bool = False

    @property
    def legends(self) -> tuple[str, ...]:
        """What its columns mean, ``header = …`` of each that has a legend."""
        return tuple(f"{each.header} = {each.legend}" for each in self.columns if each.legend)

    def without_optional_columns(self) -> Table:
        """Keep the required columns only."""
        return self.select_columns(lambda i: not self.columns[i].is_optional)

    def without_empty_columns(self) -> Table:
        """Drop the columns that have no text in any row."""
        return self.without_columns_of({""})

    def without_columns_of(self, nothing: Set[str]) -> Table:
        """Drop the columns that have only these texts."""
        return self.select_columns(lambda i: any(row.cells[i] not in nothing for row in self.rows))

    def select_columns(self, is_selected: Callable[[int], bool]) -> Table:
        """Keep the columns whose index is selected."""
        kept = [i for i in range(len(self.columns)) if is_selected(i)]
        rows = (replace(row, cells=tuple(row.cells[i] for i in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=tuple(rows))

    def mark_best(self, indent: str = "") -> Table:
        """The table with a mark before the names of the best group, ``indent`` before others."""
        if not any(row.is_best for row in self.rows):
            return self
        rows = []
        for row in self.rows:
            name = f"{f'{BEST_MARK} ' if row.is_best else indent}{row.cells[0]}"
            rows.append(replace(row, cells=(name, *row.cells[1:]), is_best=False))
        return replace(self, rows=tuple(rows))

    def head(self, limit: int) -> Table:
        """The baseline, what is kept, and the first rows; the first heading counts them."""
        places = sorted(range(len(self.rows)), key=lambda i: (not self._lasts(i), i))
        rows = [self.rows[i] for i in sorted(places[:limit])]
        if len(rows) == len(self.rows):
            return self
        counted = f"{len(rows)} of {len(self.rows):,} {self.columns[0].header}s"
        first = replace(self.columns[0], header=counted)
        return replace(self, columns=(first, *self.columns[1:]), rows=tuple(rows))

    def _lasts(self, index: int) -> bool:
        row = self.rows[index]
        return row.is_kept or row.tone in LASTING_TONES

    def shorten(self, limit: int) -> Table:
        """The table with about ``limit`` rows: the first ones and the last one.

        What is kept or failed, the baseline, the best group and the reference rows stay.
        ``… 19 more`` stands for the others.
        """
        count = len(self.rows)
        if count <= limit + 1:
            return self
        marked = [i for i in range(count) if self._lasts(i) or self.rows[i].is_best]
        marked = sorted(marked, key=lambda i: (not self._lasts(i), i))[: max(0, limit - 2)]
        others = [i for i in range(count) if i not in marked]
        kept = sorted({*marked, *others[: max(0, limit - len(marked) - 1)], others[-1]})
        rows: list[Row] = []
        for before, i in zip((-1, *kept), kept, strict=False):
            if i - before > 1:
                blank = ("",) * (len(self.columns) - 1)
                rows.append(Row((f"… {i - before - 1:,} more", *blank)))
            rows.append(self.rows[i])
        return replace(self, rows=tuple(rows))

    def transpose(self) -> Table:
        """Turn rows into columns, headed by the first cell of each row."""
        first, *others = self.columns
        heads: Iterable[Column[Any]] = (Column(row.cells[0]) for row in self.rows)
        rows = (
            Row((column.header, *(row.cells[i] for row in self.rows)))
            for i, column in enumerate(others, 1)
        )
        columns = (Column(first.header, is_text=True), *heads)
        return replace(self, columns=columns, rows=tuple(rows))


def make_table(
    title: str,
    columns: Iterable[Column[R]],
    records: Iterable[R],
    *,
    notes: Iterable[str] = (),
    tone: Callable[[R], Tone] = lambda _: "plain",
    is_best: Callable[[R], bool] = lambda _: False,
    is_kept: Callable[[R], bool] = lambda _: False,
    is_transposable: bool = False,
) -> Table:
    """A table with one row a record.

    Args:
        title: Its heading.
        columns: With their cells.
        records: What the rows are made of.
        notes: What a reader must know to read it.
        tone: The tone of a record's row.
        is_best: Whether a record is of the best group.
        is_kept: Whether a record's row stays in a shortened table.
        is_transposable: Where it is too wide, its rows become columns.
    """
    columns = tuple(columns)
    rows = tuple(
        Row(tuple(each.cell(item) for each in columns), tone(item), is_best(item), is_kept(item))
        for item in records
    )
    return Table(title, columns, rows, tuple(notes), is_transposable)


def make_record_table(title: str, records: Sequence[Mapping[str, object]]) -> Table:
    """A table whose columns are the keys of the first record.

    Args:
        title: Its heading.
        records: At least one, all with the same keys. Columns of numbers are aligned right.
    """
    columns = make_columns({key: key.replace("_", " ") for key in records[0]}, _format_entry)
    for i, key in enumerate(records[0]):
        values = [record[key] for record in records]
        is_number = all(value is None or isinstance(value, int | float) for value in values)
        columns[i] = replace(columns[i], is_text=not is_number)
    return make_table(title, columns, records)


def _format_entry(key: str, record: Mapping[str, object]) -> str:
    return format_cell(record[key])


def format_cell(value: object) -> str:
    """Four significant digits, thousands set apart in counts; ``none`` for nothing, or none."""
    if isinstance(value, Mapping):
        value = [
            f"{key} ({format_cell(item)})"
            if isinstance(item, Mapping)
            else f"{key}: {format_cell(item)}"
            for key, item in value.items()
        ]
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns_of(columns: Iterable[Column[R]], find: Callable[[S], R | None]) -> list[Column[S]]:
    """Turn columns into columns of other records; see :meth:`Column.of`."""
    return [column.of(find) for column in columns]


def make_columns(
    headers: Mapping[K, str], cell: Callable[[K, R], str], *, is_optional: bool = False
) -> list[Column[R]]:
    """Columns of one kind, one a key.

    Args:
        headers: Key → heading.
        cell: The text of a key and a record.
        is_optional: Whether a narrow terminal drops them.
    """
    pairs = headers.items()
    return [Column(header, partial(cell, key), is_optional=is_optional) for key, header in pairs]


@dataclass(frozen=True)
class Finding:
    """A sentence, or a few that belong together.

    Attributes:
        text: The sentence.
        tone: ``warning`` for what speaks against the numbers.
        key: What it is about, for programs: ``"decision"``.
        details: Lines below it.
    """

    text: str
    tone: Tone = "plain"
    key: str = ""
    details: tuple[str, ...] = ()


def join_decisions(title: str, decisions: list[Finding]) -> Finding:
    """The decision on the only collection, or those on each of several as one finding."""
    if len(decisions) == 1:
        return decisions[0]
    tones = {finding.tone for finding in decisions}
    lines = tuple(dict.fromkeys(line for each in decisions for line in (each.text, *each.details)))
    tone: Tone = tones.pop() if len(tones) == 1 else "plain"
    return Finding(f"{title} on {len(decisions)} collections:", tone, "decision", lines)


@dataclass(frozen=True)
class Picture:
    """A picture that the page of a browser draws.

    Attributes:
        file: Name of the file that shows the same.
        title: What it shows.
        caption: How to read it, and what it says.
    """

    file: str
    title: str
    caption: str


@dataclass(frozen=True)
class Figure(Picture):
    """A figure beside the page.

    Attributes:
        draw: Draws it; imports Matplotlib.
    """

    draw: Callable[[], Drawing] = field(compare=False, repr=False)


@dataclass(frozen=True)
class YamlBlock:
    """Data shown as YAML, under a title."""

    title: str
    data: object


Part: TypeAlias = Table | Picture | YamlBlock


@dataclass(frozen=True)
class Section:
    """A section.

    Attributes:
        title: Its heading; empty = none.
        summary: One line in place of the facts where these are left out.
        text: A paragraph.
        facts: Name → value.
        findings: What it says: findings first, warnings last.
        parts: Tables, figures and data, in reading order.
        is_folded: Only for readers who ask for it.
        key: What it is about, for programs: ``collection 0``.
    """

    title: str = ""
    summary: str = ""
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    parts: tuple[Part, ...] = ()
    is_folded: bool = False
    key: str = ""

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables."""
        return tuple(part for part in self.parts if isinstance(part, Table))


@dataclass(frozen=True)
class NextStep:
    """A command that follows from a page.

    Attributes:
        command: As one types it.
        purpose: What it is good for.
    """

    command: str
    purpose: str


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: Its heading.
        sections: Its sections.
        headline: The outcome, as one would tell it in a chat; None where there is none.
        provenance: Where the numbers come from.
        next_steps: The commands that follow.
        answer: The outcome in a few words, for a title; empty = there is none.
        advice: What to do, a sentence each.
    """

    title: str
    sections: tuple[Section, ...]
    headline: Finding | None = None
    provenance: Section | None = None
    next_steps: tuple[NextStep, ...] = ()
    answer: str = ""
    advice: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        parts = (part for section in self.sections for part in section.parts)
        return tuple(part for part in parts if isinstance(part, Figure))


#: Longer parts of a file name are cut.
MAX_NAME_LENGTH = 60


def make_safe_name(text: str) -> str:
    """A part of a file name: letters, digits and few marks, so no path and no hidden file.

    None that make or a shell read as anything else: ``nDCG@10`` becomes ``nDCG-10``.
    """
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return kept[:MAX_NAME_LENGTH].strip("-.") or "unnamed"
