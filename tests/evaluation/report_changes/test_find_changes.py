"""What changed between two reports of a project that was edited in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.evaluation.report_changes import CollectionChange, ReportChange, find_changes
from fusion_bench.evaluation.report_file import Report, read_last_report
from tests import tiny
from tests.evaluation.test_run_experiment import report
from tests.tiny import EXPERIMENT, edit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny.make(tmp_path)


def change_of(root: Path, before: Report) -> ReportChange:
    return find_changes(before, report(root))


def only(change: ReportChange) -> CollectionChange:
    [collection] = change.collections
    return collection


def test_nothing_changes_by_itself(root: Path) -> None:
    change = change_of(root, report(root))
    assert not change.is_changed
    assert [row.status for row in only(change).systems] == ["both", "both"]
    assert only(change).queries.rows == ()
    assert (change.settings, change.versions) == ((), ())


def test_a_parameter_and_what_it_did(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "fusion: {method: rrf_v2}", "fusion: {method: rrf_v2, k: 7}")
    edit(root, EXPERIMENT, "position_aware, reranker: r", "replace, reranker: r, min_score: 0.5")
    edit(root, EXPERIMENT, "baseline: one", "baseline: one\nalpha: 0.1")
    edit(root, EXPERIMENT, "  one:\n", "  one:\n    fusion: {method: rrf, k: 60.0}\n")  # as it was
    change = change_of(root, before)
    assert change.is_changed
    assert [(each.path, each.then, each.now) for each in change.settings] == [
        ("alpha", "0.05", "0.1")
    ]
    one, two = only(change).systems
    assert not one.is_changed
    assert (one.then, one.now, one.difference) == (1, 1, 0)
    paths = {each.path: (each.then, each.now) for each in two.config}
    assert paths["fusion.k"] == ("60", "7")
    assert paths["blend.method"] == ('"position_aware"', '"replace"')
    assert paths["blend.min_score"] == ("null", "0.5")
    assert paths["blend.retrieval"][1] is None
    assert two.is_changed


def test_values_means_and_queries(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    change = change_of(root, before)
    one, two = only(change).systems
    # `a` alone has RR 1/2 on all three queries, where rrf has 1.
    assert (one.then, one.now, one.difference) == (1, 0.5, -0.5)
    assert (one.better, one.worse, two.better, two.worse) == (0, 3, 0, 0)
    assert (one.answer_then, one.answer_now) == (None, None)
    assert (two.answer_then, two.answer_now) == ("identical", "not shown")
    queries = only(change).queries
    assert [(row.query, row.system, row.then, row.now) for row in queries.rows] == [
        (query, "one", 1, 0.5) for query in ("q1", "q2", "q4")
    ]
    assert queries.changed == 3
    few = find_changes(before, report(root), queries=1).collections[0].queries
    assert (len(few.rows), few.changed) == (1, 3)
    assert repr(few) == "QueryChanges(1 of 3 changed queries)"


def test_systems_queries_and_data_come_and_go(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:", "  new: {runs: [b]}\n  one:")
    text = (root / EXPERIMENT).read_text(encoding="utf-8")
    (root / EXPERIMENT).write_text(text[: text.index("  two:")], encoding="utf-8")
    edit(root, "datasets/tiny/queries.jsonl", '"q4", "type": "local", "split": "test"', '"q4"')
    found = only(change_of(root, before))
    assert [(row.name, row.status) for row in found.systems] == [
        ("new", "new"),
        ("one", "both"),
        ("two", "gone"),
    ]
    assert (found.queries_added, found.queries_removed) == (0, 1)
    assert found.data == ("queries.type", "queries.split")  # but not a list that nothing reads
    assert (found.systems[1].then, found.systems[1].difference) == (1, 0)
    assert found.systems[2].now is None


def test_another_measure_has_no_difference(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "[RR@10, nDCG@10]", "[R@5]")
    found = only(change_of(root, before))
    assert found.measure == "R@5"
    assert [(row.then, row.difference) for row in found.systems] == [(None, None)] * 2
    assert found.systems[0].now == 1
    assert {row.status for row in found.systems} == {"both"}


def test_collections_come_and_go(root: Path) -> None:
    before = report(root)
    edit(root, "datasets/tiny/dataset.yaml", "name: tiny", "name: other")
    change = change_of(root, before)
    assert [(each.name, each.status) for each in change.collections] == [
        ("other", "new"),
        ("tiny", "gone"),
    ]
    assert change.is_changed


def test_a_change_is_json_and_a_frame(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    change = change_of(root, before)
    data = json.loads(json.dumps(change.to_dict(), allow_nan=False))
    assert data["collections"][0]["systems"][0]["config"] == [
        {"path": "runs", "then": '["a", "b"]', "now": '["a"]'}
    ]
    frame = change.to_pandas()
    assert frame["collection"].tolist() == ["tiny", "tiny"]
    assert frame["config"].tolist() == ["runs", ""]
    assert len(change._table_columns(1)["name"]) == 1


def test_the_last_report_never_stands_in_the_way(root: Path) -> None:
    folder = root / "out"
    assert read_last_report(folder) is None
    folder.mkdir()
    stored = report(root)
    (folder / "report.json").write_text(stored.model_dump_json(), encoding="utf-8")
    assert read_last_report(folder) == stored
    for damaged in ("{}", "no JSON", stored.model_dump_json()[:-9], "\x00"):
        (folder / "report.json").write_text(damaged, encoding="utf-8")
        assert read_last_report(folder) is None
    (folder / "report.json").unlink()
    (folder / "report.json").mkdir()
    assert read_last_report(folder) is None
