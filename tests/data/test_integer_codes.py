"""Codes are what sorting one by one gives, however wide the values are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.integer_codes import dense, rank_rows

WIDTHS = st.sampled_from([1, 3, 8, 40, 62])
VALUES = WIDTHS.flatmap(lambda bits: st.lists(st.integers(-(2**bits), 2**bits), max_size=40))


@given(VALUES)
def test_dense_codes(values: list[int]) -> None:
    codes, first = dense(np.array(values, dtype=np.int64))
    distinct = sorted(set(values))
    assert codes.tolist() == [distinct.index(value) for value in values]
    assert [values[n] for n in first.tolist()] == distinct


@given(st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 3), min_size=1, max_size=30))
def test_codes_of_words(rows: list[tuple[int, int, int]]) -> None:
    """Few rows differ in nearly every bit, so that three words stay three."""
    rows = [*rows, *((a, b, 0) for a, b, _ in rows), *((a, 0, 0) for a, _, _ in rows)]
    codes, first = rank_rows(np.array(rows, dtype=np.uint64).T.copy())
    distinct = sorted(set(rows))
    assert codes.tolist() == [distinct.index(row) for row in rows]
    assert [rows[n] for n in first.tolist()] == distinct
