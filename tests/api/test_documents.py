"""``documents_to_judge``, ``pool`` and ``import_grades`` do what ``judge`` does."""

import json
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError
from tests import tiny
from tests.tiny import EXPERIMENT

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def read_json(capsys: Capture, *words: str) -> dict[str, Any]:
    assert main(["judge", *words, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def test_documents_that_could_change_the_answer(capsys: Capture) -> None:
    result = fb.documents_to_judge(EXPERIMENT, budget=2, measure="nDCG@10")
    words = [EXPERIMENT, "--next", "2", "--measure", "nDCG@10"]
    record = read_json(capsys, *words)
    assert json.loads(json.dumps(result.to_dict())) == record
    assert result.is_decided == record["plan"]["is_decided"]
    assert len(repr(result).splitlines()) <= 3
    frame = result.to_pandas()
    assert list(frame["document"]) == [row["document"] for row in record["documents"]]
    assert frame["effect"].is_monotonic_decreasing or len(frame) < 2
    assert result._repr_html_().startswith("<p>")


def test_pools_go_out_and_their_grades_come_back(capsys: Capture, project: Path) -> None:
    result = fb.pool("tiny", order="pool", judge="ann")
    assert result.to_dict() == read_json(capsys, "tiny", "--order", "pool", "--judge", "ann")
    assert (result.plan, result.is_decided) == (None, None)
    assert repr(result) == "DocumentsToJudge(4 documents, grades 0 to 2)"
    sheet = result.to_spreadsheet(project / "sheet.csv")
    assert main(["judge", "tiny", "--order", "pool", "--judge", "ann", "--export", "cli.csv"]) == 0
    assert sheet.read_bytes() == (project / "cli.csv").read_bytes()
    sheet.write_text("query,document,grade\nq2,d4,2\nq2,d8,0\n", encoding="utf-8")
    assert fb.import_grades("tiny", sheet, judge="ann") == 2
    left = fb.pool("tiny", order="pool", judge="ann").to_pandas()
    assert set(left["document"]) == {"d9", "d5"}
    assert set(fb.pool("tiny", queries=["q2"]).to_pandas()["query"]) == {"q2"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"depth": 0}, "depth: at least 1 is needed, not 0"),
        ({"order": "alphabetic"}, "order: 'alphabetic' is not one of"),
        ({"queries": ["q77"]}, "q77"),
        ({"systems": ["z"]}, "unknown system 'z'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(FusionBenchError, match=says):
        fb.pool("tiny", **options)
    with pytest.raises(FusionBenchError, match="budget: at least 1"):
        fb.documents_to_judge("tiny", budget=0)
