"""Rank columns that oppose the scores of a file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fusion_bench.checks.lists import RankColumn, compare_rank_column
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, FileLayout

SAME = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 0.1 t\nq2 Q0 a 1 3 t\n"
OPPOSED = "q1 Q0 a 1 0.1 t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 0.4 t\nq1 Q0 d 4 0.9 t\n"

ZERO_BASED = "q1 Q0 a 0 0.1 t\nq1 Q0 b 1 0.5 t\nq1 Q0 c 2 0.7 t\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.trec", SAME, RankColumn(1, 0)),
        ("a", "# a comment\n" + OPPOSED + SAME.replace("q1", "q3"), RankColumn(2, 1)),
        ("a.trec", ZERO_BASED, RankColumn(1, 1)),
        ("a.trec", "q1 Q0 a 0 0.1 t\nq1 Q0 b 0 0.5 t\n", RankColumn(0, 0)),
        ("a.trec", "q1 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n", RankColumn(0, 0)),
        ("a.csv", "query,document,rank,score\nq1,a,1,0.1\nq1,b,2,0.5\n", RankColumn(1, 1)),
        ("a.csv", "query,document,score\nq1,a,0.1\nq1,b,0.5\n", None),
        ("a.trec", "q1 a 1\nq1 b 2\n", None),
        ("a.trec", "not a run\n", None),
        ("a.parquet", "PAR1", None),
    ],
)
def test_ranks_and_scores(
    name: str, text: str, expected: RankColumn | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert compare_rank_column(path, DEFAULT_LAYOUT) == expected


def test_a_packed_file_and_a_format_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.bm25.gz"
    path.write_bytes(gzip.compress(OPPOSED.encode()))
    assert compare_rank_column(path, FileLayout("trec", {})) == RankColumn(1, 1)


def test_only_the_beginning_of_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(SAME + "".join(f"x{n} Q0 a 1 0.1 t\n" for n in range(20_000)) + OPPOSED)
    assert compare_rank_column(path, DEFAULT_LAYOUT) == RankColumn(1, 0)


def test_a_folder_has_no_rank_column(tmp_path: Path) -> None:
    assert compare_rank_column(tmp_path, DEFAULT_LAYOUT) is None
