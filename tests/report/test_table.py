"""What a table does where it is too wide: nothing is cut, names and numbers stay whole."""

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

from fusion_bench.report.latex import (
    LATEX_SPECIAL,
    escape_latex,
    render_latex,
    render_latex_tables,
)
from fusion_bench.report.page import (
    Column,
    Page,
    Row,
    Section,
    Table,
    Tone,
    columns_of,
    make_columns,
    make_table,
)
from fusion_bench.report.terminal import GAP, fit_table
from fusion_bench.util.formatting import escape_control_chars
from tests.report.cases import HOSTILE, example_page

NAME = "a name of exactly thirty chars"
INTERVAL = "[-0.1234, +0.1234]"


def table(*columns: Column[object], name: str = NAME, cell: str = "0.1234", rows: int = 2) -> Table:
    cells = (name, *(INTERVAL if "interval" in c.header else cell for c in columns))
    row = Row(cells)
    return Table("t", (Column("system", is_text=True), *columns), (row,) * rows)


def headers(whole: Table, width: int) -> list[list[str]]:
    return [[c.header for c in block.table.columns] for block in fit_table(whole, width).blocks]


def test_a_table_that_fits_keeps_its_natural_widths() -> None:
    whole = table(Column("mean", is_optional=True), Column("interval"))
    layout = fit_table(whole, 60)
    assert layout.blocks[0].widths == (30, 6, 18)
    assert layout.dropped == ()


def test_optional_columns_go_the_widest_first_and_the_one_before_tells_which() -> None:
    whole = table(
        Column("mean", is_optional=True),
        Column("interval", is_optional=True),
        Column("p", is_optional=True),
        Column("difference"),
    )
    assert fit_table(whole, 60).dropped == ("interval",)
    assert fit_table(whole, 50).dropped == ("interval", "p")
    assert headers(whole, 42) == [["system", "difference"]]
    assert headers(whole, fit_table(whole, 60).full_width) == [
        ["system", "mean", "interval", "p", "difference"]
    ]
    columns: tuple[Column[object], ...] = (Column("mean"), Column("interval", is_optional=True))
    whole = table(*columns, Column("difference"), Column("interval"))
    assert fit_table(whole, 80).dropped == ("interval of mean",)


def test_texts_and_headers_wrap_before_a_table_is_split() -> None:
    whole = table(Column("a long heading of five words"), Column("verdict", is_text=True))
    text = Row((NAME, "0.1", "no difference shown in this text of many words"))
    layout = fit_table(Table("t", whole.columns, (text,)), 60)
    [block] = layout.blocks
    assert sum(block.widths) + 2 * GAP == 60
    assert block.widths[0] == 30


def test_required_columns_that_do_not_fit_stand_below_with_the_names() -> None:
    whole = table(*(Column(f"interval {i}") for i in range(5)))
    assert headers(whole, 80) == [
        ["system", "interval 0", "interval 1"],
        ["system", "interval 2", "interval 3"],
        ["system", "interval 4"],
    ]
    for block in fit_table(whole, 80).blocks:
        assert block.widths[0] == 30
        assert set(block.widths[1:]) == {18}
    whole = table(Column("list", is_text=True, is_name=True), *map(Column, ["interval"] * 3))
    assert all(block[:2] == ["system", "list"] for block in headers(whole, 80))


def test_a_longer_name_folds_at_thirty_or_more() -> None:
    whole = table(*(Column("interval") for _ in range(2)), name="n" * 90)
    assert fit_table(whole, 72).blocks[0].widths[0] == 72 - 2 * (18 + GAP)
    assert fit_table(whole, 70).blocks[0].widths[0] == 30


