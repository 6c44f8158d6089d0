"""Ids are sorted by bytes and encoded, whatever is in them and however long they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.ids import (
    IdBytes,
    IdVocabulary,
    encode_ids,
    sort_by_bytes,
    unite_vocabularies,
)

LETTERS = st.sampled_from(["ab", "aé文🙂", "0123456789", "ab\0"])
NAMES = st.builds(
    lambda prefix, names: [prefix + name for name in names],
    st.text("x/", max_size=20),
    LETTERS.flatmap(lambda letters: st.lists(st.text(letters, max_size=30), min_size=1)),
)
QUICK = settings(max_examples=150, deadline=None)


@QUICK
@given(NAMES)
def test_they_are_sorted_as_their_bytes(names: list[str]) -> None:
    order, is_first = sort_by_bytes(IdBytes.from_strings(names))
    expected = sorted(names, key=str.encode)
    assert [names[n] for n in order] == expected
    assert is_first.tolist() == [
        n == 0 or name != expected[n - 1] for n, name in enumerate(expected)
    ]


@QUICK
@given(NAMES)
def test_a_column_reads_back(names: list[str]) -> None:
    column = encode_ids(names)
    vocabulary = column.vocabulary
    assert [vocabulary[int(code)] for code in column.codes] == names
    assert tuple(vocabulary) == tuple(sorted(set(names)))
    assert vocabulary == sorted(set(names))
    assert vocabulary[-1:] == (max(names),)
    joined = b"".join(vocabulary.bytes.join_blocks(b"\0"))
    assert joined == "".join(f"{name}\0" for name in vocabulary).encode()


@QUICK
@given(st.lists(NAMES, min_size=1, max_size=3), st.booleans())
def test_vocabularies_are_united(lists: list[list[str]], shared: bool) -> None:
    parts = [encode_ids(names).vocabulary for names in lists]
    if shared:  # parts of one table
        whole = encode_ids([name for names in lists for name in names]).vocabulary
        places = [np.array([whole.index(name) for name in part]) for part in parts]
        parts = [whole.select(place) for place in places]
    union, codes = unite_vocabularies(parts)
    assert tuple(union) == tuple(sorted({name for names in lists for name in names}))
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
    assert isinstance(vocabulary, IdVocabulary)
    assert (vocabulary.index("b"), "é" in vocabulary, "x" in vocabulary) == (1, True, False)
    assert repr(vocabulary) == "IdVocabulary(['a', 'b', 'é'])"
    assert vocabulary != "ab"
    with pytest.raises(TypeError):
        hash(vocabulary)
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.table.starts[0] = 1
