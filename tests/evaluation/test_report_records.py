"""The result file: what it holds, and how a broken one is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fusion_bench.errors import DataError
from fusion_bench.evaluation.report_file import FORMAT_VERSION, Report, read_report
from fusion_bench.evaluation.report_records import TieResult
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND


def strict(text: str) -> Any:  # noqa: ANN401 - whatever stands in the file
    """JSON as the standard has it: NaN and Infinity are errors."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def saved(tmp_path: Path, data: object) -> Path:
    path = tmp_path / "report.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_a_report_survives_its_file(tmp_path: Path) -> None:
    other = cases.many(3).model_copy(update={"name": "other"})
    there = cases.report(cases.full(cases.HOSTILE), other, v2=False)
    assert read_report(saved(tmp_path, there.model_dump_json())) == there


def test_nan_is_null_in_the_file_and_none_after_it(tmp_path: Path) -> None:
    nan = math.nan
    row = cases.system(
        "base", 0.5, nan, ties=TieResult(affected_queries=1, minimum=0, maximum=1, expected=nan)
    )
    there = cases.report(
        cases.collection(
            row.model_copy(update={"unjudged_share": nan, "judged_only": (nan, 0.5)}),
            cases.system("x", 0.5, 0.5),
            comparisons=[cases.compared("x", low=nan, high=math.inf, detectable=nan, ties=0)],
        ),
        settings={"extra": [nan]},
    )
    text = there.model_dump_json()
    [found] = strict(text)["collections"]
    assert found["systems"][0]["measures"][PRIMARY]["values"] == [0.5, None]
    assert found["systems"][0]["measures"][PRIMARY]["ties"]["expected"] is None
    assert (found["comparisons"][0]["low"], found["comparisons"][0]["high"]) == (None, None)
    again = read_report(saved(tmp_path, text))
    [collection] = again.collections
    assert collection.systems[0].judged_only == (None, 0.5)
    assert collection.systems[0].unjudged_share is None
    assert collection.comparisons[0].min_detectable_difference is None
    assert again.settings["extra"] == [None]
    assert again.model_dump_json() == text


def _format(version: object) -> dict[str, object]:
    return {"format": "fusion-bench-report", "format_version": version}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a JSON report"),
        ("{", "not a JSON report"),
        ("[" * 100_000, "not a JSON report"),
        ("[]", "not a report of fusion-bench"),
        ("null", "not a report of fusion-bench"),
        ('{"name": "x"}', "not a report of fusion-bench"),
        ('{"format": "other"}', "not a report of fusion-bench"),
        (json.dumps(_format(FORMAT_VERSION + 1)), f"report format {FORMAT_VERSION + 1}, and"),
        (json.dumps(_format(None)), "report format None, and"),
        (json.dumps({"format": "fusion-bench-report"}), "report format None, and"),
        (json.dumps(_format("1")), "report format '1', and"),
        (json.dumps(_format(FORMAT_VERSION)), ": name: is required"),
    ],
)
def test_what_is_no_report(tmp_path: Path, text: str, says: str) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(DataError) as error:
        read_report(path)
    assert str(error.value).startswith(f"{path}: ")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: no "):
        read_report(tmp_path / "none.json")
    with pytest.raises(DataError, match="not a JSON report"):
        read_report(tmp_path)
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(DataError, match="not a JSON report"):
        read_report(path)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("name",), 3, "name: text is needed"),
        (("surprise",), 3, "surprise: extra inputs are not permitted"),
        (
            ("collections", 0, "queries_without_relevant"),
            "many",
            "collections.0.queries_without_relevant: input should be",
        ),
        (("collections", 0, "judgments"), "none", "collections.0.judgments: input should be"),
        (("collections", 0, "systems", 1, "kind"), "x", "collections.0.systems.1.kind: "),
        (
            ("collections", 0, "systems", 0, "measures", PRIMARY, "mean"),
            "high",
            f"collections.0.systems.0.measures.{PRIMARY}.mean: ",
        ),
        (("collections", 0, "comparisons", 0, "p"), None, "collections.0.comparisons.0.p: "),
        (("provenance", "v2_enabled"), 3, "provenance.v2_enabled: "),
    ],
)
def test_a_broken_field_is_named(
    tmp_path: Path, place: tuple[str | int, ...], value: object, says: str
) -> None:
    data = strict(cases.report(cases.full()).model_dump_json())
    spot = data
    for step in place[:-1]:
        spot = spot[step]
    spot[place[-1]] = value
    with pytest.raises(DataError) as error:
        read_report(saved(tmp_path, data))
    assert f": {says}" in str(error.value)
    assert str(error.value).endswith("experiment again")


def test_a_report_is_frozen() -> None:
    there = cases.report(cases.full())
    with pytest.raises(ValidationError, match="frozen"):
        there.name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="equal to 1"):
        Report.model_validate({**there.model_dump(), "format_version": 0})


def test_looking_things_up() -> None:
    found = cases.full()
    assert found.primary_measure == PRIMARY
    assert found.system("worse one").name == "worse one"
    compared = found.comparison("worse one", SECOND)
    assert compared is not None
    assert (compared.candidate, compared.measure) == ("worse one", SECOND)
    assert found.comparison("base", PRIMARY) is None
    assert found.comparison("worse one", "P@1") is None
