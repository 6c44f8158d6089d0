"""Columns of a text that nobody has cut into strings yet: where each cell starts and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.integer_codes import WORD, Words
from fusion_bench.data.ordering import POWERS, FloatArray, IntArray
from fusion_bench.data.packed_ids import BYTES, WIDEST, Ids

__all__ = ["Spans", "only_plain_blanks", "split_blocks"]

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
BLOCK = 1 << 19


def _all(byte: int) -> np.uint64:
    """A word of eight equal bytes."""
    return np.uint64(int.from_bytes(bytes([byte]) * BYTES, "big"))


ONES, HIGH, DOTS, ZEROS, SIXES = _all(1), _all(0x80), _all(DOT), _all(ord("0")), _all(6)
LOW_HALF, HIGH_HALF = _all(0x0F), _all(0xF0)
#: The last n bytes of a word.
KEPT = np.array([(1 << 64) - (1 << 8 * (BYTES - n)) for n in range(BYTES + 1)], dtype=np.uint64)
#: [w, n]: the bytes of word w that belong to a cell of n bytes, which stands at its upper end.
FIRST = ~np.array(
    [
        [(1 << 8 * (BYTES - min(max(n - BYTES * w, 0), BYTES))) - 1 for n in range(WIDEST + 1)]
        for w in range(WIDEST // BYTES)
    ],
    dtype=np.uint64,
)
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
        words = self._words(self.starts, -(-widest // BYTES), ">u8")
        for w, word in enumerate(words):
            word &= FIRST[w].take(widths)
        return Ids(words)

    def _words(self, starts: IntArray, count: int, order: str) -> Words:
        """(count, n): that many words from each place; many cost hardly more than one."""
        size = BYTES * count
        every = np.ndarray((len(self.data) - size + 1,), f"V{size}", self.data, strides=(1,))
        words = every[starts].view(order).reshape(len(starts), count)
        return np.ascontiguousarray(words.T, dtype=np.uint64)

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
        before, behind = self._words(self.ends - 2 * BYTES, 2, "<u8")
        text = behind
        if point:
            beside = np.uint64(0xFF << 8 * (BYTES - 1 - places))
            if ((behind & beside) != (DOTS & beside)).any():
                return None
            # What stands before the point moves over it.
            text = (behind << np.uint64(8)) | (before >> np.uint64(WORD - 8))
            text = (text & ~KEPT[places]) | (behind & KEPT[places])
        kept = KEPT.take(digits + places)
        text = (text & kept) | (ZEROS & ~kept)
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
        count = min(-(-int(widths.max(initial=1)) // BYTES) or 1, 3)
        for w, word in enumerate(self._words(starts, count, "<u8")):
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
    if not data or not only_plain_blanks(data):
        yield None
        return
    padded = np.empty(len(data) + 2 * MARGIN + 1, dtype=np.uint8)
    padded[MARGIN : MARGIN + len(data)] = np.frombuffer(data, dtype=np.uint8)
    size = len(data)
    if data[-1] != NEWLINE:  # the last line of a file may go without
        padded[MARGIN + size] = NEWLINE
        size += 1
    at = 0
    while at < size:
        end = size
        if end - at > BLOCK:
            end = data.rfind(b"\n", at, at + BLOCK) + 1
        found = _split(padded[at : end + 2 * MARGIN], columns) if end else None
        yield found
        if found is None:
            return
        at = end


def _split(padded: NDArray[np.uint8], columns: int) -> list[Spans] | None:
    """The columns of one block of lines with a margin around it, or None."""
    text = padded[MARGIN:-MARGIN]
    broken = text <= BLANK
    lines = np.flatnonzero(text == NEWLINE)
    breaks = np.count_nonzero(broken)
    blanks = np.count_nonzero(text == BLANK)
    if blanks + len(lines) < breaks:
        blanks += np.count_nonzero(text == TAB)
    if blanks != len(lines) * (columns - 1) or blanks + len(lines) != breaks:
        return None  # other white space, or too many or too few cells
    mask = _bits(broken)
    if _side_by_side(mask):
        return None  # an empty cell
    ends = _ends(mask, lines, columns)
    if ends is None:
        ends = np.ascontiguousarray(np.flatnonzero(broken).reshape(-1, columns).T)
    if (ends[-1] != lines).any():
        return None
    ends += MARGIN
    starts = np.empty_like(ends)
    np.add(ends[:-1], 1, out=starts[1:])
    starts[0, 0] = MARGIN
    np.add(ends[-1, :-1], 1, out=starts[0, 1:])
    return [Spans(padded, start, end) for start, end in zip(starts, ends, strict=True)]


def _bits(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One bit a flag, the first in the lowest; whole words, and one more to read beyond the end."""
    mask = np.zeros((len(flags) // WORD + 2) * BYTES, dtype=np.uint8)
    packed = np.packbits(flags, bitorder="little")
    mask[: len(packed)] = packed
    return mask


def _side_by_side(mask: NDArray[np.uint8]) -> bool:
    """Whether two neighbours are set, or the first is, which has a break before it."""
    words = mask.view("<u8")
    inside = words & (words >> np.uint64(1))
    across = (words[:-1] >> np.uint64(WORD - 1)) & words[1:]
    return bool(inside.any() or (across & np.uint64(1)).any() or mask[0] & 1)


def _ends(mask: NDArray[np.uint8], lines: IntArray, columns: int) -> NDArray[np.int64] | None:
    """(columns, lines): where each cell ends, from one bit for each byte that ends one.

    Args:
        mask: The bits.
        lines: Where each line ends.
        columns: How many cells a line has.

    Returns:
        None where cells are too long for it: three of them have to fit 49 bits.
    """
    every = np.ndarray((len(mask) // 2 - 3,), "<u8", mask, strides=(2,))
    words = every.astype(np.uint64)  # laid out, from two bytes to two: read several times as fast
    ends = np.empty((columns, len(lines)), dtype=np.int64)
    begin = np.zeros(len(lines), dtype=np.int64)
    np.add(lines[:-1], 1, out=begin[1:])
    for column in range(columns):
        if column % 3 == 0:
            begin = ends[column - 1] + 1 if column else begin
            window = words[begin >> 4]
            window >>= (begin & 15).view(np.uint64)
            if np.bitwise_count(window).min(initial=WORD) < min(3, columns - column):
                return None
        rest = window - np.uint64(1)
        np.add(begin, np.bitwise_count(rest & ~window), out=ends[column])
        window &= rest
    return ends


def only_plain_blanks(data: bytes) -> bool:
    """Whether the text is UTF-8 without the white space that only Unicode has."""
    if data.isascii():
        return True
    try:
        return WIDE_BLANK.search(data.decode()) is None
    except UnicodeDecodeError:
        return False
