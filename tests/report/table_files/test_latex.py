"""LaTeX: another program's parser must read back what the table holds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import (
    LatexEnvironmentNode,
    LatexGroupNode,
    LatexMacroNode,
    LatexNode,
    LatexWalker,
)

from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.table import LATEX_SPECIAL, escape_latex, render_latex
from fusion_bench.util.formatting import escape_control_chars
from tests.report.cases import HOSTILE

CONTEXT = get_default_latex_context_db()
CONTEXT.add_context_category(
    "texts",
    prepend=True,
    macros=[
        MacroTextSpec("char", simplify_repl=""),  # its number, 34, stays
        MacroTextSpec("ddagger", simplify_repl="‡"),
        MacroTextSpec("textasciicircum", simplify_repl="^"),
        MacroTextSpec(" ", simplify_repl=" "),
    ],
)
PARSER = LatexNodes2Text(CONTEXT, strict_latex_spaces=True)
NAMES = [
    HOSTILE,
    r"\end{table} \input{/etc/passwd}",
    r"\\[1em] *",
    "100 % & 3 # of $5_000^2",
    'a~b `c` {d} "e"',
    "-- --- '' ,, ?` !`",
    "≤ ≥ ± × ÷ · → √ Σ α β σ φ ∞ … † ‡ ≠ é “x” 中",
    " two  spaces ",
    "a\nb\x00c\u202ed",
    "%",
]


def parse(text: str) -> str:
    read: str = PARSER.latex_to_text(re.sub(r"^\s+|(?<!\\)\s+$", "", text))
    return read.replace("34", '"') if r"\char" in text else read


def only_environment(nodes: Sequence[LatexNode]) -> LatexEnvironmentNode:
    (environment,) = [node for node in nodes if isinstance(node, LatexEnvironmentNode)]
    return environment


def read_table(text: str) -> tuple[str, list[list[str]]]:
    """The caption, and the cells of each row in LaTeX, as the parser separates them."""
    walker = LatexWalker(text, tolerant_parsing=False)
    table = only_environment(walker.get_latex_nodes()[0])
    caption = next(node for node in table.nodelist if isinstance(node, LatexGroupNode))
    rows = [[""]]
    for node in only_environment(table.nodelist).nodelist:
        name = node.macroname if isinstance(node, LatexMacroNode) else ""
        if name == "\\":
            rows.append([""])
        elif node.latex_verbatim() == "&":
            rows[-1].append("")
        elif not name.endswith("rule"):
            rows[-1][-1] += node.latex_verbatim()
    return parse(caption.latex_verbatim()[1:-1]), rows[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_parser_reads_every_cell(name: str) -> None:
    rows = (Row((name, "0.1"), "baseline"), Row((name, "0.2")), Row((name, name), "reference"))
    table = Table(name, (Column(name, is_text=True), Column("value", is_text=True)), rows)
    caption, cells = read_table(render_latex(table, name, label="x"))
    shown = escape_control_chars(name)
    assert caption == shown
    assert [[parse(cell) for cell in row] for row in cells] == [
        [shown, "value"],
        [shown, "0.1"],
        [shown, "0.2"],
        [shown, shown],
    ]


@given(st.text(alphabet=st.sampled_from([*LATEX_SPECIAL, *"ab-',?! \n\0"])))
def test_any_text_survives(text: str) -> None:
    assert parse(escape_latex(text)) == escape_control_chars(text).replace("−", "-")


def test_rows_are_marked_and_notes_stand_below() -> None:
    rows = (Row(("a", "1"), "baseline"), Row(("b", ""), "reference"), Row(("c", "2"), "reference"))
    table = Table("T", (Column("x", is_text=True), Column("n")), rows, notes=("One.", "100 %."))
    text = render_latex(table, "T", label="t-1")
    assert r"\textbf{a} & \textbf{1} \\" in text
    assert r"\emph{b} &  \\" in text
    assert text.count(r"\midrule") == 2
    assert text.index(r"\bottomrule") < text.index(r"One. 100 \%.")
    assert r"\begin{tabular}{lr}" in text
    assert r"\label{tab:t-1}" in text


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("-0.0037", "$-$0.0037"),
        ("[-0.0087, -.5]", "{[}$-$0.0087, $-$.5{]}"),
        ("-1.0…-0.5", r"$-$1.0\dots{}$-$0.5"),
        ("n-1", "n-1"),
        ("2025-01", "2025-01"),
    ],
)
def test_a_number_has_a_minus_sign(cell: str, shown: str) -> None:
    table = Table("T", (Column("x"), Column("y", is_text=True)), (Row((cell, "-1")),))
    assert rf"{shown} & -1 \\" in render_latex(table, "T", label="t")
