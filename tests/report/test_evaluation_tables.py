"""Tables of an evaluation: golden/evaluation-tables.txt has their cells."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from fusion_bench.evaluation.report_records import (
    Collection,
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
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND, collection, fused, many, report, system
from tests.report.finding_cases import describe_tables
from tests.report.test_golden import FOLDER


def primary(collection: Collection) -> Table:
    return primary_table(cases.report(collection), collection)


def validity(collection: Collection) -> Table:
    return validity_table(collection)


def secondary(collection: Collection) -> Table:
    return secondary_table(cases.report(collection), collection, cases.SECOND)


def headers(table: Table) -> list[str]:
    return [column.header for column in table.columns]


@pytest.mark.parametrize("alpha", [0.1, 0.001])
def test_intervals_are_named_by_their_coverage(alpha: float) -> None:
    collection = cases.full()
    report = cases.report(collection, settings={"alpha": alpha})
    assert f"{100 - 100 * alpha:g} % interval" in headers(primary_table(report, collection))
    assert report.model_copy(update={"settings": {}}).alpha == 0.05


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


def blended(name: str, value: float, runs: str = "ab", **blend: object) -> SystemResult:
    config = {"runs": [*runs], "blend": blend or {"method": "none"}, "fusion": name.split()[0]}
    return system(name, value).model_copy(update={"config": config})


REPLACING = {"method": "replace"}
GRID = (
    *(system("base", 0.2), blended("a", 0.3), blended("b", 1.0), blended("alone", 0.4)),
    *(blended("a swap", 0.5, **REPLACING), blended("b swap", 0.6, **REPLACING)),
    blended("a", 0.7, method="linear", retrieval="fused").model_copy(update={"name": "other"}),
)


def test_a_grid_needs_two_fusions_and_two_blends_of_each() -> None:
    assert grid_table(collection(*GRID[:4])) is None
    assert grid_table(collection(*GRID[1:3], *GRID[4:6])) is None


def source_tied(settlements: int | None) -> Collection:
    """A system with ties inside its sources, over all orders or over so many random ones."""
    ties = SourceTieResult(
        affected_queries=1, minimum=0.1, maximum=0.2, expected=0.15, settlements=settlements
    )
    row = system("base", 0.1)
    measures = {
        name: result.model_copy(update={"source_ties": ties})
        for name, result in row.measures.items()
    }
    return collection(row.model_copy(update={"measures": measures}), cases.floor(0.2))


def with_costs() -> Collection:
    ledger = {"cost": 0.5, "tokens": 2000, "calls": 9, "retries": 1, "queries_answered": 4}
    config = {"runs": ["a"], "blend": {"method": "replace", "reranker": "r"}}
    reranked = system("re", 0.5, blend="replace").model_copy(update={"config": config})
    rows = (system("base", 0.4), system("plain", 0.5, blend="replace"), reranked)
    list_ = cases.run(
        "r", rerank=True, ledger={**ledger, "query_ms": {"p50": 61.2, "p95": None}}, degraded=2
    )
    return collection(*rows, comparisons=[cases.compared("re")], runs=(list_,))


MISSING = collection(
    *(system("base", None, unjudged=None), system("x", None, unjudged=None)),
    comparisons=[cases.compared("x", low=None, high=None, detectable=None)],
)
CHECKED = collection(
    system("base", 0.1, 0.2, ties=cases.tied(0), unjudged=0.1),
    system("x", 0.3, 0.4, ties=cases.tied(2), unjudged=0.0001),
    *(system("y", 0.2, 0.4, unjudged=0.0), cases.floor(0.1, 0.1)),
    comparisons=[
        cases.compared(
            "x", 0.2, "unjudged decide", detectable=0.03, unjudged=cases.judged_only(-0.01)
        ),
        cases.compared("y", 0.2, detectable=0.00001, unjudged=cases.judged_only(0.02)),
    ],
)
TIED = collection(
    system(
        "base", 0.1, ties=TieResult(affected_queries=1, minimum=0.1, maximum=0.2, expected=None)
    ),
    cases.floor(0.2),
)
UNSORTED = collection(
    cases.ceiling(1.0, 1.0),
    *(system("none", None, None), system("base", 0.2, 0.2), system("twin", 0.2, 0.2)),
    *(system("top", 0.9, 0.9), system("nan", 0.1, math.nan), cases.floor(0.1, 0.1)),
)
VERDICTS = ("better", "worse", "unjudged decide", "not shown")
EVERY_VERDICT = collection(
    *(system("base", 0.1, 0.2), *(system(name, 0.3, 0.4) for name in VERDICTS)),
    system("same", 0.1, 0.2),
    comparisons=[
        *(cases.compared(name, 0.2, name) for name in VERDICTS),
        cases.compared("same", 0.0, "identical", low=0.0, high=0.0),
    ],
)
INPUTS = (cases.run("a", unanswered=3, zero_scores=4), cases.run("r", rerank=True))
BASE = (0.1, 0.2, 0.3, 0.4)
TYPES = ("local", "local", "global", None)
TABLES: dict[str, Callable[[], Table | None]] = {
    "primary, every verdict": lambda: primary(EVERY_VERDICT),
    "primary, sorted by mean": lambda: primary(UNSORTED),
    "primary, missing numbers": lambda: primary(MISSING),
    "validity, sorted by mean": lambda: validity(UNSORTED),
    "validity, missing numbers": lambda: validity(MISSING),
    "validity": lambda: validity(CHECKED),
    "validity, no document is judged not relevant": lambda: validity(
        CHECKED.model_copy(update={"has_irrelevant_judgments": False})
    ),
    "validity, no ties": lambda: validity(cases.full()),
    "validity, ties in all orders": lambda: validity(source_tied(None)),
    "validity, ties in 200 random orders": lambda: validity(source_tied(200)),
    "second measure, sorted by the first": lambda: secondary(UNSORTED),
    "second measure, no ties": lambda: secondary(cases.full()),
    "second measure, ties": lambda: secondary(TIED),
    "second measure, ties in 200 random orders": lambda: secondary(source_tied(200)),
    "second measure, ties in all orders": lambda: secondary(source_tied(None)),
    "inputs": lambda: input_table(collection(system("base", 0.1), runs=INPUTS)),
    "costs": lambda: cost_table(with_costs()),
    "costs of no list": lambda: cost_table(cases.full()),
    "fusions by blends": lambda: grid_table(collection(*GRID)),
    "by type": lambda: slices_of(
        collection(system("base", *BASE), fused("new", 0.3, 0.5, 0.3, 0.2), types=TYPES)
    ),
    "by type, missing values": lambda: slices_of(
        collection(system("base", *BASE), fused("new", None, 0.5, None, 0.2), types=TYPES)
    ),
}


def test_tables(compare_golden: Callable[[Path, str], None]) -> None:
    tables = {name: make() for name, make in TABLES.items()}
    compare_golden(FOLDER / "evaluation-tables.txt", describe_tables(tables))


# ── the tables of slices


def slices_of(found: Collection) -> Table:
    table = slice_table(report(found), found, "type")
    assert table is not None
    return table


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
