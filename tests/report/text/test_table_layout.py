"""What a table does where it is too wide: nothing is cut, names and numbers stay whole."""

from __future__ import annotations

from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.table import GAP, fit_table

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


def test_optional_columns_go_the_widest_first_and_only_as_many_as_it_takes() -> None:
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


def test_second_names_are_repeated_too() -> None:
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


def test_an_absurdly_narrow_width_still_has_every_cell() -> None:
    whole = table(Column("interval"), Column("verdict", is_text=True), cell="x" * 50)
    cells = {c for b in fit_table(whole, 20).blocks for r in b.table.rows for c in r.cells}
    assert cells == {NAME, INTERVAL, "x" * 50}


def test_a_table_without_rows_or_with_one_column() -> None:
    assert headers(Table("t", (Column("system", is_text=True),), ()), 10) == [["system"]]


def test_of_equal_headers_the_one_before_tells_which() -> None:
    columns: tuple[Column[object], ...] = (Column("mean"), Column("interval", is_optional=True))
    whole = table(*columns, Column("difference"), Column("interval"))
    assert fit_table(whole, 80).dropped == ("interval of mean",)


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
