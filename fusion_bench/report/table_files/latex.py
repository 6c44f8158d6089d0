r"""A table for LaTeX, with the rules of the package booktabs.

The text needs ``\usepackage{booktabs}`` and UTF-8 input, which is LaTeX's default. Letters beyond
Latin need a font that has them, which XeLaTeX and LuaLaTeX find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fusion_bench._version import __version__
from fusion_bench.report.page import Row, Table, Tone
from fusion_bench.util.formatting import escape_control_chars

#: Brackets and asterisks are harmless but at the start of a row, where they belong to its end.
SPECIAL = {
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
LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)|(?<=[?!])(?=`)")
#: Spaces that LaTeX would drop.
SPACES = re.compile(r"(?<= ) |^ | $")
#: A minus sign: before a number that stands alone or begins an interval.
MINUS = re.compile(r"(?<![^\s\[(,…])-(?=\d|\.\d)")
COMMANDS = re.compile("|".join(re.escape(c) for c in SPECIAL))


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; a control character appears as ``\n`` or ``\x1b``."""
    marked = SPACES.sub("\1", LIGATURES.sub("\0", escape_control_chars(text)))
    escaped = COMMANDS.sub(lambda match: SPECIAL[match[0]], marked)
    return escaped.replace("\0", "{}").replace("\1", "\\ ")


def render_latex(table: Table, caption: str, *, label: str) -> str:
    r"""A ``table`` with caption, label, rules of booktabs and the notes below.

    The baseline is bold. Reference rows are in italics, below a rule.

    Args:
        table: What to print.
        caption: Stands above it.
        label: For ``\ref``, below ``tab:``; letters, digits and few marks.
    """
    lines = (
        f"% fusion-bench {__version__}; needs \\usepackage{{booktabs}}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escape_latex(caption)}}}",
        rf"  \label{{tab:{label}}}",
        *(f"  {line}" for line in _tabular_lines(table)),
        *_note_lines(table.notes),
        r"\end{table}",
    )
    return "\n".join(lines) + "\n"


def _tabular_lines(table: Table) -> Iterator[str]:
    alignment = "".join("l" if column.is_text else "r" for column in table.columns)
    yield rf"\begin{{tabular}}{{{alignment}}}"
    yield r"  \toprule"
    yield _row_line([escape_latex(column.header) for column in table.columns])
    yield r"  \midrule"
    before: Tone = "reference"
    for row in table.rows:
        if row.tone == "reference" != before:
            yield r"  \midrule"
        before = row.tone
        yield _row_line(_format_cells(row, table))
    yield r"  \bottomrule"
    yield r"\end{tabular}"


def _format_cells(row: Row, table: Table) -> Iterator[str]:
    command = {"baseline": r"\textbf", "reference": r"\emph"}.get(row.tone)
    for cell, column in zip(row.cells, table.columns, strict=True):
        text = escape_latex(cell if column.is_text else MINUS.sub("−", cell))
        yield f"{command}{{{text}}}" if command and text else text


def _row_line(cells: Sequence[str] | Iterator[str]) -> str:
    return rf"  {' & '.join(cells)} \\"


def _note_lines(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield r"  \par\smallskip"
        yield rf"  {{\footnotesize {' '.join(escape_latex(note) for note in notes)}\par}}"
