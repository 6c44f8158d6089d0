"""The table of pulled engines, and the orders in it."""

from pathlib import Path

import pytest

from benchmarks.studies.pulled_engines import __main__ as program
from benchmarks.studies.pulled_engines.corpus import make_corpus
from benchmarks.studies.pulled_engines.orders import Difference, compare_orders

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
    assert len(row) == len(program.HEADER)


def test_without_the_collection_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(program.DATA, raising=False)
    assert program.main([]) == 2
    assert program.DATA in capsys.readouterr().err


REPLAY = [("a", 1.0), ("b", 0.5), ("c", 0.5), ("d", 0.25), ("e", 0.25 - 1e-8), ("f", 0.0)]


@pytest.mark.parametrize(
    ("documents", "kind"),
    [
        ("abcd", "same"),
        ("acbd", "equal"),
        ("abce", "equal_in_32_bits"),  # the cut lies between two that are about equal
        ("acbe", "equal_in_32_bits"),
        ("bacd", "different"),
        ("abcf", "different"),
        ("abcx", "different"),
        ("abc", "different"),
        ("", "different"),
        ("abcde", "different"),
    ],
)
def test_each_kind_of_order(documents: str, kind: str) -> None:
    theirs = [(document, dict(REPLAY).get(document, 0.1)) for document in documents]
    counts = compare_orders({"q": theirs}, {"q": REPLAY}, depth=4)
    known = ("same", "equal", "equal_in_32_bits", "different")
    assert {name: getattr(counts, name) for name in known} == {
        name: int(name == kind) for name in known
    }
    assert (counts.first is None) == (kind != "different")


def test_the_first_difference_and_the_greatest_of_scores() -> None:
    engine = {"q1": [("a", 1.0), ("b", 0.5)], "q2": [("c", 0.5), ("a", 1.1)]}
    counts = compare_orders(engine, {"q1": REPLAY, "q2": REPLAY}, depth=2)
    assert counts.first == Difference("q2", 1, "c", 0.5, "a", 1.0)
    assert counts.score_difference == pytest.approx(0.1)
