"""Tables of an evaluation, cell by cell."""

import math

import numpy as np
import pytest

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    SourceTieResult,
    SystemResult,
    TieResult,
)
from fusion_bench.report.answer_texts import second_verdict
from fusion_bench.report.evaluation_page import cost_table, input_table
from fusion_bench.report.evaluation_tables import (
    MAX_SYSTEMS,
    find_pair,
    grid_table,
    primary_table,
    secondary_table,
    slice_table,
    validity_table,
)
from fusion_bench.report.page import Table
from fusion_bench.stats.intervals import estimate_mean
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND, collection, fused, many, report, system


def primary(collection: Collection) -> Table:
    return primary_table(cases.report(collection), collection)


def validity(collection: Collection) -> Table:
    return validity_table(collection)


def secondary(collection: Collection) -> Table:
    return secondary_table(cases.report(collection), collection, cases.SECOND)


def headers(table: Table) -> list[str]:
    return [column.header for column in table.columns]


def test_columns_have_legends_and_may_go_where_a_page_is_narrow() -> None:
    table = primary(cases.full())
    assert [i for i, column in enumerate(table.columns) if column.is_optional] == [2, 5, 6]
    required = headers(secondary(cases.full()).without_optional_columns())
    assert required == ["system", "MRR@10", "difference", "p"]
    tones = [row.tone for row in secondary(cases.full()).rows]
    assert tones == ["plain", "baseline", "plain", *3 * ["reference"]]
    for whole in (cases.full(), cases.collection(cases.system("base", 0.1))):
        table = validity(whole)
        assert {note.split(" = ")[0] for note in table.notes} == set(headers(table)[1:])


@pytest.mark.parametrize("alpha", [0.1, 0.001])
def test_intervals_are_named_by_their_coverage(alpha: float) -> None:
    collection = cases.full()
    report = cases.report(collection, settings={"alpha": alpha})
    assert f"{100 - 100 * alpha:g} % interval" in headers(primary_table(report, collection))
    assert report.model_copy(update={"settings": {}}).alpha == 0.05


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [
        ("better", "better"),
        ("worse", "worse"),
        ("unjudged decide", "warning"),
        ("not shown", "plain"),
        ("identical", "plain"),
    ],
)
def test_tone_follows_the_verdict(verdict: str, tone: str) -> None:
    shown = "judge first" if verdict == "unjudged decide" else verdict
    rows = (cases.system("base", 0.1, 0.2), cases.system("x", 0.3, 0.4))
    row = primary(cases.collection(*rows, comparisons=[cases.compared("x", 0.2, verdict)])).rows[0]
    assert (row.cells[0], row.cells[-1], row.tone) == ("x", shown, tone)


def test_the_best_group_of_three_systems_or_more_is_marked() -> None:
    rows = [system(name, value) for name, value in (("base", 0.2), ("x", 0.3), ("y", 0.4))]
    items = [cases.compared(name, 0.1) for name in ("x", "y")]
    table = primary(collection(*rows, comparisons=items, first_group=("x", "y")))
    assert {row.cells[0]: row.is_best for row in table.rows} == {
        "y": True,
        "x": True,
        "base": False,
    }
    two = primary(collection(*rows[:2], comparisons=items[:1], first_group=("x",)))
    assert not any(row.is_best for row in two.rows)


def test_the_second_measure_stands_beside_the_first_and_has_a_verdict_of_its_own() -> None:
    whole = collection(system("base", 0.2), system("x", 0.3), comparisons=[cases.compared("x")])
    assert headers(primary(whole)).index("MRR@10") < headers(primary(whole)).index("verdict")
    for p, difference, verdict in [
        (0.01, 0.1, "better"),
        (0.01, -0.1, "worse"),
        (0.2, 0.1, "not shown"),
    ]:
        item = cases.compared("x", difference, measure=SECOND, p=p)
        both = whole.model_copy(update={"comparisons": (*whole.comparisons, item)})
        assert second_verdict(report(both), both, "x") == verdict
    assert second_verdict(report(whole), whole, "x") == ""


def test_identical_systems_have_no_interval() -> None:
    item = cases.compared("x", 0.0, "identical", low=0.0, high=0.0)
    whole = collection(system("base", 0.2), system("x", 0.2), comparisons=[item])
    cells = dict(zip(headers(primary(whole)), primary(whole).rows[1].cells, strict=True))
    assert cells["difference [95 % interval]"] == "0.0000"


def blended(name: str, value: float, runs: str = "ab", **blend: object) -> SystemResult:
    config = {"runs": [*runs], "blend": blend or {"method": "none"}, "fusion": name.split()[0]}
    return system(name, value).model_copy(update={"config": config})


