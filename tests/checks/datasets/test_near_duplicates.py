"""The record of near-duplicate queries, its sentence, and where it is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.checks.query_warnings import (
    describe_near_duplicates,
    find_near_duplicates,
    write_found_groups,
)
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.data_warnings import data_warnings
from tests.io.test_dataset_groups import write_dataset
from tests.report.cases import collection, report, system


def test_copies_are_counted(tmp_path: Path) -> None:
    record = find_near_duplicates(load_dataset(write_dataset(tmp_path)))
    assert record is not None
    assert record.model_dump() == {
        "dataset": "tiny",
        "queries": 12,
        "linked": 2,
        "groups": 1,
        "largest": 2,
        "links": {"same text": 1},
        "is_too_large": False,
        "withholds": True,
    }
    text = describe_near_duplicates(record)
    assert "2 of 12 queries" in text
    assert "'groups: auto'" in text
    assert "at least 20 groups " in text
    found = collection(system("base", 0.5, 0.4), near_duplicates=record)
    assert [w.key for w in data_warnings(report(found), found)] == ["near-duplicate queries"]


def test_lists_without_a_dataset_yaml_are_not_taken_for_one_of_that_name(tmp_path: Path) -> None:
    dataset = replace(load_dataset(write_dataset(tmp_path)), has_file=False)
    record = find_near_duplicates(dataset)
    assert record is not None
    assert record.dataset is None
    text = describe_near_duplicates(record)
    assert "--save DIR" in text
    assert "check tiny" not in text


def test_a_large_group_is_said_and_auto_is_not_advised(tmp_path: Path) -> None:
    record = find_near_duplicates(load_dataset(write_dataset(tmp_path, copies=4)))
    assert record is not None
    assert record.is_too_large
    assert "33.3 %" in describe_near_duplicates(record)


@pytest.mark.parametrize(("copies", "withholds"), [(3, False), (4, True)])
def test_from_a_tenth_of_the_queries_on_nothing_is_shipped(
    tmp_path: Path, copies: int, withholds: bool
) -> None:
    path = write_dataset(tmp_path, copies=0, queries=40)
    rows = [
        row
        for row in (tmp_path / "qrels.txt").read_text().splitlines()
        if int(row.split()[0][1:]) >= copies
    ]
    (tmp_path / "qrels.txt").write_text("\n".join([*rows, *(f"q{i} 0 d 1" for i in range(copies))]))
    record = find_near_duplicates(load_dataset(path))
    assert record is not None
    assert record.links == {"same relevant documents": copies - 1}
    assert record.withholds == withholds
    assert ("no 'ship'" in describe_near_duplicates(record)) == withholds
    file = tmp_path / "groups.jsonl"
    file.write_text('{"id": "q9", "group": "g"}')
    path.write_text(f"{path.read_text()}groups: groups.jsonl\n")
    record = find_near_duplicates(load_dataset(path))
    assert record is not None
    assert not record.withholds


def test_the_file_of_groups_has_identical_queries_too(tmp_path: Path) -> None:
    dataset = load_dataset(write_dataset(tmp_path, queries=40))
    assert find_near_duplicates(dataset) is None
    assert write_found_groups(dataset, tmp_path / "groups.jsonl")["queries"] == 2


@pytest.mark.parametrize("groups", ["auto", "none", "declared"])
def test_a_dataset_that_settled_its_groups_is_not_searched(tmp_path: Path, groups: str) -> None:
    dataset = load_dataset(write_dataset(tmp_path, f"groups: {groups}"))
    assert find_near_duplicates(dataset) is None


def test_only_the_evaluated_queries_are_searched(tmp_path: Path) -> None:
    dataset = load_dataset(write_dataset(tmp_path))
    assert find_near_duplicates(dataset, [f"q{i}" for i in range(1, 12)]) is None
    assert find_near_duplicates(dataset, min_share=0.2) is None


def test_the_groups_that_are_written_are_those_of_auto(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    file = tmp_path / "groups.jsonl"
    assert write_found_groups(load_dataset(path), file) == {
        "file": str(file),
        "groups": 1,
        "queries": 2,
    }
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == [
        {"id": "q0", "group": "q0", "linked_to": "q1", "reason": "same text"},
        {"id": "q1", "group": "q0", "linked_to": "q0", "reason": "same text"},
    ]
    path.write_text(path.read_text() + "groups: groups.jsonl\n")
    dataset = load_dataset(path)
    assert find_near_duplicates(dataset) is None
    assert dataset.queries["q1"].group == "q0"
