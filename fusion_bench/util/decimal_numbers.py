"""The one spelling of numbers that files may use: ASCII decimal digits.

A number is ``[+-]digits[.digits][e[+-]digits]``; the digits before or behind the point may be
missing. Python's other spellings are none: ``1_000``, ``１２``, ``0x10``, ``nan``, blanks around.
"""

from __future__ import annotations

import re
from typing import Final

DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
#: A whole number, also as pandas and spreadsheets write it where a column has gaps: ``2.0``.
WHOLE: Final = re.compile(r"([+-]?\d+)(\.0*)?", re.ASCII)
#: Greatest whole number that a column of 64 bits holds; the least is its negative.
GREATEST: Final = 2**63 - 1
#: Digits of a whole number that are read at all: Python takes long over thousands of them.
MOST_DIGITS: Final = 400
#: Every character of a number. A text of these alone is one, or Python refuses it as well.
_CHARACTERS: Final = frozenset("0123456789+-.eE")


def is_decimal(text: str) -> bool:
    """Whether a text is a number."""
    return DECIMAL.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of at most 64 bits, also such as 2.0."""
    try:
        parse_whole(text)
    except (ValueError, OverflowError):
        return False
    return True


def has_only_digits(text: str) -> bool:
    """Whether a text consists of characters of numbers.

    Then Python's ``float`` accepts exactly what :func:`is_decimal` does. Joined texts can be asked
    together.
    """
    return _CHARACTERS.issuperset(text)


def parse_whole(text: str) -> int:
    """The whole number that a text is.

    Raises:
        ValueError: It is none.
        OverflowError: It does not fit into 64 bits.
    """
    match = WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("not a whole number")
    if len(match[1]) > MOST_DIGITS or abs(number := int(match[1])) > GREATEST:
        raise OverflowError(f"beyond ±{GREATEST}")
    return number
