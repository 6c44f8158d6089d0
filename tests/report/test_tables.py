"""What the tables show, cell by cell."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from fusion_bench.evaluation.report_records import TieResult
from fusion_bench.report import tables
from fusion_bench.util.formatting import (
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND

NAN = math.nan


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (None, False, "n/a"),
        (NAN, True, "n/a"),
        (0.0, False, "0.0000"),
        (-0.0, True, "0.0000"),
        (0.5, False, "0.5000"),
        (0.5, True, "+0.5000"),
        (-0.5, True, "-0.5000"),
        (0.12345, False, "0.1235"),
        (0.00004, False, "0.00004"),
        (-0.0000412, True, "-0.00004"),
        (0.0000000123, False, "0.00000001"),
        (1e-12, True, "+0.000000000001"),
        (1e-14, True, "0.0000"),
        (1.0, False, "1.0000"),
        (12.5, False, "12.5000"),
    ],
)
def test_numbers(value: float | None, signed: bool, text: str) -> None:
    assert format_number(value, signed=signed) == text


@pytest.mark.parametrize(
    ("low", "high", "signed", "text"),
    [
        (0.1, 0.2, False, "[0.1000, 0.2000]"),
        (-0.1, 0.2, True, "[-0.1000, +0.2000]"),
        (0.00001, 0.2, True, "[+0.00001, +0.2000]"),
        (None, 0.2, False, "n/a"),
        (0.1, None, False, "n/a"),
        (NAN, 0.2, False, "n/a"),
        (0.1, NAN, False, "n/a"),
    ],
)
def test_intervals(low: float | None, high: float | None, signed: bool, text: str) -> None:
    assert format_interval(low, high, signed=signed) == text


@pytest.mark.parametrize(
    ("p", "alpha", "text"),
    [
        (None, 0.05, "n/a"),
        (NAN, 0.05, "n/a"),
        (1.0, 0.05, "1"),
        (0.99951, 0.05, ">.999"),
        (0.9994, 0.05, ".999"),
        (0.5, 0.05, ".500"),
        (0.0123, 0.05, ".012"),
        (0.001, 0.05, ".001"),
        (0.00099, 0.05, "<.001"),
        (1e-30, 0.05, "<.001"),
        (0.0, 0.05, "<.001"),
        # never across the level …
        (0.05, 0.05, ".050"),
        (0.0496, 0.05, ".0496"),
        (0.04999, 0.05, ".04999"),
        (0.0504, 0.05, ".050"),
        (0.0096, 0.01, ".0096"),
        # … nor to 0
        (0.0007, 0.0005, ".001"),
        (0.0004, 0.0005, ".0004"),
        (0.00049, 0.0005, ".00049"),
        (0.00002, 0.0005, ".00002"),
        (0.0, 0.0005, "0"),  # as it is
    ],
)
def test_p_values(p: float | None, alpha: float, text: str) -> None:
    assert format_p_value(p, alpha=alpha) == text
    unadjusted = text if text == "n/a" else f"{text}†"
    assert format_p_value(p, alpha=alpha, adjusted=False) == unadjusted


@pytest.mark.parametrize("alpha", [0.0005, 0.001, 0.01, 0.05, 0.1, 0.2345])
def test_no_p_is_shown_as_0_or_on_the_other_side_of_the_level(alpha: float) -> None:
    ps = [i / 20_001 for i in range(1, 20_001)]
    ps += [alpha, math.nextafter(alpha, 0), math.nextafter(alpha, 1), alpha * 0.99, alpha * 1.01]
    for p in ps:
        text = format_p_value(p, alpha=alpha)
        if text == "<.001":
            assert p < 0.001 <= alpha
        elif text == ">.999":
            assert p >= 0.9995
        else:
            value = float(text)
            assert value > 0
            assert (value < alpha) == (p < alpha), (p, text)
            assert abs(value - p) <= 0.0005


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (NAN, "n/a"),
        (0.0, "0.0 %"),
        (0.0001, "<0.1 %"),
        (0.0006, "0.1 %"),
        (0.1234, "12.3 %"),
        (1.0, "100.0 %"),
    ],
)
def test_shares(value: float | None, text: str) -> None:
    assert format_percent(value) == text


@pytest.mark.parametrize(
    ("settings", "level", "coverage"),
    [({}, 0.05, "95 %"), ({"alpha": 0.1}, 0.1, "90 %"), ({"alpha": 0.001}, 0.001, "99.9 %")],
)
def test_level_and_coverage(settings: dict[str, float], level: float, coverage: str) -> None:
    made = cases.report(cases.full(), settings=settings)
    assert tables.level(made) == level
    assert tables.coverage(made) == coverage
    bare = made.model_copy(update={"settings": {}})
    assert tables.level(bare) == 0.05


def test_the_main_table() -> None:
    found = cases.full()
    table = tables.main(cases.report(found), found)
    assert table.title == f"{PRIMARY} decides"
    interval_ = "95 % interval"
    headers = ["system", PRIMARY, interval_, "difference", interval_, "Holm p", "w/t/l", "verdict"]
    assert [column.header for column in table.columns] == headers
    assert [column.header for column in table.columns if column.left] == ["system", "verdict"]
    assert [i for i, column in enumerate(table.columns) if column.optional] == [2]
    better, base, worse, *bounds = table.rows
    assert better.cells == (
        "better one",
        "0.8000",
        "[0.7000, 0.9000]",
        "+0.4000",
        "[+0.3000, +0.5000]",
        "<.001",
        "2/1/0",
        "better",
    )
    assert base.cells == ("base", "0.4000", "[0.3000, 0.5000]", "", "", "", "", "baseline")
    assert (worse.cells[0], worse.cells[5], worse.cells[7]) == ("worse one", ".010", "worse")
    assert [row.tone for row in table.rows] == ["better", "baseline", "worse", *3 * ["bound"]]
    assert [row.cells[0] for row in bounds] == [
        "best single source",
        "best source per query",
        "perfect order",
    ]
    assert [row.cells[3:] for row in bounds] == [
        ("", "", "", "", word) for word in ("floor", "ceiling", "ceiling")
    ]
    assert "system - base (the baseline), paired over 3 queries" in table.notes[0]
    assert "over 2 compared systems" in table.notes[0]
    assert table.notes[1] == "best single source (floor): a, chosen on this split"
    assert len(table.notes) == 4


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [
        ("better", "better"),
        ("worse", "worse"),
        ("no verdict", "doubtful"),
        ("no difference shown", "plain"),
        ("identical", "plain"),
    ],
)
def test_tone_follows_the_verdict(verdict: str, tone: str) -> None:
    rows = (cases.system("base", 0.1, 0.2), cases.system("x", 0.3, 0.4))
    found = cases.collection(*rows, comparisons=[cases.compared("x", 0.2, verdict)])
    row = tables.main(cases.report(found), found).rows[0]
    assert (row.cells[0], row.cells[-1], row.tone) == ("x", verdict, tone)


def test_rows_go_by_mean_and_equals_stay_in_order() -> None:
    rows = [
        cases.system("none", None, None),
        cases.system("base", 0.2, 0.2),
        cases.system("twin", 0.2, 0.2),
        cases.system("top", 0.9, 0.9),
        cases.system("nan", 0.1, NAN),
    ]
    found = cases.collection(cases.ceiling(1.0, 1.0), *rows, cases.floor(0.1, 0.1))
    made = cases.report(found)
    order = ["top", "base", "twin", "none", "nan"]
    assert [row.name for row in tables.ranked(found)] == order
    bounds = ["perfect order", "best single source"]
    assert [row.cells[0] for row in tables.main(made, found).rows] == order + bounds
    assert [row.cells[0] for row in tables.other(made, found, [SECOND]).rows] == order + bounds
    assert [row.cells[0] for row in tables.checks(made, found).rows] == order
    means = [row.cells[1] for row in tables.main(made, found).rows[:5]]
    assert means == ["0.9000", "0.2000", "0.2000", "n/a", "n/a"]
    assert all(a >= b for a, b in pairwise(means[:3]))


def test_missing_numbers_are_not_available() -> None:
    rows = (cases.system("base", None, unjudged=None), cases.system("x", None, unjudged=None))
    one = cases.compared("x", low=None, high=None, detectable=None, judged=None)
    found = cases.collection(*rows, comparisons=[one])
    made = cases.report(found)
    row = tables.main(made, found).rows[1]
    assert row.cells[:5] == ("x", "n/a", "n/a", "+0.1000", "n/a")
    assert tables.checks(made, found).rows[1].cells == ("x", "n/a", "n/a", "n/a")
    assert tables.checks(made, found).rows[0].cells == ("base", "", "n/a", "")


def test_a_primary_measure_without_adjusted_p_is_marked() -> None:
    rows = (cases.system("base", 0.1), cases.system("x", 0.2))
    one = cases.compared("x", p=0.04).model_copy(update={"p_holm": None})
    found = cases.collection(*rows, comparisons=[one])
    assert tables.main(cases.report(found), found).rows[0].cells[5] == ".040†"


@pytest.mark.parametrize("knows", [True, False])
def test_checks(knows: bool) -> None:
    rows = (
        cases.system("base", 0.1, 0.2, ties=cases.tied(0), unjudged=0.1),
        cases.system("x", 0.3, 0.4, ties=cases.tied(2), unjudged=0.0001),
        cases.system("y", 0.2, 0.4, unjudged=0.0),
        cases.floor(0.1, 0.1),
    )
    one = cases.compared("x", 0.2, "no verdict", detectable=0.03, judged=-0.01)
    two = cases.compared("y", 0.2, detectable=0.00001, judged=0.02)
    found = cases.collection(*rows, comparisons=[one, two], knows_not_relevant=knows)
    table = tables.checks(cases.report(found), found)
    assert [row.cells for row in table.rows] == [
        ("x", "0.0300", "2", "0.1000…0.2000…0.3000", "<0.1 %", "-0.0100 flips"),
        ("y", "0.00001", "", "", "0.0 %", "+0.0200"),
        ("base", "", "0", "", "10.0 %", ""),
    ]
    assert [row.tone for row in table.rows] == ["doubtful", "plain", "baseline"]
    text = " ".join(table.notes)
    assert ("'flips' = its sign differs" in text) is knows
    assert ("every judged document is relevant here" in text) is not knows
    assert "tied = queries whose" in text


def test_no_column_about_ties_where_there_are_none() -> None:
    found = cases.full()
    made = cases.report(found)
    table = tables.checks(made, found)
    headers = ["system", "detectable", "unjudged", "judged only"]
    assert [column.header for column in table.columns] == headers
    assert table.notes[2] == f"No system's {PRIMARY} depends on the order of tied documents."
    assert "tied" not in [c.header for c in tables.other(made, found, [SECOND]).columns]


def test_unknown_expectation_of_ties() -> None:
    ties = TieResult(affected=1, minimum=0.1, maximum=0.2, expected=None)
    found = cases.collection(cases.system("base", 0.1, ties=ties))
    assert tables.checks(cases.report(found), found).rows[0].cells[3] == "0.1000…n/a…0.2000"


def test_other_measures_are_marked_as_unadjusted() -> None:
    found = cases.full()
    table = tables.other(cases.report(found), found, [SECOND])
    assert table.title == SECOND
    assert [column.header for column in table.columns][5] == "p†"
    assert table.rows[0].cells[:1] + table.rows[0].cells[5:] == ("better one", "<.001†", "2/1/0")
    assert [row.tone for row in table.rows] == ["plain", "baseline", "plain", *3 * ["bound"]]
    assert table.notes[0].startswith("† not adjusted for the number of comparisons")
    assert all("†" not in row.cells[5] for row in tables.main(cases.report(found), found).rows)


def test_measures_beside_each_other() -> None:
    ties = cases.tied(1)
    found = cases.collection(cases.system("base", 0.1, ties=ties), cases.floor(0.2))
    table = tables.other(cases.report(found), found, [SECOND, PRIMARY])
    assert table.title == f"{SECOND}, {PRIMARY}"
    assert {len(row.cells) for row in table.rows} == {len(table.columns)} == {17}
    assert table.rows[0].cells[7:9] == ("1", "0.1000…0.2000…0.3000")
    assert table.rows[1].cells[7:9] == ("", "")
    kept = [column.header for column in table.columns if not column.optional]
    each = ("difference", "p†", "tied")
    assert kept == ["system", SECOND, *each, PRIMARY, *each]


def test_inputs() -> None:
    found = cases.collection(
        cases.system("base", 0.1),
        runs=(cases.run("a\n", unanswered=3, zero_scores=4), cases.run("r", rerank=True)),
    )
    table = tables.inputs(found)
    reading = "ties: trec, drop_zero_scores: False"
    assert [row.cells for row in table.rows] == [
        ("a\\n", "run", "keyword", reading, "3", "1,234", "2", "4"),
        ("r", "rerank (unit)", "", reading, "0", "1,234", "2", "0"),
    ]
    assert "unanswered = judged queries without a result" in table.notes[0]


def test_quality_against_cost_and_latency() -> None:
    ledger = {
        "cost": 0.5,
        "tokens": 2000,
        "calls": 9,
        "retries": 1,
        "queries_answered": 4,
        "query_ms": {"p50": 61.2, "p95": None},
    }
    base, plain = cases.system("base", 0.4), cases.system("plain", 0.5, blend="replace")
    reranked = cases.system("re", 0.5, blend="replace")
    config = {"runs": ["a"], "blend": {"method": "replace", "reranker": "r"}}
    reranked = reranked.model_copy(update={"config": config})
    runs = (cases.run("r", rerank=True, ledger=ledger, degraded=2),)
    found = cases.collection(
        base, plain, reranked, comparisons=(cases.compared("re", 0.1),), runs=runs
    )
    table = tables.prices(found)
    assert table is not None
    assert [row.cells for row in table.rows] == [
        (
            "re", "cohere/m", "0.5000", "+0.1000", "61", "n/a", "125.0000", "500,000", "9", "1",
            "2",
        )
    ]  # fmt: skip
    assert len(table.columns) == len(table.rows[0].cells)
    assert tables.prices(cases.collection(base, plain, reranked)) is None
    none = (cases.run("r", rerank=True, ledger={"calls": 0}),)
    unknown = tables.prices(cases.collection(base, reranked, runs=none))
    assert unknown is not None
    assert unknown.rows[0].cells[3:8] == ("", "n/a", "n/a", "n/a", "n/a")
