"""Ids are sorted by bytes and encoded, whatever is in them and however long they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data import grouped_rows
from fusion_bench.data.grouped_rows import (
    IdVocabulary,
    encode_arrow,
    encode_ids,
    unite_vocabularies,
)
from fusion_bench.errors import DataError

LETTERS = st.sampled_from(["ab", "aé文🙂", "0123456789", "ab\0"])
NAMES = st.builds(
    lambda prefix, names: [prefix + name for name in names],
    st.text("x/", max_size=20),
    LETTERS.flatmap(lambda letters: st.lists(st.text(letters, max_size=30), min_size=1)),
)
QUICK = settings(max_examples=50, deadline=None)


@QUICK
@given(NAMES, st.booleans())
def test_a_column_reads_back(names: list[str], by_arrow: bool) -> None:
    names = [f"{name}." for name in names]
    column = encode_arrow([pa.array(names, pa.large_string())]) if by_arrow else encode_ids(names)
    vocabulary = column.vocabulary
    assert [vocabulary[int(code)] for code in column.codes] == names
    assert vocabulary.decode(column.codes) == tuple(names)
    assert list(vocabulary) == sorted(set(names), key=str.encode)


@QUICK
@given(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from(["shared", "few", "many"]))
def test_vocabularies_are_united(lists: list[list[str]], how: str) -> None:
    parts = [encode_ids(names).vocabulary for names in lists]
    if how == "shared":  # parts of one table
        whole = encode_ids([name for names in lists for name in names]).vocabulary
        parts = [
            IdVocabulary(whole.data, whole.limits, np.array([whole.index(name) for name in part]))
            for part in parts
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_rows, "MANY_IDS", 0 if how == "many" else 1000)
        union, codes = unite_vocabularies(parts)
    assert list(union) == sorted({name for names in lists for name in names})
    for part, code in zip(parts, codes, strict=True):
        assert [union[int(n)] for n in code] == list(part)


def test_unused_ids_are_dropped() -> None:
    column = encode_ids(["c", "a", "b"])
    part = type(column)(np.array([2, 0, 2]), column.vocabulary)
    assert tuple(encode_ids(part).vocabulary) == ("a", "c")
    assert encode_ids(part).codes.tolist() == [1, 0, 1]
    assert encode_ids(column) is column


def test_a_vocabulary_is_a_sequence_of_texts() -> None:
    vocabulary = encode_ids(["b", "é", "a"]).vocabulary
    assert (vocabulary.index("b"), "é" in vocabulary, "x" in vocabulary) == (1, True, False)
    assert (vocabulary[-1], len(vocabulary)) == ("é", 3)
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.limits[0] = 1


def test_whole_numbers_are_ids_too() -> None:
    column = encode_ids([10, np.int64(9), 10])  # type: ignore[list-item] # as data frames have them
    assert list(column.vocabulary) == ["10", "9"]
    assert column.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, "1"], "'1' is given both as a number and as text: make all ids text"),
        ([1.0, 2.0], "neither text nor a whole number"),
        (["a", None], "id None is neither"),
        ([True], "id True is neither"),
    ],
)
def test_other_ids_are_refused(ids: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode_ids(ids)
