"""Objects with the same keys are read by columns, as they are one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.formats.json_file import read_uniform_objects
from fusion_bench.io.json_objects import JsonItem
from fusion_bench.io.load_records import load_run
from fusion_bench.io.raw_files import NO_COLUMNS

ROWS: list[dict[str, Any]] = [
    {"qid": "q1", "docno": "d1", "score": 2, "rank": 1},
    {"qid": "q1", "docno": "d2", "score": 1.5, "rank": 2},
    {"qid": "q2", "docno": "d1", "score": 7, "rank": 1},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def is_uniform(rows: list[dict[str, Any]]) -> bool:
    options: dict[str, Any] = {"has_ranks": False, "columns": NO_COLUMNS}
    items = [JsonItem(line, row) for line, row in enumerate(rows, 1)]
    return read_uniform_objects(items, "run", **options) is not None


def test_both_ways_read_the_same(tmp_path: Path) -> None:
    mixed = [*ROWS[:2], {**ROWS[2], "more": None}]
    assert is_uniform(ROWS)
    assert not is_uniform(mixed)
    runs = [load_run(write(tmp_path / f"{n}.jsonl", rows)) for n, rows in enumerate((ROWS, mixed))]
    assert runs[0].digest() == runs[1].digest()


@pytest.mark.parametrize(
    "row",
    [{"qid": 1}, {"docno": None}, {"docno": True}, {"qid": "\ud800"}, {"qid": ["q1"]}],
)
def test_other_ids_are_read_one_by_one(row: dict[str, Any]) -> None:
    assert not is_uniform([*ROWS, {**ROWS[0], **row}])


def test_an_error_still_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [*ROWS, {**ROWS[0], "docno": "d9", "score": "high"}])
    with pytest.raises(DataError, match=r"a\.jsonl:4:.*'high'"):
        load_run(path)
    path = write(tmp_path / "b.jsonl", [{"qid": "q1", "doc": "d1"}])
    with pytest.raises(DataError, match=r"b\.jsonl:1: "):
        load_run(path)
