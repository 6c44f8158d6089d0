from collections.abc import Sequence

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError

Rows = Sequence[tuple[str, str, float]]


def run(
    rows: Rows, ranks: Sequence[int] | None = None, read_options: ReadOptions | None = None
) -> Run:
    queries, documents, scores = zip(*rows, strict=True)
    return Run.from_rows("bm25", queries, documents, scores, ranks=ranks, read_options=read_options)


def listed(run: Run) -> list[tuple[str, int]]:
    return [(run.vocabulary[d], int(r)) for d, r in zip(run.documents, run.ranks, strict=True)]


def test_ranks_come_from_scores_and_ties_go_to_the_greater_id() -> None:
    found = run([("q", "low", 1.0), ("q", "high", 3.0), ("q", "mid", 2.0)], ranks=[1, 2, 3])
    assert listed(found) == [("high", 1), ("mid", 2), ("low", 3)]
    rows = [("q", "d10", 1.0), ("q", "d9", 1.0), ("q", "é", 1.0), ("q", "z", 1.0)]
    assert [d for d, _ in listed(run(rows))] == ["é", "z", "d9", "d10"]
    filed = run(rows, read_options=ReadOptions(source_ties="file"))
    assert [d for d, _ in listed(filed)] == ["d10", "d9", "é", "z"]
    rows = [("q", "a", 1.0 + 1e-13), ("q", "b", 1.0)]
    assert [d for d, _ in listed(run(rows))] == ["b", "a"]


def test_the_rank_column_on_request() -> None:
    column = ReadOptions(rank_from="column")
    rows = [("q", "a", 1.0), ("q", "b", 9.0), ("r", "c", 1.0)]
    assert listed(run(rows, [3, 1, 1], column)) == [("b", 1), ("a", 3), ("c", 1)]
    assert listed(run(rows, [1, 0, 0], column)) == [("b", 1), ("a", 2), ("c", 1)]
    with pytest.raises(DataError, match="no rank column"):
        run([("q", "a", 1.0)], read_options=ReadOptions(rank_from="column"))


@pytest.mark.parametrize(
    ("ranks", "message", "row"),
    [
        ([1, -2, 1], "rank -2 is negative", 1),
        ([1, 1, 1], "rank 1 is given", 1),
        ([2, 2, 0], "rank 3 is given", 1),
    ],
)
def test_bad_rank_columns_name_the_row(ranks: list[int], message: str, row: int) -> None:
    rows = [("q", "a", 1.0), ("q", "b", 9.0), ("r", "c", 1.0)]
    with pytest.raises(DataError, match=message) as caught:
        run(rows, ranks, ReadOptions(rank_from="column"))
    assert caught.value.row == row


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_are_finite(bad: float) -> None:
    with pytest.raises(DataError, match="finite number") as caught:
        run([("q", "a", 1.0), ("q", "b", bad)])
    assert caught.value.row == 1


def test_a_document_listed_twice_is_an_error_or_keeps_its_best_rank() -> None:
    rows = [("q", "a", 1.0), ("q", "b", 2.0), ("q", "a", 3.0), ("r", "a", 1.0)]
    with pytest.raises(DataError, match="document 'a' appears twice") as caught:
        run(rows)
    assert caught.value.row == 2
    found = run(rows, read_options=ReadOptions(on_duplicate="best_rank"))
    assert found.to_dict() == {"q": {"a": 3.0, "b": 2.0}, "r": {"a": 1.0}}
    assert listed(found) == [("a", 1), ("b", 2), ("a", 1)]
    assert found.duplicates == 1


def test_zero_scores_are_counted_dropped_and_hide_nothing() -> None:
    rows = [("q", "a", 0.0), ("q", "b", 2.0), ("q", "c", -1.0), ("r", "d", -0.0)]
    assert run(rows).zero_scores == 2
    assert run(rows).to_dict() == {"q": {"b": 2.0, "a": 0.0, "c": -1.0}, "r": {"d": 0.0}}
    dropped = run(rows, read_options=ReadOptions(drop_zero_scores=True))
    assert dropped.zero_scores == 2
    assert dropped.to_dict() == {"q": {"b": 2.0, "c": -1.0}, "r": {}}
    assert listed(dropped) == [("b", 1), ("c", 2)]
    rows = [("q", "a", 0.0), ("q", "a", -1.0)]
    found = run(rows, read_options=ReadOptions(on_duplicate="best_rank", drop_zero_scores=True))
    assert found.to_dict() == {"q": {"a": -1.0}}
    assert (found.zero_scores, found.duplicates) == (1, 0)


def test_runs_refuse_nothing_and_ragged_columns() -> None:
    with pytest.raises(DataError, match="no ranked document"):
        Run.from_dict("bm25", {})
    with pytest.raises(DataError, match="1 queries, 1 documents, 2 scores"):
        Run.from_rows("bm25", ["q"], ["a"], [1.0, 2.0])


def test_digest_reads_ranks_and_scores() -> None:
    base = Run.from_dict("a", {"q": {"x": 2.0, "y": 1.0}, "r": {"x": 1.0}})
    same = Run.from_dict("b", {"r": {"x": 1.0}, "q": {"y": 1.0, "x": 2.0}})
    assert base.digest() == same.digest()
    other = Run.from_dict("a", {"q": {"x": 2.0, "y": 1.5}, "r": {"x": 1.0}})
    assert base.digest() != other.digest()


@pytest.mark.parametrize("rows", [{"q\ud800": {"d": 1.0}}, {"q": {"d\udfff": 1.0}}])
def test_half_of_a_surrogate_pair_is_an_error(rows: dict[str, dict[str, float]]) -> None:
    with pytest.raises(DataError, match=r"^id '[qd]\\ud.*' .* surrogate pair"):
        Run.from_dict(rows)
