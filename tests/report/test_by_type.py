"""Per-type rows of a report."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from fusion_bench.report.by_type import by_type
from fusion_bench.report.markdown import render
from fusion_bench.report.terminal import render as show
from fusion_bench.stats.intervals import estimate_mean
from tests.report.cases import collection, full, fused, many, report, system

BASE = (0.1, 0.2, 0.3, 0.4)
BETTER = (0.3, 0.5, 0.3, 0.2)
TYPES = ("local", "local", "global", None)


def test_each_type_is_paired_on_its_own_queries() -> None:
    found = collection(system("base", *BASE), fused("new", *BETTER), types=TYPES)
    table = by_type(report(found), found)
    assert table is not None
    assert [row.cells[:4] for row in table.rows] == [
        ("global", "1", "base", "0.3000"),
        ("", "", "new", "0.3000"),
        ("local", "2", "base", "0.1500"),
        ("", "", "new", "0.4000"),
        ("(no type)", "1", "base", "0.4000"),
        ("", "", "new", "0.2000"),
    ]
    local = table.rows[3].cells
    expected = estimate_mean(np.array([0.2, 0.3]))
    assert local[4] == "+0.2500"
    assert local[5] == f"[{expected.low:+.4f}, {expected.high:+.4f}]"
    assert local[6] == "2/0/0"
    assert table.rows[5].cells[5] == "n/a", "one query tells no spread"
    assert "Not adjusted" in table.notes[0]


@pytest.mark.parametrize("types", [(None,) * 4, ("a",) * 4])
def test_one_type_is_no_table(types: tuple[str | None, ...]) -> None:
    found = collection(system("base", *BASE), fused("new", *BETTER), types=types)
    assert by_type(report(found), found) is None


def test_a_baseline_alone_is_no_table() -> None:
    found = collection(system("base", *BASE), types=TYPES)
    assert by_type(report(found), found) is None


def test_only_the_best_few_are_shown() -> None:
    found = many(12).model_copy(update={"types": ("a", "b")})
    table = by_type(report(found), found)
    assert table is not None
    assert len(table.rows) == 2 * 5


def test_missing_values_are_left_out() -> None:
    found = collection(system("base", *BASE), fused("new", None, 0.5, None, 0.2), types=TYPES)
    table = by_type(report(found), found)
    assert table is not None
    assert table.rows[1].cells[3:] == ("n/a", "n/a", "n/a", "")
    assert table.rows[3].cells[4] == "+0.3000"


def test_page_and_terminal_have_the_rows() -> None:
    found = full(types=("local", "global", "local"))
    assert "### nDCG@10 by query type" in render(report(found))
    out = io.StringIO()
    show(report(found), Console(file=out, width=200))
    assert "nDCG@10 by query type" in out.getvalue()
    assert "by query type" not in render(report(full()))
