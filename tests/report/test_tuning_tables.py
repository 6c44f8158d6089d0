"""Tables of a tuning run, cell by cell."""

import pytest

from fusion_bench.report.page import Table
from fusion_bench.report.tuning_records import IntentGain, RerankerEffort, Value
from fusion_bench.report.tuning_tables import (
    effort_sources,
    format_values,
    gain_table,
    parameter_table,
    pareto_table,
    per_type_table,
    tuning_tables,
)
from fusion_bench.report.tuning_texts import format_value
from fusion_bench.stats.unjudged import CompletionBounds
from tests.report.tuning_cases import (
    by_type_too,
    front,
    front_with_points,
    gain,
    record,
    thresholds,
    typed,
)


def column(table: Table, header: str) -> list[str]:
    index = [column.header for column in table.columns].index(header)
    return [row.cells[index] for row in table.rows]


def test_every_row_has_a_cell_a_column() -> None:
    report = record(
        by_type=typed(), per_type=by_type_too(), front=front(), thresholds=(thresholds(),)
    )
    tables = list(tuning_tables(report))
    assert len(tables) == 7
    assert len(list(tuning_tables(record(floor=())))) == 2
    for table in tables:
        assert all(len(row.cells) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [("ship", "better"), ("worse", "worse"), ("too few queries", "warning"), ("keep", "plain")],
)
def test_the_row_of_the_verdict_has_its_tone(verdict: str, tone: str) -> None:
    assert gain_table(record(verdict=verdict)).rows[-1].tone == tone


def test_columns_without_content_are_left_out_and_losses_stand_in_theirs() -> None:
    table = parameter_table(record(folds=(), importances=()))
    headers = [column.header for column in table.columns]
    assert headers == ["parameter", "range", "default", "tuned"]
    assert table.notes == ()
    first, *rest = record().parameters
    report = record(parameters=(first.model_copy(update={"reset": 0.521}), *rest))
    assert report.ablation_losses == {"fusion.k": pytest.approx(0.019)}
    assert column(parameter_table(report), "back at default") == ["-0.0190", "", "", ""]


def test_notes_on_weights_groups_and_missing_estimates() -> None:
    weights = tuple(p.model_copy(update={"ratio": True}) for p in record().parameters[:3])
    note = parameter_table(record(parameters=weights)).notes[0]
    assert all(parameter.path in note for parameter in weights)
    assert "by group" in gain_table(record(held_out=gain(0.03, 0.01, 0.05, groups=50))).notes[0]
    assert "by group" not in gain_table(record()).notes[0]
    assert len(gain_table(record(nested=None)).rows) == 2


def test_gains_by_intent() -> None:
    intents = tuple(IntentGain(intent=item.type, gain=item.gain) for item in typed())
    report = record(by_intent=intents)
    assert [*report.class_gains] == ["type", "intent"]
    [table] = [table for table in tuning_tables(report) if table.title == "Gain by intent"]
    assert column(table, "intent") == ["local", "(no intent)"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (False, "no"), (12, "12"), (0.123456789, "0.1235"), ("a", "a")],
)
def test_values(value: Value, text: str) -> None:
    assert format_value(value) == text


def test_values_in_one_line() -> None:
    assert format_values({"k": 12, "w": 0.7}) == "k 12, w 0.7"
    assert format_values({}) == "nothing"


@pytest.mark.parametrize(("verdict", "tone"), [("ship", "better"), ("keep", "plain")])
def test_the_row_of_parameters_by_type_has_the_tone_of_its_verdict(verdict: str, tone: str) -> None:
    table = per_type_table(record(), by_type_too(verdict))
    assert [row.tone for row in table.rows] == ["plain", tone]


# ── quality against effort


def test_what_is_judged_of_each_point_stands_beside_its_value() -> None:
    bounds = CompletionBounds(depth=10, judged=0.4, low=0.5, high=0.9)
    table = pareto_table(record(), front_with_points({10: {"bounds": bounds}}))
    assert column(table, "Judged@10") == ["", "40.0 %", "", ""]
    assert column(table, "if judged") == ["", "0.5000…0.9000", "", ""]
    assert [row.tone for row in table.rows] == ["plain", "plain", "warning", "plain"]
    assert any("Judged@10 = " in note for note in table.notes)


def test_unknown_efforts_have_no_column_and_several_rerankers_are_named() -> None:
    unknown = {"cost": None, "seconds": None, "slow": None}
    two = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
    points = {point.depth: unknown for point in front().points if point.depth}
    table = pareto_table(record(), front_with_points(points, efforts=two, axes=("candidates",)))
    assert column(table, "reranker") == ["none", "ce", "ce", "ce"]
    headers = [c.header for c in table.columns]
    assert headers[1:4] == ["rerank depth", "candidates per query", "nDCG@10, tuning"]
    assert not table.columns[2].is_optional
    assert sum("unknown" in note for note in table.notes) == 2


def test_the_source_of_each_effort_is_noted_beside_the_unused_one() -> None:
    note, _ = effort_sources(front())
    assert note.startswith("ce (cohere/rerank-v3.5): ")
    for part in ("declared 2,", "2.5; used: ledger", "declared 0.01 ", " 0.08 per query"):
        assert part in note
    for part in ("100 calls", "up to 50 documents", "up to 8 at once"):
        assert part in note
    declared = RerankerEffort(reranker="mine", cost="declared", declared_price=1.0)
    note, _ = effort_sources(front(efforts=(declared,)))
    assert "declared 1, " in note
    assert "unknown; used: declared." in note
