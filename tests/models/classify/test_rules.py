"""The rule-based classifier: types, confidence, entities, other words."""

from __future__ import annotations

import pytest

from fusion_bench.config.query_types import CONV_03_05, MIN_CONFIDENCE
from fusion_bench.models.query_types import (
    MOST,
    RuleClassifier,
    expand_query,
    extract_entities,
    weigh_evidence,
)

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


def test_known_names_count_wherever_they_stand() -> None:
    rules = RuleClassifier(entities=["golden ticket", "kerberos (v5)"])
    found = rules.classify_text("does the Golden Ticket use kerberos (v5) or goldentickets")
    assert found.extracted_entities == ("golden ticket", "kerberos (v5)")


def test_other_forms_of_a_query() -> None:
    text = "What is the difference of rooks?"
    assert expand_query(text) == ["difference rooks", text.replace("difference", "comparison")]
    assert expand_query("rook") == expand_query("") == expand_query("is the") == []
    towers = RuleClassifier(synonyms={"rook": ["tower"]}).classify_text("rook")
    assert towers.expanded_queries == ("tower",)
    assert len(expand_query("a b", {"b": [str(n) for n in range(9)]})) == MOST


def test_each_text_gets_its_answer() -> None:
    answers = RULES.classify(["Who?", "overview", "Who?"])
    assert [str(each.classification.type) for each in answers] == ["local", "global", "local"]
    assert {each.failure for each in answers} == {""}
    assert RULES.classify([]) == []
