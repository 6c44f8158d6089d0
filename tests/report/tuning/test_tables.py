"""Tables of a tuning run, cell by cell."""

from __future__ import annotations

import pytest

from fusion_bench.report.page import Table
from fusion_bench.report.tuning_records import IntentGain, Value
from fusion_bench.report.tuning_tables import (
    class_gain_table,
    gain_table,
    parameter_table,
    per_type_table,
    threshold_table,
    tuning_tables,
)
from fusion_bench.report.tuning_texts import format_value, format_values
from tests.report.tuning.cases import by_type_too, front, gain, record, thresholds, typed


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


def test_gain_table() -> None:
    table = gain_table(record())
    assert column(table, "tuned") == ["0.5400", "0.5350", "0.5300"]
    assert [row.tone for row in table.rows] == ["plain", "plain", "better"]
    cells = ("100", "0.5000", "0.5300", "+0.0300", "[+0.0100, +0.0500]", ".012", "30/50/20")
    assert table.rows[-1].cells[1:] == cells
    assert len(gain_table(record(nested=None)).rows) == 2


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [("ship", "better"), ("worse", "worse"), ("too few queries", "warning"), ("keep", "plain")],
)
def test_the_row_of_the_verdict_has_its_tone(verdict: str, tone: str) -> None:
    assert gain_table(record(verdict=verdict)).rows[-1].tone == tone


def test_parameter_table() -> None:
    table = parameter_table(record())
    assert column(table, "range") == ["1 to 1000 log", "0 to 2", "none, linear", "0 to 1"]
    assert column(table, "default") == ["60", "1", "none", "-"]
    assert [column(table, f"fold {k}")[0] for k in (1, 2, 3)] == ["10", "20", "40"]
    assert column(table, "fold spread")[0] == "20.1 %", "log 4 of log 1000"
    assert column(table, "fold spread")[2] == "3 of 3 agree"
    assert column(table, "importance") == ["30.0 %", "70.0 %", "", ""]
    assert [c.header for c in table.columns if c.is_optional] == ["fold 1", "fold 2", "fold 3"]
    assert len(table.notes) == 2


def test_columns_without_content_are_left_out() -> None:
    table = parameter_table(record(folds=(), importances=()))
    headers = [column.header for column in table.columns]
    assert headers == ["parameter", "range", "default", "tuned"]
    assert table.notes == ()


def test_the_loss_without_each_parameter() -> None:
    first, *rest = record().parameters
    report = record(parameters=(first.model_copy(update={"reset": 0.521}), *rest))
    assert report.ablation_losses == {"fusion.k": pytest.approx(0.019)}
    assert column(parameter_table(report), "back at default") == ["-0.0190", "", "", ""]


def test_weights_of_which_only_the_ratio_counts_are_noted() -> None:
    weights = tuple(p.model_copy(update={"ratio": True}) for p in record().parameters[:3])
    note = parameter_table(record(parameters=weights)).notes[0]
    assert "fusion.k, fusion.weights.dense, blend.method" in note


def test_gains_by_type() -> None:
    report = record(by_type=typed())
    table = class_gain_table(report, "type", report.class_gains["type"])
    assert column(table, "type") == ["local", "(no type)"]
    assert column(table, "difference") == ["+0.0800", "-0.0400"]


def test_gains_by_intent() -> None:
    intents = tuple(IntentGain(intent=item.type, gain=item.gain) for item in typed())
    report = record(by_intent=intents)
    assert [*report.class_gains] == ["type", "intent"]
    [table] = [table for table in tuning_tables(report) if table.title == "Gain by intent"]
    assert column(table, "intent") == ["local", "(no intent)"]


@pytest.mark.parametrize(("verdict", "tone"), [("ship", "better"), ("keep", "plain")])
def test_parameters_by_type(verdict: str, tone: str) -> None:
    table = per_type_table(record(), by_type_too(verdict))
    assert column(table, "difference") == ["+0.0300", "+0.0010"]
    assert [row.tone for row in table.rows] == ["plain", tone]
    assert table.notes == ("local: fusion.k 12.",)


def test_threshold_table() -> None:
    table = threshold_table(thresholds())
    assert column(table, "thresholds") == [
        *("default: 0.7 / 0.3", "", ""),
        *("tuned: 0.5 / 0.2", "", ""),
        *("min_score: 0.4", ""),
    ]
    assert column(table, "relevant in the top 10")[:3] == ["40", "5", "0"]
    assert column(table, "share relevant")[:3] == ["80.0 %", "25.0 %", "0.0 %"]
    assert column(table, "share relevant")[-1] == "n/a"
    assert column(table, "utility")[::3][:2] == ["0.7000", "0.8000"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (False, "no"), (12, "12"), (0.123456789, "0.1235"), ("a", "a")],
)
def test_values(value: Value, text: str) -> None:
    assert format_value(value) == text


def test_values_in_one_line() -> None:
    assert format_values({"k": 12, "w": 0.7}) == "k 12, w 0.7"
    assert format_values({}) == "nothing"


def test_grouped_queries_are_noted() -> None:
    assert "by group" in gain_table(record(held_out=gain(0.03, 0.01, 0.05, groups=50))).notes[0]
    assert "by group" not in gain_table(record()).notes[0]
