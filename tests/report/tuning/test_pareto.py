"""Quality against effort: the front, its table and its sentences."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.checks.records import CompletionBounds
from fusion_bench.report.page import Table
from fusion_bench.report.tuning_page import tuning_findings
from fusion_bench.report.tuning_records import PairedDifference, ParetoFront, RerankerEffort
from fusion_bench.report.tuning_tables import effort_sources, pareto_table
from fusion_bench.report.tuning_texts import pareto_texts
from tests.report.tuning.cases import front, front_with_points, record


def column(table: Table, header: str) -> list[str]:
    index = [column.header for column in table.columns].index(header)
    return [row.cells[index] for row in table.rows]


def text_of(found: ParetoFront) -> str:
    return " ".join(pareto_texts(record(), found))


def test_the_table_has_the_efficient_points_and_the_default() -> None:
    table = pareto_table(record(), front())
    assert column(table, "rerank depth") == ["0", "10", "50", "60"]
    assert column(table, "note") == ["", "", "default, not efficient", "chosen"]
    assert [row.tone for row in table.rows] == ["plain", "plain", "warning", "plain"]
    assert column(table, "cost of 1,000 queries") == ["0", "0.02", "0.1", "0.12"]
    assert column(table, "seconds per query") == ["0", "0.1", "0.5", "0.6"]
    assert column(table, "p95 seconds")[-1] == "1.2"
    assert column(table, "held out: - best")[1] == "-0.0030 [-0.0130, +0.0070]"


def test_what_is_judged_of_each_point_stands_beside_its_value() -> None:
    bounds = CompletionBounds(depth=10, judged=0.4, low=0.5, high=0.9)
    table = pareto_table(record(), front_with_points({10: {"bounds": bounds}}))
    assert column(table, "Judged@10") == ["", "40.0 %", "", ""]
    assert column(table, "if judged") == ["", "0.5000…0.9000", "", ""]
    assert "Judged@10 = share of judged documents." in table.notes[1]


def test_unknown_efforts_have_no_column_and_several_rerankers_are_named() -> None:
    unknown = {"cost": None, "seconds": None, "slow": None}
    two = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
    points = {point.depth: unknown for point in front().points if point.depth}
    table = pareto_table(record(), front_with_points(points, efforts=two, axes=("candidates",)))
    assert column(table, "reranker") == ["none", "ce", "ce", "ce"]
    assert [c.header for c in table.columns][1:4] == [
        "rerank depth",
        "candidates per query",
        "nDCG@10, tuning",
    ]
    assert not table.columns[2].is_optional
    assert sum("unknown" in note for note in table.notes) == 2


def test_the_best_point_and_the_cheapest_that_is_nearly_as_good() -> None:
    whole = front()
    assert whole.best.depth == 60
    assert whole.cheapest_reaching(whole.best.value - 0.005).depth == 10
    assert whole.cheapest_reaching(whole.best.value - 0.001).depth == 60
    same = front_with_points({10: {"value": 0.56}})
    assert same.best.depth == 10, "of equally good ones the cheaper"


def test_sentences_on_less_effort() -> None:
    text = text_of(front())
    assert "Depth 10 reaches, held out, -0.0030 [-0.0130, +0.0070]" in text
    assert "(depth 60) with 16.7 % of its latency, 16.7 % of its cost" in text
    assert "default (depth 50) at depth 10 with 20.0 % of its latency" in text
    findings = {finding.key: finding.text for finding in tuning_findings(record(front=front()))}
    assert text in findings["pareto front"]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ({10: {"value": 0.54}}, "front is depth 60"),
        (
            {0: {"value": 0.6}, 10: {"efficient": False}, 60: {"efficient": False}},
            "front is no reranker",
        ),
        (
            {10: {"over_best": PairedDifference(mean=0.01, low=None, high=None)}},
            "held out, +0.0100 n/a",
        ),
    ],
)
def test_sentences_on_other_fronts(points: dict[int, dict[str, Any]], expected: str) -> None:
    assert expected in text_of(front_with_points(points))


def test_a_default_on_the_front_cannot_take_less() -> None:
    points = {50: {"efficient": True, "value": 0.5581}, 10: {"value": 0.52}}
    assert "The front equals the default" not in text_of(front_with_points(points))


def test_the_source_of_each_effort_is_noted_beside_the_unused_one() -> None:
    note, _ = effort_sources(front())
    assert note.startswith("ce (cohere/rerank-v3.5): price of 1,000 candidates: declared 2,")
    assert "at full depth 2.5; used: ledger." in note
    assert "declared 0.01 per candidate, in the ledger 0.08 per query" in note
    assert "100 queries, 100 calls of up to 50 documents, up to 8 at once" in note
    declared = RerankerEffort(reranker="mine", cost="declared", declared_price=1.0)
    note, _ = effort_sources(front(efforts=(declared,)))
    assert "declared 1, in the ledger at full depth unknown; used: declared." in note


def test_an_interrupted_front_is_one_warning() -> None:
    report = record(front=front(interrupted=True), interrupted=True)
    warnings = [f.text for f in tuning_findings(report) if f.key == "interrupted"]
    assert len(warnings) == 1
    assert "quality against effort" in warnings[0]
