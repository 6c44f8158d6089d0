"""Types of queries by rules, and the file with predictions that ``dataset classify`` writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.config.query_types import CONV_03_05, MIN_CONFIDENCE
from fusion_bench.models.query_types import (
    MOST,
    RuleClassifier,
    classify_file,
    expand_query,
    extract_entities,
    weigh_evidence,
)
from fusion_bench.schema import QueryClassification

RULES = RuleClassifier()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Who wrote Dune?", "local"),
        ("Can I play two cards on my turn?", "local"),
        ("How many cards do I draw?", "local"),
        ("What happens if the deck is empty?", "local"),
        ("手札は何枚ですか？", "local"),
        ("Combien de cartes pioche-t-on ?", "local"),
        ("Summarize the main themes of the report", "global"),
        ("How does combat work?", "global"),
        ("What kinds of spells are there?", "global"),
        ("ゲームの概要", "global"),
        ("Donnez un aperçu du jeu", "global"),
        ("What is the difference between a lich and a vampire?", "relationship"),
        ("How does Kerberoasting relate to a golden ticket?", "relationship"),
        ("rook versus bishop", "relationship"),
        ("リッチとヴァンパイアの違いは？", "relationship"),
        ("Quelle est la différence entre un roi et une reine ?", "relationship"),
        ("Walk me through one round", "global"),
        ("Comment se déroule une partie ?", "global"),
        ("Does the bell ring, and who pays?", "hybrid"),
        ("Give me an overview of the game and how bidding relates to scoring", "hybrid"),
        ("List all cards that affect movement", "hybrid"),
        ("wizard", "hybrid"),
        ("T1059.001", "hybrid"),
        ("", "hybrid"),
    ],
)
def test_the_type_of_a_query(text: str, wanted: str) -> None:
    found = RULES.classify_text(text)
    assert found.type == wanted
    assert (found.confidence >= MIN_CONFIDENCE) == (wanted != "hybrid")
    assert found.original_query == text
    assert found.suggested_weights.model_dump() == CONV_03_05[wanted]


@pytest.mark.parametrize(
    ("text", "evidence", "confidence"),
    [
        ("wizard", {}, 0.25),
        ("what wizard", {"local": 1}, 0.625),
        ("who is it", {"local": 2}, 0.75),
        ("who is Gandalf", {"local": 3}, 3.25 / 4),
        ("who compares it", {"relationship": 4, "local": 1}, 4.25 / 6),
        ("an overview of what compares", {"relationship": 4, "global": 4}, 4.25 / 9),
        ("how are they related if he affects them", {"relationship": 6}, 6.25 / 7),
    ],
)
def test_the_confidence_is_the_share_of_the_evidence(
    text: str, evidence: dict[str, int], confidence: float
) -> None:
    assert +weigh_evidence(text, extract_entities(text)) == evidence
    assert RULES.classify_text(text).confidence == pytest.approx(confidence, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('What does "wild card" mean?', ["wild card"]),
        ("「影の王」の能力は？", ["影の王"]),
        ("Que fait « le roi » ?", ["le roi"]),
        ("Does the Shield of Dawn cancel Poison?", ["Shield of Dawn", "Poison"]),
        ("What is T1059.001 at NASA?", ["T1059.001", "NASA"]),
        ("リッチとヴァンパイア・ロード", ["リッチ", "ヴァンパイア・ロード"]),
        ("Can I move?", []),
        ("Poison and Poison", ["Poison and Poison"]),
        ("", []),
    ],
)
def test_names_in_a_query(text: str, wanted: list[str]) -> None:
    assert extract_entities(text) == wanted


def test_known_names_other_forms_and_an_answer_for_each_text() -> None:
    rules = RuleClassifier(entities=["golden ticket", "kerberos (v5)"])
    found = rules.classify_text("does the Golden Ticket use kerberos (v5) or goldentickets")
    assert found.extracted_entities == ("golden ticket", "kerberos (v5)")
    text = "What is the difference of rooks?"
    assert expand_query(text) == ["difference rooks", text.replace("difference", "comparison")]
    assert expand_query("rook") == expand_query("") == expand_query("is the") == []
    towers = RuleClassifier(synonyms={"rook": ["tower"]}).classify_text("rook")
    assert towers.expanded_queries == ("tower",)
    assert len(expand_query("a b", {"b": [str(n) for n in range(9)]})) == MOST
    answers = RULES.classify(["Who?", "overview", "Who?"])
    assert [str(each.classification.type) for each in answers] == ["local", "global", "local"]
    assert {each.failure for each in answers} == {""}
    assert RULES.classify([]) == []


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


def test_the_command_prints_tables_with_or_without_types(tmp_path: Path, capsys: Capture) -> None:
    path = write_queries(tmp_path, {"id": "a", "text": "x"})
    assert (
        main(["dataset", "classify", str(path), "--out", str(tmp_path / "o.jsonl"), "--json"]) == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert (record["predictions"]["agreement"], record["ledger"]) == (None, None)
    path = write_queries(tmp_path, *QUERIES)
    assert main(["dataset", "classify", str(path), "--out", str(tmp_path / "o.jsonl")]) == 0
    printed = capsys.readouterr().out
    assert "predicted types" in printed
    assert "as given: 33.3%" in printed


@pytest.mark.parametrize(
    ("queries", "arguments", "says"),
    [
        ([{"id": "a"}], [], "query 'a'"),
        ([], [], "queries.jsonl:"),
        ([{"text": "x"}], [], "queries.jsonl:1: a query"),
        (QUERIES, ["--set", "model=m"], "--set: does"),
        (QUERIES, ["--method", "chat"], "model: is required"),
        (QUERIES, ["--method", "chat", "--set", "modle=m"], "mean 'model'?"),
        (QUERIES, ["--method", "chat", "--set", "model"], "KEY=VALUE"),
        (QUERIES, ["--records", "o.jsonl"], "name the same"),
        (QUERIES, ["--out", "queries.jsonl"], "replace an input"),
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
    assert main(["dataset", "classify", "queries.jsonl", "--out", "o.jsonl", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not Path("o.jsonl").exists()
