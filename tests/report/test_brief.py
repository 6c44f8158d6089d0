"""The brief form of a page: what it keeps, counts and leaves out."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from fusion_bench.report.page import Column, Finding, NextStep, Page, Row, Section, Table
from fusion_bench.report.terminal import (
    MAX_DETAILS,
    MAX_STEPS,
    Detail,
    print_page,
    shorten_page,
    shorten_table,
)
from tests.report.cases import example_page


def warn(count: int, key: str = "") -> tuple[Finding, ...]:
    return tuple(Finding(f"Warning {i}. Its reason.", "warning", key=key) for i in range(count))


def texts(page: Page) -> list[str]:
    return [finding.text for section in page.sections for finding in section.findings]


@pytest.mark.parametrize(("count", "shown", "more"), [(0, 0, 0), (3, 3, 0), (4, 4, 0), (9, 3, 6)])
def test_three_warnings_a_sentence_each_and_the_count_of_the_rest(
    count: int, shown: int, more: int
) -> None:
    brief = texts(shorten_page(Page("x", (Section(findings=warn(count)),))))
    assert brief[:shown] == [f"Warning {i}" for i in range(shown)]
    assert len(brief) == shown + bool(more)
    if more:
        assert brief[-1].startswith(f"{more} more")


def test_a_brief_page_keeps_who_judged_the_best_group_and_one_line_of_lint() -> None:
    lint = (*warn(1, "lint one"), *warn(1, "lint two"))
    judge = Section(key="judge", findings=(Finding("A machine judged.", "warning"),))
    page = Page("x", (Section(findings=(*lint, *warn(1))), judge))
    assert texts(shorten_page(page)) == ["A machine judged", "Warning 0", "lint: one, two"]
    group = Finding("Best group: a, b. All pairs.", key="best group")
    page = Page("x", (Section(findings=(Finding("A remark."), group)),))
    assert texts(shorten_page(page)) == ["Best group: a, b"]


def test_a_table_has_seven_required_columns_and_twelve_rows() -> None:
    numbers: list[Column[Any]] = [Column(f"{i}") for i in range(9)]
    columns: tuple[Column[Any], ...] = (Column("name"), Column("p", is_optional=True), *numbers)
    rows = [Row((f"s{i}", *("0",) * 10)) for i in range(30)]
    rows[20] = replace(rows[20], tone="baseline")
    rows.append(Row(("bound", *("1",) * 10), "reference"))
    table = shorten_table(Table("t", columns, tuple(rows), ("A note.",)))
    assert [column.header for column in table.columns] == ["name", *(f"{i}" for i in range(6))]
    assert len(table.rows) <= 12
    names = [row.cells[0] for row in table.rows]
    assert {"s0", "s20", "s29"} < {*names}
    assert "bound" not in names
    assert table.notes == ()


def test_gaps_between_kept_rows_are_counted() -> None:
    rows = tuple(Row((f"s{i}",), is_kept=i % 4 == 0) for i in range(40))
    table = shorten_table(Table("t", (Column("name"),), rows))
    assert len(table.rows) <= 12
    assert {"s0", "s4", "s39"} < {row.cells[0] for row in table.rows}


def test_one_table_of_each_collection() -> None:
    [table, *_] = example_page().sections[0].tables
    collections = [Section(key=f"collection-{i}", parts=(table, table)) for i in range(2)]
    other = Section(findings=warn(1), parts=(table,))
    brief = shorten_page(Page("x", (other, *collections)))
    assert [len(section.tables) for section in brief.sections] == [1, 1, 0]
    assert texts(brief) == ["Warning 0"]
    single = shorten_page(Page("x", (other, collections[0])))
    assert [len(section.tables) for section in single.sections] == [1]
    assert texts(single) == ["Warning 0"]


def test_what_passed_has_no_table() -> None:
    page = example_page()
    assert not any(section.tables for section in shorten_page(page).sections)
    failed = replace(page, headline=Finding("failed: x", "failed"))
    assert sum(len(section.tables) for section in shorten_page(failed).sections) == 1


@pytest.mark.parametrize(("count", "shown"), [(6, 6), (7, 7), (8, MAX_DETAILS + 1)])
def test_details_of_the_answer_and_steps_are_few(count: int, shown: int) -> None:
    headline = Finding("failed", "failed", details=tuple(map(str, range(count))))
    steps = tuple(NextStep(f"run {i}", "why") for i in range(count))
    brief = shorten_page(Page("x", (), headline, next_steps=steps))
    assert brief.headline is not None
    assert len(brief.headline.details) == shown
    assert brief.next_steps == steps[:MAX_STEPS]


@pytest.mark.parametrize(
    ("detail", "lines"),
    [
        ("answer", ["passed: x"]),
        ("brief", ["passed: x", "! A failure of x", "! A warning about x", "", "Open out/x.html"]),
    ],
)
def test_what_is_printed_in_brief(detail: Detail, lines: list[str]) -> None:
    file = io.StringIO()
    files = ("out/x.json", "out/report.md", "out/x.html")
    print_page(example_page("x"), Console(file=file, width=80), written=files, detail=detail)
    assert file.getvalue().splitlines() == lines


def test_a_grid_stands_above_four_rows_with_the_baseline_and_what_is_recommended() -> None:
    columns: tuple[Column[Any], ...] = (Column("system", is_name=True, is_text=True), Column("RR"))
    rows = [Row((f"s{i}", "0"), is_best=i < 3) for i in range(9)]
    rows[6], rows[8] = replace(rows[6], is_kept=True), replace(rows[8], tone="baseline")
    grid = Table("by blend", columns, (Row(("rrf", ".1/.2")),), is_grid=True)
    section = Section(parts=(grid, Table("t", columns, tuple(rows))), findings=warn(4))
    brief = shorten_page(Page("x", (section,)))
    shown, ranking = brief.sections[0].tables
    assert shown.rows == grid.rows
    assert [row.cells[0] for row in ranking.rows] == ["s0", "s1", "s6", "s8"]
    assert ranking.columns[0].header == "4 of 9 systems"
    assert texts(brief)[-1].startswith("2 more warnings")


@pytest.mark.parametrize(("warnings", "rows"), [(0, 4), (2, 3), (9, 2)])
def test_a_table_below_a_grid_is_shorter_if_the_page_is_longer_than_30_lines(
    warnings: int, rows: int
) -> None:
    columns: tuple[Column[Any], ...] = (Column("system", is_name=True, is_text=True), Column("RR"))
    grid = Table("", columns, tuple(Row((f"f{i}", "0")) for i in range(19)), is_grid=True)
    ranking = Table("t", columns, tuple(Row((f"s{i}", "0")) for i in range(9)))
    page = Page("x", (Section(parts=(grid, ranking), findings=warn(warnings)),))
    file = io.StringIO()
    print_page(page, Console(file=file, width=80), detail="brief")
    lines = file.getvalue().splitlines()
    assert next(line for line in lines if "of 9 systems" in line).startswith(f"{rows} of")
    assert len(lines) <= 30


def test_advice_that_the_answer_begins_with_is_said_once() -> None:
    page = Page("x", (), Finding("Use a: it is better."), advice=("Use a instead of b.", "Judge."))
    assert shorten_page(page).advice == ("Judge.",)


@pytest.mark.parametrize(
    "name", ["a system of more than thirty characters", "日本語の長い名前の検索方法"]
)
def test_names_of_systems_are_cut_in_the_middle(name: str) -> None:
    columns: tuple[Column[Any], ...] = (Column("system", is_name=True, is_text=True), Column("RR"))
    table = Table("t", columns, (Row((name, "0.5"), is_best=True), Row(("b", "0.4"))))
    file = io.StringIO()
    page = Page("x", (Section(parts=(table,)),))
    print_page(page, Console(file=file, width=60), detail="brief")
    first, last = file.getvalue().splitlines()[-2:]
    assert first.startswith(f"★ {name[:5]}")
    assert first.split("…")[1].split("  ")[0] in name[-12:]
    assert 24 < cell_len(first) == cell_len(last) <= 2 + 24 + 2 + 3
    assert last.startswith("  b ")
