"""Ranked lists in files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.load_records import load_run
from fusion_bench.io.write_run import RunRows, encode_run, find_writer
from fusion_bench.util.files import write_atomic

ROWS = RunRows(
    name="my system",
    queries=["q1", "q1", "q2"],
    documents=["d1", "dä", "d1"],
    ranks=[1, 2, 1],
    scores=[0.1 + 0.2, -1e-9, 5.0],
    sources={"a": ([2, None, 1], [0.5, None, 7.0])},
)


def write_run(path: Path, rows: RunRows) -> Path:
    return write_atomic(path, encode_run(path, rows))


@pytest.mark.parametrize(
    "name", ["f.trec", "f.RUN", "f.txt.gz", "f.jsonl", "f.ndjson.gz", "f.csv", "f.tsv", "f.parquet"]
)
def test_what_is_written_is_read_again_bit_by_bit(name: str, tmp_path: Path) -> None:
    rows = replace(ROWS, sources={}) if name.startswith(("f.t", "f.R")) else ROWS
    path = write_run(tmp_path / "new" / name, rows)
    read = load_run(path)
    assert read.to_dict() == {"q1": {"d1": 0.1 + 0.2, "dä": -1e-9}, "q2": {"d1": 5.0}}


def test_a_trec_file_has_six_columns(tmp_path: Path) -> None:
    text = write_run(tmp_path / "f.trec", replace(ROWS, sources={})).read_text()
    assert text.splitlines()[0] == "q1 Q0 d1 1 0.30000000000000004 my-system"


def test_sources_are_written_where_they_have_the_document(tmp_path: Path) -> None:
    lines = write_run(tmp_path / "f.jsonl", ROWS).read_text().splitlines()
    assert json.loads(lines[0])["sources"] == {"a": {"rank": 2, "score": 0.5}}
    assert json.loads(lines[1])["sources"] == {}
    table = write_run(tmp_path / "f.csv", ROWS).read_text().splitlines()
    assert table[0] == "query,document,rank,score,a_rank,a_score"
    assert table[2] == "q1,dä,2,-1e-09,,"


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'.xlsx'.*\.csv"):
        find_writer(tmp_path / "f.xlsx")
    with pytest.raises(ConfigError, match="columns for sources"):
        find_writer(tmp_path / "f.trec", has_sources=True)
    with pytest.raises(ConfigError, match=r"leave out \.gz"):
        find_writer(tmp_path / "f.parquet.gz")
    with pytest.raises(DataError, match="document 'd 1' has blanks"):
        write_run(tmp_path / "f.trec", replace(ROWS, documents=["d 1", "d2", "d3"]))
    assert not list(tmp_path.iterdir())