def test_a_grid_has_a_row_for_each_fusion_and_a_column_for_each_blend() -> None:
    replacing, raised = {"method": "replace"}, {"method": "linear", "retrieval": "fused"}
    rows = [
        *(system("base", 0.2), blended("a", 0.3), blended("b", 1.0), blended("alone", 0.4)),
        *(blended("a swap", 0.5, **replacing), blended("b swap", 0.6, **replacing)),
        blended("a", 0.7, **raised).model_copy(update={"name": "other"}),
    ]
    table = grid_table(collection(*rows))
    assert table is not None
    assert headers(table) == [f"{PRIMARY} / MRR@10", "no blend", "swap", "linear fused"]
    assert [row.cells for row in table.rows] == [
        ("a", ".300/.300", ".500/.500", ".700/.700"),
        ("b", "1.000/1.000", ".600/.600", ""),
    ]
    assert grid_table(collection(*rows[:4])) is None
    assert grid_table(collection(*rows[1:3], *rows[4:6])) is None


def test_rows_are_sorted_by_mean_and_equal_ones_keep_their_order() -> None:
    rows = [
        cases.system("none", None, None),
        cases.system("base", 0.2, 0.2),
        cases.system("twin", 0.2, 0.2),
        cases.system("top", 0.9, 0.9),
        cases.system("nan", 0.1, math.nan),
    ]
    collection = cases.collection(cases.ceiling(1.0, 1.0), *rows, cases.floor(0.1, 0.1))
    order = ["top", "base", "twin", "none", "nan"]
    references = ["perfect order", "best single source"]
    assert [row.cells[0] for row in primary(collection).rows] == order + references
    assert [row.cells[0] for row in secondary(collection).rows] == order + references
    assert [row.cells[0] for row in validity(collection).rows] == order
    means = [row.cells[1] for row in primary(collection).rows[:5]]
    assert means == ["0.9000", "0.2000", "0.2000", "n/a", "n/a"]


def test_missing_numbers_are_marked() -> None:
    rows = (cases.system("base", None, unjudged=None), cases.system("x", None, unjudged=None))
    comparison = cases.compared("x", low=None, high=None, detectable=None)
    collection = cases.collection(*rows, comparisons=[comparison])
    assert primary(collection).rows[1].cells[:5] == ("x", "n/a", "n/a", "n/a", "+0.1000 n/a")
    assert validity(collection).rows[1].cells == ("x", "n/a", "+0.90", "n/a", "n/a")
    assert validity(collection).rows[0].cells == ("base", "", "", "", "n/a")


def checked(comparisons: list[ComparisonResult], *, knows: bool = True) -> Table:
    rows = (
        cases.system("base", 0.1, 0.2, ties=cases.tied(0), unjudged=0.1),
        cases.system("x", 0.3, 0.4, ties=cases.tied(2), unjudged=0.0001),
        cases.system("y", 0.2, 0.4, unjudged=0.0),
        cases.floor(0.1, 0.1),
    )
    return validity(
        cases.collection(*rows, comparisons=comparisons, has_irrelevant_judgments=knows)
    )


def test_validity_table() -> None:
    comparisons = [
        cases.compared(
            "x", 0.2, "unjudged decide", detectable=0.03, unjudged=cases.judged_only(-0.01)
        ),
        cases.compared("y", 0.2, detectable=0.00001, unjudged=cases.judged_only(0.02)),
    ]
    table = checked(comparisons)
    assert [row.cells for row in table.rows] == [
        (
            "x",
            "+133.3",
            "+0.90",
            "0.0300",
            "2",
            "0.1000…0.2000…0.3000",
            "<0.1 %",
            "-0.0100",
            "-0.0050",
        ),
        ("y", "+133.3", "+0.90", "0.00001", "", "", "0.0 %", "+0.0200", "+0.0100"),
        ("base", "", "", "", "", "", "10.0 %", "", ""),
    ]
    assert [row.tone for row in table.rows] == ["warning", "plain", "baseline"]
    assert table.notes != checked(comparisons, knows=False).notes


def test_tie_columns_only_where_there_are_ties() -> None:
    collection = cases.full()
    sizes = ["% of baseline", "effect size", "min. detectable"]
    assert headers(validity(collection)) == [
        "system",
        *sizes,
        "unjudged",
        "judged only",
        "unjudged estimated",
    ]
    assert "final ties" not in headers(secondary(collection))
    ties = TieResult(affected_queries=1, minimum=0.1, maximum=0.2, expected=None)
    tied = cases.collection(cases.system("base", 0.1, ties=ties), cases.floor(0.2))
    assert validity(tied).rows[0].cells[2] == "0.1000…n/a…0.2000"
    assert headers(secondary(tied))[3:] == ["final ties", "final tie range"]
    assert [row.cells[3:] for row in secondary(tied).rows] == [
        ("1", "0.1000…n/a…0.2000"),
        ("", ""),
    ]


