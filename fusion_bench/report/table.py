r"""Tables of a page: made of records, fitted to a width, written for LaTeX.

Optional columns go first, the widest before the others. Then texts wrap at blanks. Then a table is
transposed, if it may be, or split into blocks of columns that repeat the names of the rows. Names
of up to 30 characters and numbers are never broken, and nothing is ever cut.

The text needs ``\usepackage{booktabs}`` and UTF-8 input, which is LaTeX's default. Letters beyond
Latin need a font that has them, which XeLaTeX and LuaLaTeX find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from fusion_bench._version import __version__
from fusion_bench.report.page import Page, Row, Table, Tone, make_columns, make_table
from fusion_bench.util.formatting import escape_control_chars


def make_record_table(title: str, records: Sequence[Mapping[str, object]]) -> Table:
    """A table whose columns are the keys of the first record.

    Args:
        title: Its heading.
        records: At least one, all with the same keys. Columns of numbers are aligned right.
    """
    columns = make_columns({key: key.replace("_", " ") for key in records[0]}, _format_value)
    for i, key in enumerate(records[0]):
        values = [record[key] for record in records]
        is_number = all(value is None or isinstance(value, int | float) for value in values)
        columns[i] = replace(columns[i], is_text=not is_number)
    return make_table(title, columns, records)


def _format_value(key: str, record: Mapping[str, object]) -> str:
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


#: Names up to this long are never broken.
MAX_NAME = 30
#: Texts keep this width as long as there are optional columns to drop.
COMFORTABLE_TEXT = 24
#: Blanks between two columns.
GAP = 2
#: On absurdly narrow terminals every column keeps this width.
MIN_WIDTH = 4


@dataclass(frozen=True)
class TableBlock:
    """A table and the width of each of its columns."""

    table: Table
    widths: tuple[int, ...]


@dataclass(frozen=True)
class TableLayout:
    """A table that fits a width.

    Attributes:
        blocks: One below the other; together they have all columns but the dropped ones.
        dropped: Names of the dropped columns; see :func:`name_columns`.
        full_width: The width at which no column is dropped.
    """

    blocks: tuple[TableBlock, ...]
    dropped: tuple[str, ...] = ()
    full_width: int = 0


def fit_table(table: Table, width: int) -> TableLayout:
    """Fit a table into a width.

    Args:
        table: With its texts as they are printed.
        width: In cells of the terminal.
    """
    natural = _natural_widths(table)
    if _total_width(natural) <= width:
        return TableLayout((TableBlock(table, natural),))
    full_width, columns = _total_width(_wrapped_widths(table, COMFORTABLE_TEXT)), table.columns
    kept = set(range(len(columns)))
    while (
        _total_width(
            _wrapped_widths(fitted := table.select_columns(kept.__contains__), COMFORTABLE_TEXT)
        )
        > width
    ):
        optional = [i for i in sorted(kept) if columns[i].is_optional]
        if not optional:
            break
        kept.remove(max(optional, key=lambda i: (natural[i], i)))
    if table.is_transposable and _total_width(_wrapped_widths(fitted, COMFORTABLE_TEXT)) > width:
        fitted = fitted.transpose()
    dropped = tuple(name for i, name in enumerate(name_columns(table)) if i not in kept)
    return TableLayout(tuple(_split_columns(fitted, width)), dropped, full_width)


def name_columns(table: Table) -> tuple[str, ...]:
    """The headers; of equal ones each with the header before it: ``95 % interval of mean``."""
    headers = [column.header for column in table.columns]
    pairs = zip(("", *headers), headers, strict=False)
    return tuple(
        f"{header} of {before}" if before and headers.count(header) > 1 else header
        for before, header in pairs
    )


def _split_columns(table: Table, width: int) -> Iterator[TableBlock]:
    """One block, or several that repeat the leading columns of names."""
    minimum = _wrapped_widths(table, 0)
    leading = [0]
    while table.columns[len(leading) : len(leading) + 1] and table.columns[len(leading)].is_name:
        leading.append(len(leading))
    indices = [*leading]
    for i in range(len(leading), len(table.columns)):
        if (
            len(indices) > len(leading)
            and _total_width([minimum[j] for j in (*indices, i)]) > width
        ):
            yield _make_block(table.select_columns(set(indices).__contains__), width)
            indices = [*leading]
        indices.append(i)
    yield _make_block(table.select_columns(set(indices).__contains__), width)


def _make_block(table: Table, width: int) -> TableBlock:
    """Columns between their minimum and natural widths, by what each lacks."""
    natural, widths = _natural_widths(table), [*_wrapped_widths(table, 0)]
    while _total_width(widths) > width and max(widths) > MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    lacking = [max(0, want - have) for want, have in zip(natural, widths, strict=True)]
    free = max(0, min(width - _total_width(widths), sum(lacking)))
    extra = [free * lack // max(1, sum(lacking)) for lack in lacking]
    for i in sorted(range(len(extra)), key=lambda i: extra[i] - lacking[i]):
        extra[i] += min(free - sum(extra), lacking[i] - extra[i])
    return TableBlock(table, tuple(have + more for have, more in zip(widths, extra, strict=True)))


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _natural_widths(table: Table) -> tuple[int, ...]:
    """The widths at which nothing wraps."""
    return tuple(
        max(map(cell_len, (column.header, *(row.cells[i] for row in table.rows))))
        for i, column in enumerate(table.columns)
    )


def _wrapped_widths(table: Table, text_width: int) -> tuple[int, ...]:
    """The least widths at which no number, no name and no word breaks.

    Args:
        table: With its texts as they are printed.
        text_width: Texts keep it; at 24 they wrap seldom.
    """
    widths = []
    for i, column in enumerate(table.columns):
        cells = [row.cells[i] for row in table.rows]
        widest = max(map(cell_len, cells), default=0)
        if column.is_text and (i == 0 or column.is_name):
            widest = min(widest, MAX_NAME)
        elif column.is_text:
            words = (word for cell in cells for word in cell.split())
            longest = min(max(map(cell_len, words), default=0), MAX_NAME)
            widest = min(widest, max(longest, text_width))
        header = min(max(map(cell_len, column.header.split()), default=0), MAX_NAME)
        widths.append(max(widest, header))
    return tuple(widths)


#: Longer parts of a file name are cut.
MAX_NAME_LENGTH = 60


def make_safe_name(text: str) -> str:
    """A part of a file name: letters, digits and few marks, so no path and no hidden file.

    None that make or a shell read as anything else: ``nDCG@10`` becomes ``nDCG-10``.
    """
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return kept[:MAX_NAME_LENGTH].strip("-.") or "unnamed"


#: Brackets and asterisks are harmless but at the start of a row, where they belong to its end.
LATEX_SPECIAL = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"{{{c}}}" for c in "[]*"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",  # babel makes the character itself a command in some languages
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\neq$",
    "→": r"$\rightarrow$",
    "√": r"$\surd$",
    "Σ": r"$\Sigma$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "σ": r"$\sigma$",
    "φ": r"$\varphi$",
    "∞": r"$\infty$",
    "…": r"\dots{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
}
#: Two of these together would become another character.
LATEX_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)|(?<=[?!])(?=`)")
#: Spaces that LaTeX would drop.
LATEX_SPACES = re.compile(r"(?<= ) |^ | $")
#: A minus sign: before a number that stands alone or begins an interval.
LATEX_MINUS = re.compile(r"(?<![^\s\[(,…])-(?=\d|\.\d)")
LATEX_SPECIAL_PATTERN = re.compile("|".join(re.escape(c) for c in LATEX_SPECIAL))


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; a control character appears as ``\n`` or ``\x1b``."""
    marked = LATEX_SPACES.sub("\1", LATEX_LIGATURES.sub("\0", escape_control_chars(text)))
    escaped = LATEX_SPECIAL_PATTERN.sub(lambda match: LATEX_SPECIAL[match[0]], marked)
    return escaped.replace("\0", "{}").replace("\1", "\\ ")


