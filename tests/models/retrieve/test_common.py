from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import DataError, MissingExtraError
from fusion_bench.models.retrieval import import_extra, rank_documents
from fusion_bench.models.retrievers.lexical import stem_texts


def test_a_missing_library_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"rank-fusion-bench\[retrieve\]"):
        import_extra("no_such_library_anywhere", purpose="a test")


def test_stems_are_lower_case_stemmed_words_without_stopwords() -> None:
    stemmed = stem_texts(["The actors DUMPED credentials", "", "of the"])
    assert stemmed == [["actor", "dump", "credenti"], [], []]


def test_equal_scores_stand_by_id_descending_after_rounding() -> None:
    scores = np.array([0.12344, 0.12336, 0.5, 0.1234])
    assert rank_documents(["b", "a", "d", "c"], scores, depth=3, decimals=4) == [
        ("d", 0.5),
        ("c", 0.1234),
        ("b", 0.1234),
    ]


def test_only_scores_above_the_bound_are_results() -> None:
    scores = np.array([0.0, 0.2, 0.00001, -1.0])
    assert rank_documents(["a", "b", "c", "d"], scores, depth=9, decimals=3, above=0.0) == [
        ("b", 0.2)
    ]
    assert len(rank_documents(["a", "b", "c", "d"], scores, depth=9, decimals=3)) == 4


def test_minus_zero_is_written_as_zero() -> None:
    [(_, score)] = rank_documents(["a"], np.array([-1e-9]), depth=1)
    assert str(score) == "0.0"


@pytest.mark.parametrize("bad", [[1.0], [1.0, float("nan")], [float("inf"), 0.0]])
def test_scores_that_are_no_ranking_are_refused(bad: list[float]) -> None:
    with pytest.raises(DataError):
        rank_documents(["a", "b"], np.array(bad), depth=2)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=30), st.integers(1, 40))
def test_a_list_is_the_sorted_scores_cut_at_the_depth(tenths: list[int], depth: int) -> None:
    ids = [f"d{i}" for i in range(len(tenths))]
    rows = sorted(zip((t / 10 for t in tenths), ids, strict=True), reverse=True)[:depth]
    assert rank_documents(ids, np.array(tenths) / 10, depth=depth) == [
        (name, s) for s, name in rows
    ]