@pytest.mark.parametrize(("settlements", "count"), [(None, "1"), (200, "≥1")])
def test_ties_inside_sources_have_columns_of_their_own(settlements: int | None, count: str) -> None:
    ties = SourceTieResult(
        affected_queries=1, minimum=0.1, maximum=0.2, expected=0.15, settlements=settlements
    )
    row = cases.system("base", 0.1)
    measures = {
        name: result.model_copy(update={"source_ties": ties})
        for name, result in row.measures.items()
    }
    tied = cases.collection(row.model_copy(update={"measures": measures}), cases.floor(0.2))
    assert headers(secondary(tied))[3:] == ["source ties", "source tie range"]
    assert secondary(tied).rows[0].cells[3:] == (count, "0.1000…0.1500…0.2000")
    legends = [note for note in validity(tied).notes if note.startswith("source ties = ")]
    assert ("200 random orders" in legends[0]) is (settlements is not None)


def test_input_table() -> None:
    runs = (cases.run("a", unanswered=3, zero_scores=4), cases.run("r", rerank=True))
    table = input_table(cases.collection(cases.system("base", 0.1), runs=runs))
    options = "ties: trec, drop_zero_scores: False"
    assert [row.cells for row in table.rows] == [
        ("a", "run", "keyword", options, "3", "1,234", "2", "4"),
        ("r", "rerank (unit)", "", options, "0", "1,234", "2", "0"),
    ]


def test_cost_table_has_the_systems_whose_list_has_a_ledger() -> None:
    ledger = {
        "cost": 0.5,
        "tokens": 2000,
        "calls": 9,
        "retries": 1,
        "queries_answered": 4,
        "query_ms": {"p50": 61.2, "p95": None},
    }
    config = {"runs": ["a"], "blend": {"method": "replace", "reranker": "r"}}
    reranked = cases.system("re", 0.5, blend="replace").model_copy(update={"config": config})
    rows = (cases.system("base", 0.4), cases.system("plain", 0.5, blend="replace"), reranked)
    runs = (cases.run("r", rerank=True, ledger=ledger, degraded=2),)
    table = cost_table(cases.collection(*rows, comparisons=[cases.compared("re")], runs=runs))
    assert table is not None
    amounts = ("61", "n/a", "125.0000", "500,000", "9", "1", "2")
    assert [row.cells for row in table.rows] == [("re", "cohere/m", "0.5000", "+0.1000", *amounts)]
    assert len(table.columns) == len(table.rows[0].cells)
    assert cost_table(cases.full()) is None


# ── the tables of slices


BASE = (0.1, 0.2, 0.3, 0.4)
TYPES = ("local", "local", "global", None)


def slices_of(found: Collection) -> Table:
    table = slice_table(report(found), found, "type")
    assert table is not None
    return table


def test_each_type_is_paired_and_missing_values_are_left_out() -> None:
    candidate = fused("new", 0.3, 0.5, 0.3, 0.2)
    table = slices_of(collection(system("base", *BASE), candidate, types=TYPES))
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
    candidate = fused("new", None, 0.5, None, 0.2)
    table = slices_of(collection(system("base", *BASE), candidate, types=TYPES))
    assert table.rows[1].cells[3:] == ("n/a", "n/a", "n/a", "")
    assert table.rows[3].cells[4] == "+0.3000"


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
    table = slices_of(many(12).model_copy(update={"types": ("a", "b")}))
    assert len(table.rows) == 2 * (1 + MAX_SYSTEMS)


# ── differences that a report does not store have intervals within the bounds of the measure


GAINS, LOSSES = (1.0, 0.0, 1.0), (0.0, 1.0, 0.0)


@pytest.mark.parametrize(("measure", "is_bounded"), [(PRIMARY, True), ("gain@10", False)])
def test_the_interval_of_a_bounded_measure_stays_within_its_bounds(
    measure: str, is_bounded: bool
) -> None:
    item = collection(system("base", *GAINS), system("other", *LOSSES))
    rows = [
        row.model_copy(update={"measures": {measure: row.measures[PRIMARY]}})
        for row in item.systems
    ]
    item = item.model_copy(update={"systems": tuple(rows), "measures": (measure,)})
    pair = find_pair(item, "base", "other")
    assert pair is not None
    result = pair.estimate(0.05)
    assert result.mean == pytest.approx(1 / 3)
    assert (result.low >= -1, result.high <= 1) == (is_bounded, is_bounded)
