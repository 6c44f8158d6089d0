"""Comments, and tags with blanks, in TREC files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run

ROWS = "q1 Q0 d2 1 0.9 tag\nq1 Q0 d1 2 0.5 tag\nq2 Q0 d3 1 7 tag\n"
SAME = {"q1": {"d2": 0.9, "d1": 0.5}, "q2": {"d3": 7.0}}


@pytest.mark.parametrize("name", ["a.trec", "a", "a.bm25"])
@pytest.mark.parametrize(
    "text",
    [
        "# BM25, k1 0.9\n" + ROWS,
        "#\n#comment\n" + ROWS.replace("\n", "\n# q1 Q0 d9 3 0.1 tag\n"),
        "  # an indented comment\n\n" + ROWS,
        ROWS.replace("tag", "my tag"),
        ROWS.replace("tag", "BM25 (k1 = 0.9)"),
        ROWS.replace(" ", "\t").replace("tag", "my first tag"),
    ],
    ids=["first", "between", "indented", "tag", "long tag", "tabs"],
)
def test_the_same_run(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert load_run(path).to_dict() == SAME


def test_comments_in_qrels(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("# graded by two people\nq1 0 d1 1\n# q1 0 d2 1\n", encoding="utf-8")
    assert load_qrels(path).to_dict() == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 d1 1 0.9 t\n#q1 Q0 d2 2 0.5 t\n", ":2: starts with '#'"),
        ("#q1 Q0 d1 1 0.9 t\n", ":1: starts with '#'"),
        ("q1 Q0 d1 1 0.9 t\n#q1 Q0 d2 2 0.5 my tag\n", ":2: starts with '#'"),
        ("q1 Q0 d1 1 0.9 t\nq1 Q0 d 2 2 0.5 t\n", ":2: 7 columns"),
        ("q1 Q0 d1 1 0.9 t\nq 1 Q0 d2 2 0.5 t\n", ":2: 7 columns"),
        ("q1 Q0 d1 1 0.9 t\nq1 Q0 a b 2 0.5 t\n", ":2: 7 columns"),
        ("# only a comment\n", "the file is empty"),
    ],
)
def test_what_could_be_read_two_ways_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        load_run(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "extra", ["# a comment\n", "# six words that say what\n", "q2 Q0 d4 2 6 my tag\n"]
)
def test_a_large_file_is_read_the_same(extra: str, tmp_path: Path) -> None:
    rows = "".join(f"q{n} Q0 d{n} 1 7 tag\n" for n in range(60_000))
    plain, other = tmp_path / "plain.trec", tmp_path / "other.trec"
    plain.write_text(rows, encoding="utf-8")
    other.write_text(rows + extra, encoding="utf-8")
    added = int(not extra.startswith("#"))
    assert len(load_run(other).documents) == len(load_run(plain).documents) + added
