"""Packed ids are the strings they stand for: the same order, the same codes, the same text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.ids import WIDEST, Ids, concatenate, pack, union

NAMES = st.lists(st.text(alphabet="aé文🙂09 ,#\x7f", min_size=1, max_size=12), min_size=1)


def packed(names: list[str]) -> Ids:
    ids = pack(names)
    assert ids is not None
    return ids


@given(NAMES)
def test_packed_ids_read_back(names: list[str]) -> None:
    ids = packed(names)
    assert ids == names
    assert [ids[n] for n in range(len(ids))] == names
    assert list(ids[1:]) == names[1:]
    assert ids.joined() == "\0".join(names).encode()


@given(NAMES)
def test_codes_sort_as_bytes_do(names: list[str]) -> None:
    codes, distinct = packed(names).factorize()
    assert list(distinct) == sorted(set(names), key=str.encode)
    assert [distinct[code] for code in codes.tolist()] == names


@given(NAMES, NAMES)
def test_a_union_knows_each_tables_codes(one: list[str], two: list[str]) -> None:
    tables = [packed(names).factorize()[1] for names in (one, two)]
    together, codes = union(tables)
    assert list(together) == sorted({*one, *two}, key=str.encode)
    for table, own in zip(tables, codes, strict=True):
        assert [together[code] for code in own.tolist()] == list(table)


def test_what_cannot_be_packed_stays_as_it_is() -> None:
    assert pack(["a\0"]) is None
    assert pack(["x" * (WIDEST + 1)]) is None
    assert packed(["x" * WIDEST]) == ["x" * WIDEST]
    ids = packed(["a", "b"])
    assert pack(ids) is ids


def test_small_things() -> None:
    ids = concatenate([packed(["a", "a"]), packed(["longer than 8"])])
    assert ids == ("a", "a", "longer than 8")
    assert ids != ("a",)
    assert ids != 1
    assert repr(ids[:1]) == "Ids(['a'])"
    assert ids.changes().tolist() == [True, False, True]
    with pytest.raises(ValueError, match="read-only"):
        ids.words[0, 0] = np.uint64(0)
