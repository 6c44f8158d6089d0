"""Reports that are stored: versioned, strict and consistent."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.evaluation.report_file import FORMAT_VERSION, read_report
from fusion_bench.evaluation.report_records import TieResult
from tests.report import cases
from tests.report.cases import PRIMARY


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
        *[
            (text, "not a report of fusion-bench")
            for text in ("[]", "null", '{"name": "x"}', '{"format": "other"}')
        ],
        (json.dumps(_format(FORMAT_VERSION + 1)), f"report format {FORMAT_VERSION + 1}, "),
        (json.dumps(_format(None)), "report format None, "),
        (json.dumps({"format": "fusion-bench-report"}), "report format None, "),
        (json.dumps(_format("1")), "report format '1', "),
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
    with pytest.raises(DataError, match=r"report\.json: no such"):
        read_report(tmp_path)
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(DataError, match="not a JSON report"):
        read_report(path)


# ── A report whose numbers do not agree is refused in one line that says where


#: Changes the data of a report's file in place.
Damage = Callable[[dict[str, Any]], object]
ROW = "collections.0.systems.0"
MEASURE = f"{ROW}.measures.{PRIMARY}"


def collection(data: dict[str, Any]) -> dict[str, Any]:
    return data["collections"][0]  # type: ignore[no-any-return]


def row(data: dict[str, Any]) -> dict[str, Any]:
    return collection(data)["systems"][0]  # type: ignore[no-any-return]


def measure(data: dict[str, Any]) -> dict[str, Any]:
    return row(data)["measures"][PRIMARY]  # type: ignore[no-any-return]


def compared(data: dict[str, Any]) -> dict[str, Any]:
    return collection(data)["comparisons"][0]  # type: ignore[no-any-return]


BOUNDS = {"depth": 10, "judged": 0.5, "low": 0.2, "high": 0.6}
SLICE = {"field": "type", "value": "a"}
CASES: dict[str, tuple[Damage, str]] = {
    "mean of 7.5": (
        lambda d: measure(d).update(mean=7.5),
        f"{MEASURE}.mean: 7.5, and the mean",
    ),
    "no mean": (lambda d: measure(d).update(mean=None), f"{MEASURE}.mean: none, and the mean"),
    "a missing value": (
        lambda d: measure(d)["values"].__setitem__(1, None),
        f"{MEASURE}.mean: 0.4, and a value",
    ),
    "mean true": (lambda d: measure(d).update(mean=True), f"{MEASURE}.mean: input should be a"),
    "value as text": (
        lambda d: measure(d)["values"].__setitem__(1, "0.4"),
        f"{MEASURE}.values.1: input should be a valid number",
    ),
    "value NaN": (
        lambda d: measure(d)["values"].__setitem__(1, float("nan")),
        f"{MEASURE}.values.1: a finite number",
    ),
    "p infinite": (
        lambda d: compared(d).update(p=float("inf")),
        "collections.0.comparisons.0.p: a finite number",
    ),
    "values beyond 1": (
        lambda d: measure(d).update(values=[1.2, 0.0, 0.0]),
        f"{MEASURE}.values: values from 0 to 1",
    ),
    "a value too many": (
        lambda d: measure(d)["values"].append(0.4),
        f"{MEASURE}.values: 4 values for 3 queries",
    ),
    "low of a mean": (
        lambda d: measure(d).update(low=0.41),
        f"{MEASURE}.low: 0.41 lies above",
    ),
    "ties": (
        lambda d: measure(d)["ties"].update(maximum=0.39),
        f"{MEASURE}.ties.maximum: 0.39 lies",
    ),
    "other trials": (
        lambda d: measure(d).update(trials=[[0.5, 0.4, 0.3], [0.5, 0.4, 0.4]]),
        f"{MEASURE}.trials: their means",
    ),
    "short trial": (
        lambda d: measure(d).update(trials=[[0.5, 0.4]]),
        f"{MEASURE}.trials.0: 2 values for 3 queries",
    ),
    "measure missing": (
        lambda d: row(d)["measures"].pop(PRIMARY),
        f"{ROW}.measures: no {PRIMARY}",
    ),
    "judged only": (lambda d: row(d).update(judged_only=[2, 0, 0]), f"{ROW}.judged_only: "),
    "filled": (lambda d: row(d).update(filled=[0.1]), f"{ROW}.filled: 1 value for 3 queries"),
    "unjudged share": (lambda d: row(d).update(unjudged_share=-1), f"{ROW}.unjudged_share: "),
    "judged bounds": (
        lambda d: measure(d).update(bounds=BOUNDS | {"judged": 2}),
        f"{MEASURE}.bounds.judged: ",
    ),
    "high bound": (
        lambda d: measure(d).update(bounds=BOUNDS | {"high": 2}),
        f"{MEASURE}.bounds: values from 0 to 1",
    ),
    "bounds of a slice": (
        lambda d: row(d).update(slice_bounds=[SLICE | {"bounds": BOUNDS | {"judged": 2}}]),
        f"{ROW}.slice_bounds.type.judged: ",
    ),
    "difference": (
        lambda d: compared(d).update(difference=0.1),
        "collections.0.comparisons.0.difference: 0.1, ",
    ),
    "low": (
        lambda d: compared(d).update(low=-0.1),
        "comparisons.0.low: -0.1 lies above",
    ),
    "high": (
        lambda d: compared(d).update(low=-0.4, high=-0.3),
        "comparisons.0.high: -0.3 lies below",
    ),
    "high above 1": (lambda d: compared(d).update(high=1.5), "from -1 to 1 "),
    "wins": (
        lambda d: compared(d).update(wins=9),
        "losses: (9, 1, 0), ",
    ),
    "unknown candidate": (lambda d: compared(d).update(candidate="z"), "candidate: no system 'z'"),
    "unknown measure": (lambda d: compared(d).update(measure="P@1"), "measure: no measure 'P@1'"),
    "unknown baseline": (lambda d: collection(d).update(baseline="z"), "baseline: no system 'z'"),
    "a query twice": (
        lambda d: collection(d).update(queries=["q0", "q0", "q1"]),
        "queries: 'q0' stands",
    ),
    "no measures": (lambda d: collection(d).update(measures=[]), "measures: at least"),
    "groups": (lambda d: collection(d).update(groups=["g"]), "groups: 1 entries"),
    "slices": (
        lambda d: collection(d).update(slices={"lang": ["en"]}),
        "slices.lang: 1 entries for 3 queries",
    ),
    "no collection": (lambda d: d.update(collections=[]), "collections: at least"),
    "a collection twice": (
        lambda d: d["collections"].append(collection(d)),
        "collections: 'tiny' stands",
    ),
    "alpha of 2": (lambda d: d["settings"].update(alpha=2), "settings.alpha: "),
}


def write_report(path: Path, damage: Damage = dict.copy) -> Path:
    data = json.loads(cases.report(cases.full()).model_dump_json())
    damage(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_damage_is_named(tmp_path: Path, name: str) -> None:
    damage, says = CASES[name]
    path = write_report(tmp_path / "report.json", damage)
    with pytest.raises(DataError) as error:
        read_report(path)
    assert str(error.value).startswith(f"{path}: ")
    assert says in str(error.value)
    assert str(error.value).endswith("experiment again")
    assert "\n" not in str(error.value)


def test_rounding_errors_are_no_damage(tmp_path: Path) -> None:
    def round_mean(data: dict[str, Any]) -> None:
        measure(data)["mean"] += 1e-12

    assert read_report(write_report(tmp_path / "report.json", round_mean)).collections
