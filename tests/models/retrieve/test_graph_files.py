from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.models.options import GraphRules
from fusion_bench.models.retrievers.graph import (
    Entity,
    GraphIndex,
    read_entities,
    read_relations,
)
from tests.models.retrieve.collection import DOCUMENTS, write_lines

ENTITIES = {
    "storm": Entity(("Storm", "the gale"), ("d1", "d3")),
    "ship": Entity(("Ship",), None),
    "d4": Entity(("Dusk phase",), ()),  # an entity and a document may have one id
    "lantern": Entity(("Last lantern",), None),
}
RELATIONS = [("storm", "ship", 2.0), ("d4", "ship", 1.0)]


def test_documents_near_the_named_entity_score_higher() -> None:
    index = GraphIndex(DOCUMENTS, ENTITIES, RELATIONS)
    storm, gale, lantern, nothing = index.scores(
        ["what is a storm", "GALES!", "the last lantern", "nothing known"]
    )
    by_id = dict(zip(index.ids, storm, strict=True))
    # d1 is linked to both; d2 only to the ship, one step away; d5 to neither.
    assert by_id["d1"] > by_id["d3"] > by_id["d2"] > 0
    assert by_id["d4"] == by_id["d5"] == 0
    assert gale.argmax() == 0
    assert dict(zip(index.ids, lantern, strict=True))["d5"] > 1
    assert not nothing.any()


def test_an_end_that_is_both_is_the_entity() -> None:
    index = GraphIndex(DOCUMENTS, ENTITIES, [("d4", "ship", 1.0)])
    [row] = index.scores(["dusk phase"])
    by_id = dict(zip(index.ids, row, strict=True))
    assert min(by_id["d1"], by_id["d2"]) > by_id["d4"] == 0


def test_entities_are_linked_to_japanese_texts() -> None:
    documents = {"a": "焦げカードを捨てます。", "b": "列車コマを進めます。"}
    entities = {"焦げ": Entity(("焦げ",), None), "列車": Entity(("列車コマ",), None)}
    index = GraphIndex(documents, entities, [], GraphRules(tokens="bigrams"))
    scores = index.scores(["焦げとは？", "列車コマは？"])
    assert scores.argmax(axis=1).tolist() == [0, 1]


def test_files_are_read(tmp_path: Path) -> None:
    entities = write_lines(
        tmp_path / "e.jsonl",
        [
            {"id": "s", "name": "Storm", "aliases": ["gale"], "documents": ["d1"], "kind": "rule"},
            {"name": "Ship"},
        ],
    )
    relations = write_lines(
        tmp_path / "r.jsonl",
        [{"source": "s", "target": "Ship"}, {"source": "Ship", "target": "d2", "weight": 0.5}],
    )
    known = read_entities(entities, DOCUMENTS)
    assert known == {"s": Entity(("Storm", "gale"), ("d1",)), "Ship": Entity(("Ship",), None)}
    assert read_relations(relations, known, DOCUMENTS) == [("s", "Ship", 1.0), ("Ship", "d2", 0.5)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the file is empty"),
        ([{"id": "a"}], r"e\.jsonl:1: an entity needs a 'name' \(found: id\)"),
        ([{"name": "a"}, {"name": "a"}], r"e\.jsonl:2: entity 'a' stands twice"),
        ([{"name": ["a"]}], r"id must be text, given \[\"a\"\]"),
        ([{"name": "a", "aliases": "b"}], "aliases must be a list of texts, given 'b'"),
        ([{"name": "a", "documents": ["d1", "d9"]}], r"e\.jsonl:1: no document 'd9' is known"),
    ],
)
def test_what_is_wrong_with_entities(
    rows: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_entities(write_lines(tmp_path / "e.jsonl", rows), DOCUMENTS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"source": "storm"}, r"r\.jsonl:1: a relation needs a 'source' and a 'target'"),
        ({"source": "storm", "target": "x"}, "no entity or document 'x' is known"),
        ({"source": "storm", "target": "ship", "weight": 0}, "positive number, given 0"),
        ({"source": "storm", "target": "ship", "weight": True}, "positive number, given True"),
        ({"source": "storm", "target": "ship", "weight": float("nan")}, "positive number"),
    ],
)
def test_what_is_wrong_with_relations(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_relations(write_lines(tmp_path / "r.jsonl", [row]), ENTITIES, DOCUMENTS)
