"""One spelling of numbers."""

from __future__ import annotations

import pytest

from fusion_bench.util.formatting import (
    GREATEST,
    has_only_digits,
    is_decimal,
    is_whole,
    parse_whole,
)


@pytest.mark.parametrize(
    "text", ["0", "-0", "+5", "05", ".5", "5.", "1e3", "1E-3", "-1.5e+10", "18446744073709551616"]
)
def test_numbers(text: str) -> None:
    assert is_decimal(text)
    assert has_only_digits(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "-",
            "e5",
            "1e",
            "1e+",
            "1_0",
            "１",
            "٣",
            "0x1",
            "0b1",
            " 1",
            "1 ",
            "1\n",
            "1,5",
        ),
        *("1.2.3", "nan", "inf", "+-1", "1.e.5", "1j", "½", "1\0"),
    ],
)
def test_other_texts(text: str) -> None:
    assert not is_decimal(text)
    assert not is_whole(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("-07", -7), ("+2.0", 2), ("3.", 3), ("4.00", 4), (str(GREATEST), GREATEST)],
)
def test_whole_numbers(text: str, number: int) -> None:
    assert is_whole(text)
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e0", "1.0e1", ".0"])
def test_other_numbers_are_not_whole(text: str) -> None:
    assert is_decimal(text)
    with pytest.raises(ValueError, match="not a whole number"):
        parse_whole(text)


@pytest.mark.parametrize("text", [str(GREATEST + 1), str(-(2**64)), "9" * 5000])
def test_whole_numbers_fit_into_64_bits(text: str) -> None:
    assert not is_whole(text)
    with pytest.raises(OverflowError):
        parse_whole(text)
