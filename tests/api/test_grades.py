"""``agreement``, ``estimate`` and ``draw_queries`` say what the commands print."""

import json
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError
from tests.gate.cases import EXPERIMENT
from tests.judging.grades.judged_project import make_judged_project

Capture = pytest.CaptureFixture[str]
JUDGES = {"people": "people", "machine": "llm"}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_judged_project(tmp_path))
    return tmp_path


def read_json(capsys: Capture, *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    record.get("provenance", {}).pop("created", None)
    return record


def as_json(result: Any) -> dict[str, Any]:  # noqa: ANN401 - one of several results
    record: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    record.get("provenance", {}).pop("created", None)
    return record


def check_views(result: Any, rows: int) -> None:  # noqa: ANN401 - as above
    assert len(repr(result).splitlines()) <= 3
    assert "<table>" in result._repr_html_()
    assert len(result.to_pandas()) == rows


def test_agreement_is_that_of_the_command(capsys: Capture) -> None:
    result = fb.agreement("mine", people=["people"], weighting="linear")
    words = ["grades", "agreement", "mine", "--human-judge", "people", "--weighting", "linear"]
    assert as_json(result) == read_json(capsys, *words)
    check_views(result, len(result.comparisons))
    assert set(result.to_pandas()["reference"]) == {"people"}
    assert "weighted_kappa" in result.to_pandas()


def test_agreement_of_grades_at_hand() -> None:
    ann = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1, "d4": 0}}
    result = fb.agreement({"ann": ann, "bob": ann})
    (pair,) = result.comparisons
    assert (pair.reference, pair.judge, pair.graded.kappa) == ("ann", "bob", 1.0)
    assert "weighted_kappa" not in result.to_pandas()
    with pytest.raises(FusionBenchError, match="give a dataset or"):
        fb.agreement([ann, ann])
    with pytest.raises(FusionBenchError, match="'cubic'; known: none"):
        fb.agreement({"ann": ann, "bob": ann}, weighting="cubic")  # type: ignore[arg-type]
    with pytest.raises(FusionBenchError, match="at least 1"):
        fb.agreement({"ann": ann, "bob": ann}, binary_relevance=0)


def test_estimate_is_that_of_the_command(capsys: Capture) -> None:
    result = fb.estimate(EXPERIMENT, **JUDGES, measures=["RR@10", "nDCG@10"])
    words = ["grades", "estimate", EXPERIMENT, "--human-judge", "people", "--machine-judge", "llm"]
    words += ["--measure", "RR@10", "--measure", "nDCG@10"]
    assert as_json(result) == read_json(capsys, *words)
    check_views(result, len(result.differences))
    assert "machine differ on" in repr(result)
    assert list(result.to_pandas()["few_changes"]) == [
        each.few_changes for each in result.differences
    ]


def test_drawn_queries_are_those_of_the_command(capsys: Capture) -> None:
    drawn = fb.draw_queries(EXPERIMENT, machine="llm", n=5, seed=3)
    words = ["grades", "sample", EXPERIMENT, "--machine-judge", "llm", "--n", "5", "--seed", "3"]
    assert list(drawn) == read_json(capsys, *words)["queries"]
