"""The tables of slices."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.evaluation_tables import MAX_SYSTEMS, slice_table
from fusion_bench.report.page import Table
from fusion_bench.stats.intervals import estimate_mean
from tests.report.cases import collection, fused, many, report, system

BASE = (0.1, 0.2, 0.3, 0.4)
TYPES = ("local", "local", "global", None)


def table_of(found: Collection) -> Table:
    table = slice_table(report(found), found, "type")
    assert table is not None
    return table


def test_each_type_is_paired_on_its_own_queries() -> None:
    candidate = fused("new", 0.3, 0.5, 0.3, 0.2)
    table = table_of(collection(system("base", *BASE), candidate, types=TYPES))
    assert [row.cells[:4] for row in table.rows] == [
        ("global", "base", "1", "0.3000"),
        ("", "new", "", "0.3000"),
        ("local", "base", "2", "0.1500"),
        ("", "new", "", "0.4000"),
        ("(no type)", "base", "1", "0.4000"),
        ("", "new", "", "0.2000"),
    ]
    expected = estimate_mean(np.array([0.2, 0.3]))
    interval = f"[{expected.low:+.4f}, {expected.high:+.4f}]"
    assert table.rows[3].cells[4:] == ("+0.2500", interval, "2/0/0")
    assert table.rows[5].cells[5] == "n/a", "one query tells no spread"


@pytest.mark.parametrize(
    "found",
    [
        collection(system("base", *BASE), fused("new", *BASE), types=(None,) * 4),
        collection(system("base", *BASE), fused("new", *BASE), types=("a",) * 4),
        collection(system("base", *BASE), types=TYPES),
    ],
)
def test_one_type_or_a_baseline_alone_is_no_table(found: Collection) -> None:
    assert slice_table(report(found), found, "type") is None


def test_only_the_best_systems_are_shown() -> None:
    table = table_of(many(12).model_copy(update={"types": ("a", "b")}))
    assert len(table.rows) == 2 * (1 + MAX_SYSTEMS)


def test_missing_values_are_left_out() -> None:
    candidate = fused("new", None, 0.5, None, 0.2)
    table = table_of(collection(system("base", *BASE), candidate, types=TYPES))
    assert table.rows[1].cells[3:] == ("n/a", "n/a", "n/a", "")
    assert table.rows[3].cells[4] == "+0.3000"
