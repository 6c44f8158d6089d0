"""``fusion-bench classify``: a file of queries in, the same with predictions out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.models.query_types import RuleClassifier, classify_file
from fusion_bench.schema import QueryClassification

Capture = pytest.CaptureFixture[str]
QUERIES = (
    {"id": "a", "text": "Who wrote Dune?", "type": "local", "tags": ["x"], "group": "g"},
    {"id": "b", "text": "an overview", "type": "local"},
    {"_id": 3, "text": "rook versus bishop", "type": "relationship", "confidence": 0.2},
    {"id": "d", "text": "rook versus bishop"},
)


def write_queries(folder: Path, *queries: dict[str, Any]) -> Path:
    path = folder / "queries.jsonl"
    path.write_text("\n\n".join(map(json.dumps, queries)), encoding="utf-8")
    return path


def test_predictions_stand_beside_what_was_known(tmp_path: Path) -> None:
    out, records = tmp_path / "out/predicted.jsonl", tmp_path / "records.jsonl"
    path = write_queries(tmp_path, *QUERIES)
    made = classify_file(path, RuleClassifier(), out, records=records)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    predicted = ["local", "global", "relationship", "relationship"]
    assert [line.pop("predicted_type") for line in lines] == predicted
    assert all(0 <= line.pop("predicted_confidence") <= 1 for line in lines)
    assert lines == list(QUERIES)
    classified = [
        QueryClassification.from_json(line) for line in records.read_text("utf-8").splitlines()
    ]
    assert [each.original_query for each in classified] == [each["text"] for each in QUERIES]
    assert made.types == {"local": 1, "global": 1, "relationship": 2, "hybrid": 0}
    assert made.confusion == {
        "local": {"local": 1, "global": 1, "relationship": 0, "hybrid": 0},
        "hybrid": {"local": 0, "global": 0, "relationship": 1, "hybrid": 0},
    }
    assert made.agreement == pytest.approx(1 / 3)
    assert (made.queries, made.failures, made.files) == (4, {}, (out, records))


def test_without_types_there_is_nothing_to_agree_with(tmp_path: Path, capsys: Capture) -> None:
    path = write_queries(tmp_path, {"id": "a", "text": "x"})
    assert main(["classify", str(path), "--out", str(tmp_path / "o.jsonl"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["predictions"]["agreement"], record["ledger"]) == (None, None)


def test_the_command_prints_tables(tmp_path: Path, capsys: Capture) -> None:
    path = write_queries(tmp_path, *QUERIES)
    assert main(["classify", str(path), "--out", str(tmp_path / "o.jsonl")]) == 0
    printed = capsys.readouterr().out
    assert "predicted types" in printed
    assert "as given: 33.3%" in printed


@pytest.mark.parametrize(
    ("queries", "arguments", "says"),
    [
        ([{"id": "a"}], [], "query 'a' has no 'text': a classifier needs it"),
        ([], [], "queries.jsonl: the file is empty"),
        ([{"text": "x"}], [], "queries.jsonl:1: a query needs an 'id'"),
        (QUERIES, ["--set", "model=m"], "--set: does not go with --method rules"),
        (QUERIES, ["--method", "chat"], "model: is required"),
        (QUERIES, ["--method", "chat", "--set", "modle=m"], "did you mean 'model'?"),
        (QUERIES, ["--method", "chat", "--set", "model"], "KEY=VALUE is needed"),
        (QUERIES, ["--records", "o.jsonl"], "two of them name the same file"),
        (QUERIES, ["--out", "queries.jsonl"], "queries.jsonl would replace an input"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    queries: list[dict[str, Any]],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_queries(tmp_path, *queries)
    assert main(["classify", "queries.jsonl", "--out", "o.jsonl", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not Path("o.jsonl").exists()
