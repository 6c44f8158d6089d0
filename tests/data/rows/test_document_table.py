"""How judgments and runs show themselves and leave as TREC files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run

RUN = Run.from_dict("b m", {"q1": {"d2": 9.0, "d1": 7.5, "d3": 7.5}, "q2": {"d<3": 1.0}})
QRELS = Qrels.from_dict({"q1": {"d1": 2, "d2": 0}})


def test_a_cell_shows_one_line_and_the_first_rows() -> None:
    large = Run.from_dict("a", {f"q{i}": {"d": 1.0} for i in range(1000)})
    for table in (RUN, QRELS, large):
        assert len(repr(table).splitlines()) == 1
        assert len(table._repr_html_()) < 2000
    assert repr(RUN) == "Run('b m', 2 queries, 4 documents)"
    assert "d&lt;3" in RUN._repr_html_()
    assert "…" in large._repr_html_()


def test_data_frames() -> None:
    frame = RUN.to_pandas()
    assert frame.columns.tolist() == ["query", "document", "rank", "score"]
    assert frame.iloc[1].tolist() == ["q1", "d3", 2, 7.5]
    assert QRELS.to_pandas()["grade"].tolist() == [2, 0]
    assert Run.from_pandas(frame, name="b m").to_dict() == RUN.to_dict()


def test_trec_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    assert RUN.to_trec(path).splitlines()[0] == "q1 Q0 d2 1 9.0 b_m"
    assert load_run(path).to_dict() == RUN.to_dict()
    QRELS.to_trec(tmp_path / "qrels.txt")
    assert load_qrels(tmp_path / "qrels.txt").to_dict() == QRELS.to_dict()


def test_ranks_win_over_scores_in_a_trec_file(tmp_path: Path) -> None:
    by_rank = ReadOptions(rank_from="column")
    rows = (["q", "q", "p"], ["d1", "d2", "d1"], [0.5, 0.9, 0.3])
    run = Run.from_rows("a", *rows, ranks=[1, 2, 1], read_options=by_rank)
    run.to_trec(tmp_path / "run.trec")
    assert list(load_run(tmp_path / "run.trec").to_dict()["q"]) == ["d1", "d2"]


def test_ids_with_white_space_are_refused() -> None:
    with pytest.raises(DataError, match="white space"):
        Run.from_dict({"q 1": {"d": 1.0}}).to_trec()
