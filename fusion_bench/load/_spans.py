"""Columns of a text that nobody has cut into strings yet: where each cell starts and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.ids import BYTES, WIDEST, Ids, Words
from fusion_bench.order import POWERS, FloatArray, IntArray

__all__ = ["Spans", "split_blocks"]

#: Bytes around the text, so that whole words can be read at both ends.
MARGIN = WIDEST + BYTES
NEWLINE, BLANK, TAB, MINUS, DOT = b"\n \t-."
#: What separates the columns of a line for Python, beyond what ASCII has.
WIDE_BLANK = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
#: Digits that a 64-bit integer always holds.
MOST_DIGITS = 18
#: Whole numbers up to this one are exact in float64.
EXACT = 2**53
#: Bytes worked on at a time: what makes of it fits a core's cache.
BLOCK = 1 << 18


def _all(byte: int) -> np.uint64:
    """A word of eight equal bytes."""
    return np.uint64(int.from_bytes(bytes([byte]) * BYTES, "big"))


ONES, HIGH, DOTS, ZEROS, SIXES = _all(1), _all(0x80), _all(DOT), _all(ord("0")), _all(6)
LOW_HALF, HIGH_HALF = _all(0x0F), _all(0xF0)
#: The last n bytes of a word.
KEPT = np.array([(1 << 64) - (1 << 8 * (BYTES - n)) for n in range(BYTES + 1)], dtype=np.uint64)
TENS = np.array([10**n for n in range(BYTES + 1)], dtype=np.uint64)


class Spans(Sequence[str]):
    """One column: cells of a text.

    Attributes:
        data: The text's bytes and a margin around them.
        starts: Shape (n,): where each cell starts.
        ends: Shape (n,): where it ends.
    """

    def __init__(self, data: NDArray[np.uint8], starts: IntArray, ends: IntArray) -> None:
        self.data, self.starts, self.ends = data, starts, ends

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Spans: ...
    def __getitem__(self, index: int | slice) -> str | Spans:
        if isinstance(index, slice):
            return Spans(self.data, self.starts[index], self.ends[index])
        return self.data[self.starts[index] : self.ends[index]].tobytes().decode()

    def ids(self) -> Ids | None:
        """The cells as packed ids; None if one is too long for that."""
        widths = self.ends - self.starts
        widest = int(widths.max(initial=1))
        if widest > WIDEST:
            return None
        count = -(-widest // BYTES)
        words = np.empty((count, len(self)), dtype=np.uint64)
        for w in range(count):
            unused = _unused(widths, w)
            words[w] = self._words(self.starts + BYTES * w, ">u8") >> unused << unused
        return Ids(words)

    def _words(self, starts: IntArray, order: str) -> Words:
        """The eight bytes at each place."""
        every = np.ndarray((len(self.data) - BYTES + 1,), order, self.data, strides=(1,))
        return every[starts].astype(np.uint64, copy=False)

    def integers(self) -> IntArray | None:
        """The cells as whole numbers; None unless all of them are plain ones."""
        whole, minus, decimals, plain = self._decimals()
        pointed = self.data[self.ends - 1] == DOT  # "5." is a number, but not a whole one
        if not plain.all() or decimals.any() or pointed.any():
            return None
        return np.where(minus, -whole, whole)

    def floats(self) -> FloatArray | None:
        """The cells as ``float`` reads them, to the last bit; None if it refuses one."""
        if (short := self._short()) is not None:
            return short
        whole, minus, decimals, plain = self._decimals()
        # Both are exact, so that dividing them rounds once, which is the right rounding.
        exact = plain & (whole <= EXACT) & (decimals < len(POWERS))
        value: FloatArray = whole / POWERS[np.where(exact, decimals, 0)]
        np.negative(value, out=value, where=minus)
        rest = np.flatnonzero(~exact)
        try:
            value[rest] = [float(self[row]) for row in rest.tolist()]
        except ValueError:
            return None
        return value

    def _short(self) -> FloatArray | None:
        """The cells as numbers if all are of eight digits at most, equally many behind the point.

        Most files are written so, and then nothing depends on the row but where its cell starts.
        """
        _, point, after = self[0].partition(".")
        places = len(after)
        before_point = self.ends - (places + len(point))
        digits = before_point - self.starts
        if digits.min() < 1 or digits.max() > BYTES - places:
            return None
        if point and (self.data[before_point] != DOT).any():
            return None
        kept = KEPT[digits]
        text = (self._words(before_point - BYTES, "<u8") & kept) | (ZEROS & ~kept)
        if places:
            behind = self._words(self.ends - BYTES, "<u8") & KEPT[places]
            text = (text >> np.uint64(8 * places)) | behind
        if not _only_digits(text).all():
            return None
        return np.asarray(_number(text) / POWERS[places], dtype=np.float64)

    def _decimals(self) -> tuple[IntArray, NDArray[np.bool_], IntArray, NDArray[np.bool_]]:
        """Each cell as ``-digits.digits``.

        Returns:
            Its digits as a whole number, whether a minus stands before them, how many stand behind
            the point, and whether the cell is of this kind at all; where not, the rest says
            nothing.
        """
        minus = self.data[self.starts] == MINUS
        starts = self.starts + minus
        widths = self.ends - starts
        plain = widths <= 3 * BYTES
        whole = np.zeros(len(self), dtype=np.uint64)
        points = np.zeros(len(self), dtype=np.int64)
        decimals = np.zeros(len(self), dtype=np.int64)
        for w in range(min(-(-int(widths.max(initial=0)) // BYTES), 3)):
            word = self._words(starts + BYTES * w, "<u8")
            inside = np.clip(widths - BYTES * w, 0, BYTES)
            value, point, good = _digits(word, inside)
            has_point = point < inside
            plain &= good
            whole = whole * TENS[inside - has_point] + value
            points += has_point
            decimals += np.where(has_point, widths - BYTES * w - point - 1, 0)
        digits = widths - points
        plain &= (points <= 1) & (digits >= 1) & (digits <= MOST_DIGITS)
        return whole.astype(np.int64), minus, decimals, plain


def _unused(widths: IntArray, word: int) -> Words:
    """How many bits of a word stand behind a cell of that width."""
    bits: Words = (8 * (BYTES - np.clip(widths - BYTES * word, 0, BYTES))).astype(np.uint64)
    return bits


def _digits(word: Words, inside: IntArray) -> tuple[Words, IntArray, NDArray[np.bool_]]:
    """Eight characters at once, the first in the lowest byte, of which ``inside`` count.

    Returns:
        The number that the digits make when the first point is left out, where that point stands
        (``inside`` or more = nowhere), and whether all the others are digits.
    """
    other = word ^ DOTS
    found = (other - ONES) & ~other & HIGH  # the lowest bit is right, those above it may not be
    lowest = found & (~found + np.uint64(1))
    before = np.where(lowest == 0, ~np.uint64(0), (lowest >> np.uint64(7)) - np.uint64(1))
    point = np.bitwise_count(before).astype(np.int64) >> 3
    has_point = point < inside
    joined = np.where(has_point, (word & before) | (word >> np.uint64(8) & ~before), word)
    shift = (8 * (BYTES - inside + has_point)).astype(np.uint64)
    # To the right end, with zeros before; a shift by all 64 bits gives 0 in numpy.
    text = joined << shift | ZEROS >> (np.uint64(64) - shift)
    return _number(text), point, _only_digits(text)


def _only_digits(text: Words) -> NDArray[np.bool_]:
    """Whether all eight characters of each word are digits."""
    plain: NDArray[np.bool_] = (text & HIGH_HALF) == ZEROS
    plain &= ((text + SIXES) & HIGH_HALF) == ZEROS
    return plain


def _number(text: Words) -> Words:
    """The number that eight digits make, the first of them in the lowest byte."""
    # Pairs, fours, then all eight: each step adds ten, a hundred, ten thousand times the left one.
    pairs = (text & LOW_HALF) * np.uint64((10 << 8) + 1) >> np.uint64(8)
    fours = (pairs & np.uint64(0x00FF00FF00FF00FF)) * np.uint64((100 << 16) + 1) >> np.uint64(16)
    return (fours & np.uint64(0x0000FFFF0000FFFF)) * np.uint64((10000 << 32) + 1) >> np.uint64(32)


def split_blocks(data: bytes, columns: int) -> Iterator[list[Spans] | None]:
    """The columns of a text where every line has so many, one blank or tab between two.

    Yields:
        Block after block of lines, small enough for a core's cache, one entry a column; None, and
        then no more, where a line is anything else: blanks in a row or at an end, an empty line,
        any other white space, bytes that are no UTF-8.
    """
    if not data or not _only_plain_blanks(data):
        yield None
        return
    at = 0
    while at < len(data):
        end = len(data)
        if end - at > BLOCK:
            end = data.rfind(b"\n", at, at + BLOCK) + 1
        found = _split(data[at:end], columns) if end else None
        yield found
        if found is None:
            return
        at = end


def _split(data: bytes, columns: int) -> list[Spans] | None:
    """The columns of one block of lines, or None."""
    size = len(data)
    padded = np.zeros(size + 2 * MARGIN, dtype=np.uint8)
    padded[MARGIN : MARGIN + size] = np.frombuffer(data, dtype=np.uint8)
    if data[-1] != NEWLINE:  # the last line of a file may go without
        padded[MARGIN + size] = NEWLINE
        size += 1
    text = padded[MARGIN : MARGIN + size]
    broken = text <= BLANK
    if broken[0] or (broken[1:] & broken[:-1]).any():
        return None  # an empty cell
    breaks = np.flatnonzero(broken)
    lines, rest = divmod(len(breaks), columns)
    blanks = np.count_nonzero(text == BLANK) + np.count_nonzero(text == TAB)
    if rest or blanks != lines * (columns - 1):
        return None
    ends = np.ascontiguousarray(breaks.reshape(lines, columns).T)
    if (text[ends[-1]] != NEWLINE).any():
        return None
    ends += MARGIN
    starts = np.empty_like(ends)
    np.add(ends[:-1], 1, out=starts[1:])
    starts[0, 0] = MARGIN
    np.add(ends[-1, :-1], 1, out=starts[0, 1:])
    return [Spans(padded, start, end) for start, end in zip(starts, ends, strict=True)]


def _only_plain_blanks(data: bytes) -> bool:
    """Whether the text is UTF-8 without the white space that only Unicode has."""
    if data.isascii():
        return True
    try:
        return WIDE_BLANK.search(data.decode()) is None
    except UnicodeDecodeError:
        return False
