"""Columns: a header and its cells in one place."""

from __future__ import annotations

from fusion_bench.report.page import Column, Tone, columns_of, make_columns, make_table

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


def test_a_column_of_other_records_is_blank_where_nothing_is_found() -> None:
    (column,) = columns_of([TEXT], {1: "a"}.get)
    assert (column.header, column.is_text, column.is_optional) == ("text", True, True)
    assert column.legend == TEXT.legend
    assert [column.cell(1), column.cell(2)] == ["A", ""]


def test_columns_of_one_kind_know_their_keys() -> None:
    columns: list[Column[tuple[str, str]]] = make_columns(
        {0: "first", 1: "second"}, lambda i, record: record[i], is_optional=True
    )
    table = make_table("t", columns, [("a", "b"), ("", "c")])
    assert [row.cells for row in table.rows] == [("a", "b"), ("", "c")]
    assert [column.header for column in table.without_columns_of({"a", ""}).columns] == ["second"]
    assert table.without_optional_columns().columns == ()
