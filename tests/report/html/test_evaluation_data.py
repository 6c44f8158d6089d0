from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fusion_bench.checks.records import LintFinding
from fusion_bench.evaluation.report_changes import find_changes
from fusion_bench.report.html.evaluation_data import (
    encode_values,
    evaluation_data,
    evaluation_number,
)
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND


def decoded(encoded: dict[str, list[object]]) -> list[list[object]]:
    distinct, rows = encoded["distinct"], encoded["rows"]
    return [[None if i < 0 else distinct[i] for i in row] for row in rows]  # type: ignore[attr-defined]


def test_every_value_stands_once_with_all_its_digits() -> None:
    rows: list[list[float | None]] = [[0.1, None, 1 / 3], [1 / 3, 0.1, math.nan]]
    encoded = encode_values(rows)
    assert encoded["distinct"] == [0.1, 1 / 3]
    assert decoded(encoded) == [[0.1, None, 1 / 3], [1 / 3, 0.1, None]]
    assert json.loads(json.dumps(encoded)) == encoded


def test_values_of_nothing_but_gaps() -> None:
    assert encode_values([[None, None]]) == {"distinct": [], "rows": [[-1, -1]]}
    assert encode_values(np.zeros((1, 0)).tolist()) == {"distinct": [], "rows": [[]]}


def test_a_collection_has_systems_by_mean_then_bounds() -> None:
    collection = cases.full()
    (data,) = evaluation_data(cases.report(collection))["collections"]
    groups = {row["name"]: row["group"] for row in data["systems"]}
    assert groups == {
        "better one": "better",
        "base": "baseline",
        "worse one": "worse",
        "best single source": "floor",
        "best source per query": "ceiling",
        "perfect order": "ceiling",
    }
    assert (data["primary"], data["baseline"], data["best"]) == (PRIMARY, "base", "better one")
    assert data["measures"] == [PRIMARY, SECOND]
    first = data["systems"][0]
    row = collection.system("better one")
    assert first["means"] == [row.measures[name].mean for name in (PRIMARY, SECOND)]
    comparison = collection.comparison("better one", PRIMARY)
    assert comparison is not None
    assert first["difference"]["value"] == comparison.difference
    assert data["systems"][1]["difference"] is None
    assert all(each["bounds"] == [None, None] for each in data["systems"])  # complete judgments
    for i, name in enumerate((PRIMARY, SECOND)):
        values = [list(collection.system(each).measures[name].values) for each in groups]
        assert decoded(data["values"][i]) == values


@pytest.mark.parametrize(
    ("types", "slices", "shown"),
    [
        ((None,) * 3, {}, {}),
        (("a", "a", "a"), {}, {}),
        (("a", None, "a"), {}, {"type": ["a", None, "a"]}),
        (("a", "a", "a"), {"language": ("ja", "en", "ja")}, {"language": ["ja", "en", "ja"]}),
    ],
)
def test_only_fields_with_two_values_are_slices(
    types: tuple[str | None, ...], slices: dict[str, tuple[str, ...]], shown: dict[str, list[str]]
) -> None:
    report = cases.report(cases.full(types=types, slices=slices))
    assert evaluation_data(report)["collections"][0]["slices"] == shown


def test_the_data_has_what_lint_found_and_what_changed() -> None:
    finding = LintFinding(id="rule", severity="note", message="a\x1bb", systems=("base",))
    report = cases.report(cases.full()).model_copy(update={"lint": (finding,)})
    data = evaluation_data(report)
    assert data["change"] is None
    assert data["lint"] == [finding.model_dump(mode="json") | {"message": "a\\x1bb"}]
    change = find_changes(report, report)
    data = evaluation_data(report, change=change)
    assert data["change"] == json.loads(json.dumps(change.to_dict()))


def test_the_number_is_the_gain_of_the_best_system() -> None:
    gain = cases.full()
    none = cases.collection(cases.system("base", 0.5, 0.25), name="other")
    assert evaluation_number(cases.report(gain)) == f"{PRIMARY} +0.4000"
    assert evaluation_number(cases.report(none)) == f"{PRIMARY} 0.3750, no gain shown"
    assert evaluation_number(cases.report(gain, none)) == "1 of 2 collections improved"