def render_latex(table: Table, caption: str, *, label: str) -> str:
    r"""A ``table`` with caption, label, rules of booktabs and the notes below.

    The baseline is bold. Reference rows are in italics, below a rule.

    Args:
        table: What to print.
        caption: Stands above it.
        label: For ``\ref``, below ``tab:``; letters, digits and few marks.
    """
    notes = " ".join(map(escape_latex, table.notes))
    return wrap_latex(_tabular_lines(table), escape_latex(caption), label=label, notes=notes)


def wrap_latex(lines: Iterable[str], caption: str, *, label: str, notes: str = "") -> str:
    """A ``table`` around the lines of a ``tabular``; caption and notes are LaTeX."""
    whole = (
        f"% fusion-bench {__version__}; needs \\usepackage{{booktabs}}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{tab:{label}}}",
        *(f"  {line}" for line in lines),
        *((r"  \par\smallskip", rf"  {{\footnotesize {notes}\par}}") if notes else ()),
        r"\end{table}",
    )
    return "\n".join(whole) + "\n"


def _tabular_lines(table: Table) -> Iterator[str]:
    alignment = "".join("l" if column.is_text else "r" for column in table.columns)
    yield rf"\begin{{tabular}}{{{alignment}}}"
    yield r"  \toprule"
    yield latex_row([escape_latex(column.header) for column in table.columns])
    yield r"  \midrule"
    before: Tone = "reference"
    for row in table.rows:
        if row.tone == "reference" != before:
            yield r"  \midrule"
        before = row.tone
        yield latex_row(_latex_cells(row, table))
    yield r"  \bottomrule"
    yield r"\end{tabular}"


def _latex_cells(row: Row, table: Table) -> Iterator[str]:
    command = {"baseline": r"\textbf", "reference": r"\emph"}.get(row.tone)
    for cell, column in zip(row.cells, table.columns, strict=True):
        text = escape_latex(cell if column.is_text else LATEX_MINUS.sub("−", cell))
        yield f"{command}{{{text}}}" if command and text else text


def latex_row(cells: Iterable[str]) -> str:
    """A row of cells that are LaTeX."""
    return rf"  {' & '.join(cells)} \\"


def render_latex_tables(page: Page, stem: str) -> dict[str, str]:
    """File name → LaTeX of all tables of a page, numbered in its order; folded sections included.

    Args:
        page: Of any command.
        stem: What the file names begin with, such as ``gate``.
    """
    tables = [(section.title, table) for section in page.sections for table in section.tables]
    width = max(2, len(str(len(tables))))
    files: dict[str, str] = {}
    for i, (section, table) in enumerate(tables, 1):
        name = f"{stem}-{i:0{width}}-{make_safe_name(table.title)}"
        caption = f"{table.title} ({section})" if section else table.title
        files[f"{name}.tex"] = render_latex(table, caption, label=name)
    return files
