"""Details of a whole run: which systems, what JSON and data frames have, what fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.errors import UnknownKeyError, UnknownNameError
from fusion_bench.evaluation.details.collector import (
    CollectionDetails,
    DetailsCollector,
    ReportDetails,
)
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit


def details(root: Path, collector: DetailsCollector | None = None) -> ReportDetails:
    experiment, source = read_experiment(root / EXPERIMENT)
    collector = collector or DetailsCollector()
    report = run_experiment(experiment, source, folders=[root / "datasets"], details=collector)
    return collector.make_details(report)


def collection(root: Path) -> CollectionDetails:
    return details(root).collection("tiny")


def test_the_facts_of_a_run(tmp_path: Path) -> None:
    found = collection(tiny.make(tmp_path))
    assert found.queries == ("q1", "q2", "q4")
    frame = found.relevant.to_pandas()
    assert frame["document"].tolist() == ["d1", "d3", "d4"]
    assert frame[["a", "b", "one"]].values.tolist() == [[2, 1, 1], [2, 2, 1], [2, 1, 1]]
    assert found.unjudged["one"].tolist() == [0, 2, 1]
    assert found.overlap.alone.tolist() == [0, 0]
    assert found.top_documents("one").to_pandas()["term a"].tolist()[0] == 1 / 62
    assert found.texts == (None, None, None)
    assert found.document_texts == {}


def test_baseline_best_guarded_tuned_and_named_systems_are_detailed(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    more = "  three: {runs: [a]}\n  four: {runs: [b]}\n  five: {runs: [b, a], depth: 1}\n"
    settings = "gate: {system: two, checks: {nDCG@10: {max_drop: 0.1}}}\ntune: {system: four}\n"
    path = root / EXPERIMENT
    path.write_text(path.read_text(encoding="utf-8") + more + settings, encoding="utf-8")
    found = details(root, DetailsCollector(("three", "one"))).collections[0]
    assert found.detailed == ("one", "two", "four", "three")
    assert tuple(top.system for top in found.top) == found.detailed
    assert set(found.relevant.systems) == {"one", "two", "three", "four", "five"}
    with pytest.raises(UnknownKeyError, match="five"):
        found.top_documents("five")


def test_an_unknown_name_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, a="not a run")
    with pytest.raises(UnknownNameError, match=r"'tow'.*two"):
        details(root, DetailsCollector(("tow",)))


def test_texts_are_shortened(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "queries: ", "documents: docs.jsonl\nqueries: ")
    edit(root, "datasets/tiny/queries.jsonl", '"q1", ', '"q1", "text": "why\\n me?", ')
    lines = [{"id": "d1", "title": "One", "text": "x" * 400}, {"id": "d77", "text": "unused"}]
    text = "\n".join(map(json.dumps, lines))
    (root / "datasets/tiny/docs.jsonl").write_text(text, encoding="utf-8")
    found = collection(root)
    assert found.texts == ("why me?", None, None)
    assert found.document_texts == {"d1": f"One: {'x' * 295}…"}


def test_everything_is_json(tmp_path: Path) -> None:
    found = details(tiny.make(tmp_path))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["format"], data["format_version"], data["report"]) == (
        "fusion-bench-details",
        1,
        "e",
    )
    [item] = data["collections"]
    assert item["relevant"]["source_ranks"] == [[2, 2, 2], [1, 2, 1]]
    assert "queries" not in item["relevant"]
    assert item["top"][0]["labels"] == ["a", "b"]
    assert item["depth_curve"]["rows"][-1]["depth"] == 2


def test_where_all_is_too_much_the_page_can_say_so(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    [found] = details(root, DetailsCollector(limit=1)).collections
    assert found.kept_queries.tolist() == []
    assert (found.relevant.documents, found.top[0].documents) == ((), ())
    assert found.overlap.relevant == 3
    assert "0 of 3 queries" in repr(found)
    assert details(root).to_pandas()["with details"].tolist() == [3]


def test_two_collections_share_the_limit(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    tiny.make(tmp_path / "other")
    (tmp_path / "other/datasets/tiny").rename(root / "datasets/second")
    edit(root, "datasets/second/dataset.yaml", "name: tiny", "name: second")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, second]")
    found = details(root)
    assert [each.name for each in found.collections] == ["tiny", "second"]
    assert found.collection("second").queries == ("q1", "q2", "q4")
    with pytest.raises(UnknownKeyError, match="third"):
        found.collection("third")
