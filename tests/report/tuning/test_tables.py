"""Tables of a tuning run."""

from __future__ import annotations

import pytest

from fusion_bench.report.page import Table
from fusion_bench.report.tuning.tables import (
    all_tables,
    by_type,
    confusion,
    described,
    gains,
    numbers,
    setting,
)
from fusion_bench.report.tuning.tables import typed as typed_table
from fusion_bench.report.tuning.tuning_records import ParameterInfo, Value
from tests.report.tuning.cases import by_type_too, front, gain, record, thresholds, typed


def cells(table: Table, row: int) -> dict[str, str]:
    headers = (column.header for column in table.columns)
    return dict(zip(headers, table.rows[row].cells, strict=True))


def test_default_against_tuned_on_each_kind_of_query() -> None:
    table = gains(record())
    assert [row.cells[0] for row in table.rows] == [
        "tuning queries: too good",
        "nested cross-validation: an estimate",
        "held-out queries: these decide",
    ]
    assert table.rows[-1].tone == "better"
    assert cells(table, 2) == {
        "on": "held-out queries: these decide",
        "queries": "100",
        "default": "0.5000",
        "tuned": "0.5300",
        "difference": "+0.0300",
        "95 % interval": "[+0.0100, +0.0500]",
        "p": ".012",
        "w/t/l": "30/50/20",
    }


def test_groups_and_missing_cross_validation_show() -> None:
    table = gains(record(nested=None, held_out=gain(0.03, 0.01, 0.05, groups=40)))
    assert len(table.rows) == 2
    assert "interval by group" in table.notes[0]
    assert "by group" not in gains(record()).notes[0]


def test_numbers_and_their_spread_over_the_folds() -> None:
    table = numbers(record())
    k = cells(table, 0)
    assert (k["range"], k["default"], k["importance"]) == ("1 to 1000 log", "60", "30.0 %")
    assert [k[f"fold {n}"] for n in (1, 2, 3)] == ["10", "20", "40"]
    assert k["fold spread"] == "20.1 %"  # ln 4 / ln 1000
    method, beta = cells(table, 2), cells(table, 3)
    assert method["range"] == "none, linear"
    assert method["fold spread"] == "3 of 3 agree"
    assert beta["default"] == "-"
    assert beta["importance"] == "n/a"


def test_without_folds_and_importances_there_are_no_such_columns() -> None:
    table = numbers(record(folds=(), importances=()))
    assert [column.header for column in table.columns] == ["parameter", "range", "default", "tuned"]
    assert table.notes == ()


def test_types_are_not_adjusted_and_say_so() -> None:
    table = by_type(record(by_type=typed()))
    assert [row.cells[0] for row in table.rows] == ["local", "(no type)"]
    assert "Not adjusted" in table.notes[0]


def test_only_tables_with_something_to_show() -> None:
    assert len(list(all_tables(record()))) == 2
    whole = record(by_type=typed(), front=front(), typed=by_type_too(), thresholds=thresholds())
    assert len(list(all_tables(whole))) == 6


def test_confusion_counts_every_verdict() -> None:
    table = confusion(thresholds())
    assert [row.cells[0] for row in table.rows if row.cells[0]] == [
        "default: 0.7 / 0.3",
        "tuned: 0.5 / 0.2",
        "min_score 0.4",
    ]
    assert [row.cells[1] for row in table.rows] == [
        *("correct", "ambiguous", "incorrect") * 2,
        "correct",
        "incorrect",
    ]
    assert cells(table, 0) == {
        "thresholds": "default: 0.7 / 0.3",
        "verdict": "correct",
        "relevant in the top 10": "40",
        "none": "10",
        "share relevant": "80.0 %",
        "utility": "0.7000",
    }
    assert cells(table, 7)["share relevant"] == "n/a"


def test_numbers_by_type_stand_below_their_worth() -> None:
    tuning = record(typed=by_type_too())
    assert tuning.typed is not None
    table = typed_table(tuning, tuning.typed)
    assert [row.cells[0] for row in table.rows] == [
        "tuned by type - default",
        "tuned by type - tuned for all: decides",
    ]
    assert table.notes == ("local: fusion.k 12.",)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (False, "no"), (3, "3"), (0.123456, "0.1235"), ("a\n", r"a\n")],
)
def test_settings_as_text(value: Value, text: str) -> None:
    assert setting(value) == text


def test_a_choice_in_one_line() -> None:
    assert described({"k": 12, "w": 0.25}) == "k 12, w 0.25"
    assert described({}) == "nothing"


def test_weights_of_which_the_ratio_counts_are_named() -> None:
    weights = tuple(
        ParameterInfo(path=f"fusion.weights.{s}", kind="float", low=0, high=2, ratio=True)
        for s in ("bm25", "dense")
    )
    (note,) = (one for one in numbers(record(parameters=weights)).notes if "ratio" in one)
    assert note.startswith("Of fusion.weights.bm25 and fusion.weights.dense only the ratio counts")
    assert not [one for one in numbers(record()).notes if "ratio counts" in one]


def test_what_each_number_alone_is_worth() -> None:
    first, *rest = record().parameters
    table = numbers(record(parameters=(first.model_copy(update={"reset": 0.521}), *rest)))
    assert cells(table, 0)["back at default"] == "-0.0190"  # 0.54 with all of them
    assert cells(table, 1)["back at default"] == "-"
    assert "back at default" not in cells(numbers(record()), 0)
