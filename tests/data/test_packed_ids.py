"""Packed ids are the strings they stand for: the same order, the same codes, the same text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.packed_ids import (
    WIDEST,
    Ids,
    Repeated,
    code_together,
    concatenate,
    pack,
    union,
)

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


LONG = st.text(alphabet="01~", min_size=12, max_size=60)


@given(st.lists(st.one_of(LONG, st.uuids().map(str), st.integers(0, 10**30).map(str)), min_size=1))
def test_codes_of_long_ids_sort_as_bytes_do(names: list[str]) -> None:
    codes, distinct = packed(names).factorize()
    assert list(distinct) == sorted(set(names), key=str.encode)
    assert [distinct[code] for code in codes.tolist()] == names


@given(NAMES, NAMES)
def test_ids_coded_together_are_as_if_coded_alone(one: list[str], two: list[str]) -> None:
    for names, coded in zip((one, two), code_together([packed(one), packed(two)]), strict=True):
        codes, distinct = coded.factorize()
        alone_codes, alone = packed(names).factorize()
        assert codes.tolist() == alone_codes.tolist()
        assert list(distinct) == list(alone)
        assert [coded[n] for n in range(len(coded))] == names
        assert list(coded[1:]) == names[1:]
        assert list(distinct[1:]) == list(alone[1:])
        assert distinct[0] == alone[0]
        assert list(distinct.take(np.array([0]))) == list(alone[:1])


@given(NAMES, NAMES, NAMES)
def test_parts_of_one_table_are_joined_as_others_are(
    one: list[str], two: list[str], three: list[str]
) -> None:
    coded = code_together([packed(names) for names in (one, two, three)])
    parts = [ids.factorize()[1] for ids in coded]
    for chosen in (parts, parts[:2]):
        plain = [packed(list(part)) for part in chosen]
        together, codes = union(chosen)
        expected, wanted = union(plain)
        assert list(together) == list(expected)
        assert [c.tolist() for c in codes] == [c.tolist() for c in wanted]


@given(NAMES)
def test_repeated_ids_read_back(names: list[str]) -> None:
    doubled = [name for name in names for _ in range(2)]
    ids = Repeated.joined([Repeated.of(packed(doubled)), Repeated.of(packed(names))])
    assert list(ids) == [*doubled, *names]
    assert len(ids) == 3 * len(names)
    assert ids[0] == names[0]
    assert list(ids[1:]) == [*doubled, *names][1:]
    assert len(ids.heads) <= 2 * len(names)
