"""Columns of numbers, whatever they come from."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from fusion_bench.data.read_options import GREATEST, parse_scores, parse_whole_numbers
from fusion_bench.errors import DataError


@pytest.mark.parametrize(
    "values",
    [
        ["1.5", "-2", "3e2"],
        [1.5, "-2", 300],
        [Decimal("1.5"), np.float32(-2), np.int16(300)],
        (1.5, -2, 300),
        np.array([1.5, -2, 300], dtype=np.float16),
        np.array(["1.5", "-2", "3e2"]),
        np.array([1.5, "-2", 300], dtype=object),
    ],
)
def test_scores(values: object) -> None:
    parsed = parse_scores(values)
    assert parsed.tolist() == [1.5, -2.0, 300.0]
    assert parsed.dtype == np.float64


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("1_0", "score '1_0' is not a number: write plain digits, such as 1000 or -1.5e3"),
        ("１", "score '１' is not a number: write plain digits, such as 1000 or -1.5e3"),
        (" 1", "score ' 1' is not a number: write plain digits, such as 1000 or -1.5e3"),
        ("1,5", "score '1,5' is not a number: write a decimal point"),
        ("high", "score 'high' is not a number"),
        ("x" * 500, f"score '{'x' * 59}… is not a number"),
        ("nan", "score nan is not a finite number"),
        ("1e999", "score inf is not a finite number"),
        (10**400, f"score 1{'0' * 59}… is not a finite number"),
        (float("-inf"), "score -inf is not a finite number"),
        (Decimal("NaN"), "score nan is not a finite number"),
        (True, "score True is not a number"),
        (np.True_, "score np.True_ is not a number"),
        (b"1", "score b'1' is not a number"),
        (None, "score None is not a number"),
        ([1], "score [1] is not a number"),
        (1j, "score 1j is not a number"),
    ],
)
def test_the_first_that_is_no_score_is_named(value: object, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_scores([1.0, "2", value, "x"])
    assert (str(caught.value), caught.value.row) == (problem, 2)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_an_array_is_checked_as_well(kind: type[np.generic]) -> None:
    with pytest.raises(DataError, match="score nan") as caught:
        parse_scores(np.array([1, np.nan, np.inf], dtype=kind))
    assert caught.value.row == 1
    with pytest.raises(DataError, match="is not a number"):
        parse_scores(np.array([True, False]))


@pytest.mark.parametrize(
    "values",
    [
        ["1", "-2.0", "+3."],
        [1, -2.0, np.uint8(3)],
        [Decimal(1), np.float32(-2), "3"],
        np.array([1, -2, 3], dtype=np.int8),
        np.array([1.0, -2.0, 3.0]),
    ],
)
def test_whole_numbers(values: object) -> None:
    parsed = parse_whole_numbers(values, "grade")
    assert parsed.tolist() == [1, -2, 3]
    assert parsed.dtype == np.int64


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.5],
        ["1", "1.5"],
        ["1", "1e0"],
        [1, float("nan")],
        [1, float("inf")],
        [1, True],
        [1, None],
        [1, b"1"],
        [1, Decimal("1.5")],
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
    ],
)
def test_what_is_not_whole_is_named(values: object) -> None:
    with pytest.raises(DataError, match=r"rank .* whole") as caught:
        parse_whole_numbers(values, "rank")
    assert caught.value.row == 1


@pytest.mark.parametrize(
    "value", [GREATEST + 1, -GREATEST - 1, str(GREATEST + 1), 10**400, "9" * 999, 1e300]
)
def test_beyond_2_to_the_53_a_float_could_not_hold_it(value: object) -> None:
    with pytest.raises(DataError, match=r"grade .* is beyond ±2\^53") as caught:
        parse_whole_numbers([GREATEST, value], "grade")
    assert caught.value.row == 1
    assert parse_whole_numbers([GREATEST, -GREATEST], "grade").tolist() == [GREATEST, -GREATEST]


@pytest.mark.parametrize("kind", [np.uint64, np.float64])
def test_an_array_may_hold_more_than_2_to_the_53(kind: type[np.generic]) -> None:
    with pytest.raises(DataError, match=r"grade .* is beyond ±2\^53"):
        parse_whole_numbers(np.array([1, 2**63], dtype=kind), "grade")
