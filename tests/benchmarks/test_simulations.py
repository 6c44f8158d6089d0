"""Promises decide as written; results and tables agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.studies.simulations import sample_size
from benchmarks.studies.simulations.__main__ import find_simulations, run_simulation
from benchmarks.studies.simulations.page import (
    PAGE,
    RESULTS,
    Result,
    format_result,
    read_result,
    write_result,
    write_table,
)
from benchmarks.studies.simulations.promise import Estimate, Promise, Side

TOY = Result(
    name="toy",
    title="A coin",
    description="Thrown.",
    draws=200,
    promises=(
        Promise("fair", "heads", 10, 200, 0.025, "at most"),
        Promise("unfair", "heads", 150, 200),
    ),
    estimates=(Estimate("fair", "heads", 0.5, 0.01),),
)


@pytest.mark.parametrize(
    ("count", "runs", "limit", "side", "holds"),
    [
        (10, 200, 0.025, "at most", True),  # the greatest count of 200 that holds
        (11, 200, 0.025, "at most", False),
        (0, 200, 0.025, "at most", True),
        (150, 200, 0.8, "at least", True),
        (140, 200, 0.8, "at least", False),
        (200, 200, 0.8, "at least", True),
        (3, 4, None, "none", None),
    ],
)
def test_a_promise_holds_where_its_interval_reaches_the_good_side(
    count: int, runs: int, limit: float | None, side: Side, holds: bool | None
) -> None:
    assert Promise("d", "e", count, runs, limit, side).holds is holds


def test_a_range_is_two_promises() -> None:
    least, most = Promise.from_range("d", "covers", 1900, 2000, 0.93, 0.97)
    assert (least.limit, least.side, most.limit, most.side) == (0.93, "at least", 0.97, "at most")
    assert least.holds
    assert most.holds


@pytest.mark.parametrize(
    ("count", "runs", "limit", "side"),
    [(3, 2, None, "none"), (0, 0, None, "none"), (1, 2, 0.5, "none"), (1, 2, None, "at most")],
)
def test_refuses_impossible_counts(count: int, runs: int, limit: float | None, side: Side) -> None:
    with pytest.raises(ValueError, match="d: "):
        Promise("d", "e", count, runs, limit, side)


def test_results_and_tables_are_written(tmp_path: Path) -> None:
    assert read_result(write_result(TOY, tmp_path)) == TOY
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- simulation: toy -->\n<!-- /simulation: toy -->\nb\n", "utf-8")
    write_table(TOY, page)
    assert format_result(TOY) in page.read_text("utf-8")


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_page_shows_the_committed_results(path: Path) -> None:
    assert format_result(read_result(path)) in PAGE.read_text("utf-8")


def test_numbers_of_queries_have_the_promised_power_at_toy_size() -> None:
    result = run_simulation("sample_size", sample_size, draws=8)
    assert len(result.promises) > 20
    assert {each.side for each in result.promises} == {"at least"}
    assert {each.runs for each in result.promises} <= set(range(1, 9))
    assert sum(each.count for each in result.promises) > 100


def test_every_simulation_has_a_title_a_description_and_a_place_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for name, module in find_simulations().items():
        assert module.TITLE
        assert module.DESCRIPTION
        assert f"<!-- simulation: {name} -->" in page
