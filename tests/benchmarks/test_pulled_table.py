"""The table of pulled engines, over a made corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.studies.pulled_engines import __main__ as program
from benchmarks.studies.pulled_engines.corpus import make_corpus

CORPUS = make_corpus(60, 6)
QRELS = "".join(f"{query} 0 doc-{n} 1\n" for n, query in enumerate(CORPUS.queries))


def test_a_row_for_each_fusion(tmp_path: Path) -> None:
    case = program.CASES["qdrant-edge"]
    rows = list(program.measure_case(case, CORPUS, QRELS, tmp_path / "index"))
    assert [row[4] for row in rows] == [
        "`rrf`",
        "`rrf, k: 60, weights: {bm25: 1.0, dense: 2.0}`",
        "`dbsf`",
    ]
    for row in rows:
        assert row[2].endswith("as a library")
        assert row[3].startswith("bm25 ")
        assert sum(map(int, row[5:8])) == len(CORPUS.queries)
        assert row[8] == "0"
        assert len(row) == len(program.HEADER)
        assert all(0 <= float(mean) <= 1 for mean in row[-2:])


def test_a_row_of_an_engine_that_fuses_nothing(tmp_path: Path) -> None:
    case = program.CASES["sqlite"]
    (row,) = program.measure_case(case, CORPUS, QRELS, tmp_path / "index")
    assert row[4:10] == ["–"] * 6
    assert row[10].endswith(" (leg)")
    table = program.format_table([row])
    assert {line.count("|") for line in table.splitlines()} == {len(program.HEADER) + 1}


def test_a_switch_is_written_as_yaml_has_it() -> None:
    fusion = {"method": "weighted", "norm_score": False, "metric": {"bm25": "BM25"}}
    assert program.format_fusion(fusion) == "`weighted, norm_score: false`"


def test_without_the_collection_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(program.DATA, raising=False)
    assert program.main([]) == 2
    assert program.DATA in capsys.readouterr().err