def test_rows_become_columns_where_a_table_may_be_transposed() -> None:
    columns: tuple[Column[object], ...] = (
        Column("document", is_text=True),
        *(Column(f"term {i}") for i in range(12)),
    )
    rows = tuple(Row((name, *["0.1234"] * 12)) for name in ("d1", "d2"))
    [block] = fit_table(Table("t", columns, rows, is_transposable=True), 60).blocks
    assert [column.header for column in block.table.columns] == ["document", "d1", "d2"]
    assert [row.cells[0] for row in block.table.rows] == [f"term {i}" for i in range(12)]


def test_narrow_and_empty_tables_still_have_every_cell() -> None:
    whole = table(Column("interval"), Column("verdict", is_text=True), cell="x" * 50)
    cells = {c for b in fit_table(whole, 20).blocks for r in b.table.rows for c in r.cells}
    assert cells == {NAME, INTERVAL, "x" * 50}
    assert headers(Table("t", (Column("system", is_text=True),), ()), 10) == [["system"]]


def test_a_shortened_table_keeps_what_failed_and_counts_the_others() -> None:
    rows = tuple(
        Row((str(i),), "failed" if i == 50 else "baseline" if i == 60 else "plain")
        for i in range(100)
    )
    short = Table("t", (Column("a", is_text=True),), rows).shorten(6)
    assert [row.cells[0] for row in short.rows] == [
        *("0", "1", "2", "… 47 more", "50"),
        *("… 9 more", "60", "… 38 more", "99"),
    ]
    assert short.shorten(20) == short


# ── columns: a header and its cells in one place


TEXT = Column[str]("text", str.upper, is_text=True, is_optional=True, legend="in capitals.")


def test_a_table_has_a_row_a_record_with_its_tone() -> None:
    tones: dict[str, Tone] = {"a": "better"}
    columns: list[Column[str]] = [TEXT, Column("length", lambda record: str(len(record)))]
    table = make_table(
        "t", columns, iter(["a", "bc"]), notes=["n"], tone=lambda record: tones.get(record, "plain")
    )
    assert [row.cells for row in table.rows] == [("A", "1"), ("BC", "2")]
    assert [row.tone for row in table.rows] == ["better", "plain"]
    assert (table.columns, table.notes) == (tuple(columns), ("n",))
    assert table.legends == ("text = in capitals.",)


def test_columns_have_cells_of_other_records_and_know_their_keys() -> None:
    (column,) = columns_of([TEXT], {1: "a"}.get)
    assert (column.header, column.is_text, column.is_optional) == ("text", True, True)
    assert column.legend == TEXT.legend
    assert [column.cell(1), column.cell(2)] == ["A", ""]
    columns: list[Column[tuple[str, str]]] = make_columns(
        {0: "first", 1: "second"}, lambda i, record: record[i], is_optional=True
    )
    table = make_table("t", columns, [("a", "b"), ("", "c")])
    assert [row.cells for row in table.rows] == [("a", "b"), ("", "c")]
    assert [column.header for column in table.without_columns_of({"a", ""}).columns] == ["second"]
    assert table.without_optional_columns().columns == ()


# ── laTeX: another program's parser must read back what the table holds


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


# ── the files: one a table and a format, under names that any file system takes


def test_each_table_has_a_file_and_a_caption_with_its_section() -> None:
    names = list(render_latex_tables(example_page("a/b@10"), "gate"))
    assert names == ["gate-01-Table-a-b-10.tex", "gate-02-Table-a-b-10.tex"]
    page = Page("P", (Section("attack", parts=(Table("Means", (), ()),)),))
    (text,) = render_latex_tables(page, "report").values()
    assert r"\caption{Means (attack)}" in text
    assert r"\label{tab:report-01-Means}" in text


def test_hostile_names_stay_in_the_folder_and_sort_in_order() -> None:
    tables = tuple(Table(f"../{HOSTILE}\0", (), ()) for _ in range(120))
    names = list(render_latex_tables(Page("P", (Section(parts=tables),)), "report"))
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"report-\d{3}-red-x-red-b\.tex", name) for name in names)
