from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.data.grouped_rows import (
    IdVocabulary,
    count_within_queries,
    encode_ids,
    find_repeats,
    group_rows,
    hash_table,
    number_by_appearance,
    query_of_rows,
    query_slices,
    refuse_duplicates,
    refuse_ragged,
    to_offsets,
)
from fusion_bench.errors import DataError


def test_group_keeps_the_order_of_queries_and_of_their_rows() -> None:
    grouped = group_rows(["b", "a", "b"], ["x", "é", "D"], "row")
    assert grouped.queries == ("b", "a")
    assert grouped.offsets.tolist() == [0, 2, 3]
    assert [grouped.original_row(n) for n in range(3)] == [0, 2, 1]
    assert tuple(grouped.vocabulary) == ("D", "x", "é")
    assert grouped.documents.tolist() == [1, 0, 2]


def test_the_vocabulary_is_sorted_by_bytes() -> None:
    names = ["z", "é", "𝒳", "日", "Z", "a10", "a9", "\uffee"]
    found = group_rows(["q"] * len(names), names, "row").vocabulary
    assert list(found) == sorted(names, key=str.encode)


def test_group_refuses_nothing_and_empty_ids() -> None:
    with pytest.raises(DataError, match="no judgement in"):
        group_rows([], [], "judgement")
    with pytest.raises(DataError, match="empty query id") as caught:
        group_rows(["q", ""], ["a", "b"], "row")
    assert caught.value.row == 1
    with pytest.raises(DataError, match="empty document id") as caught:
        group_rows(["q", "q", "q"], ["a", "b", ""], "row")
    assert caught.value.row == 2
    with pytest.raises(DataError, match="holds NUL") as caught:
        group_rows(["q", "q", "q"], ["a", "b\0", "c"], "row")
    assert caught.value.row == 1


def test_duplicates_are_per_query_and_name_the_row() -> None:
    grouped = group_rows(["q", "r", "q", "q"], ["a", "a", "b", "a"], "row")
    assert find_repeats(grouped, np.arange(4)).tolist() == [False, False, True, False]
    assert find_repeats(grouped, np.array([2, 1, 0, 3])).tolist() == [False, False, True, False]
    with pytest.raises(DataError, match="'a' stands twice") as caught:
        refuse_duplicates(grouped)
    assert caught.value.row == 3
    refuse_duplicates(group_rows(["q", "r"], ["a", "a"], "row"))


def test_columns_must_be_equally_long() -> None:
    refuse_ragged(queries=[1, 2], ranks=None, scores=[1, 2])
    with pytest.raises(DataError, match="2 queries, 3 scores"):
        refuse_ragged(queries=[1, 2], scores=[1, 2, 3])


def test_small_helpers() -> None:
    codes, names = number_by_appearance(["b", "a", "b"])
    assert (codes.tolist(), names) == ([0, 1, 0], ("b", "a"))
    offsets = to_offsets(np.array([2, 0, 1]))
    assert offsets.tolist() == [0, 2, 2, 3]
    assert query_of_rows(offsets).tolist() == [0, 0, 2]
    assert count_within_queries(offsets).tolist() == [1, 2, 1]
    assert list(query_slices(("a", "b", "c"), offsets)) == [
        ("a", slice(0, 2)),
        ("b", slice(2, 2)),
        ("c", slice(2, 3)),
    ]


def names(*ids: str) -> IdVocabulary:
    return encode_ids(ids).vocabulary


def test_digest_sees_contents_and_not_the_order_of_queries() -> None:
    offsets, swapped = np.array([0, 2, 3]), np.array([0, 1, 3])
    values, moved = np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])
    base = hash_table(("a", "b"), offsets, values, names("x", "y"))
    assert hash_table(("b", "a"), swapped, moved, names("x", "y")) == base
    others = [
        hash_table(("a", "c"), offsets, values, names("x", "y")),
        hash_table(("a", "b"), swapped, values, names("x", "y")),
        hash_table(("a", "b"), offsets, values + 1, names("x", "y")),
        hash_table(("a", "b"), offsets, values.astype(np.int64), names("x", "y")),
        hash_table(("a", "b"), offsets, values, names("x", "z")),
    ]
    assert len({base, *others}) == 6
    assert len(base) == 64
