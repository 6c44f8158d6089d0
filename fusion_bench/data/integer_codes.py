"""Codes for what sorts as integers: the only place where ids are compared, and they are words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray

__all__ = ["PIECE", "WORD", "Words", "dense", "rank_rows"]

Words = NDArray[np.uint64]
#: Bits of a word.
WORD = 64
#: Values worked on at a time: they fit a core's cache.
PIECE = 1 << 15


def dense(values: NDArray[np.int64] | NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Codes 0, 1, 2 … in the order of the values, and where some instance of each stands.

    Args:
        values: Shape (n,): integers of 64 bits.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values), dtype=np.int64), np.zeros(1, dtype=np.int64)
    if (int(high) - int(low)).bit_length() + (len(values) - 1).bit_length() <= WORD:
        ordered, order = _sorted((values - low).view(np.uint64))
        return _numbered(order, _differs(ordered))
    order = np.argsort(values)
    return _numbered(order, _differs(values[order]))


def _sorted(values: Words) -> tuple[Words, IntArray]:
    """The values in order, which overwrites them, and where each stood.

    The place rides in the low bits, so that plain integers are sorted: several times as fast as
    sorting indices. Both have to fit one word.
    """
    places = np.uint64((len(values) - 1).bit_length())
    values <<= places
    values |= np.arange(len(values), dtype=np.uint64)
    values.sort()
    order = values & ((np.uint64(1) << places) - np.uint64(1))
    values >>= places
    return values, order.view(np.int64)


def _differs(ordered: NDArray[np.generic]) -> NDArray[np.bool_]:
    """(n,): whether each value differs from the one before; the first does."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _numbered(order: IntArray, new: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Codes by place, and some place of each, where ``new`` marks the first of equals in order."""
    numbers = np.cumsum(new, dtype=np.int64)
    numbers -= 1
    codes = np.empty_like(numbers)
    codes[order] = numbers
    return codes, order[new]


def rank_rows(words: Words) -> tuple[IntArray, IntArray]:
    """As :func:`dense`, for values of several words each.

    Args:
        words: Shape (W, n): word w of each value, the first weighing most.
    """
    keys = _keys(words)
    size = int(keys[0].max(initial=0)).bit_length() + (len(keys[0]) - 1).bit_length()
    if len(keys) == 1 and size <= WORD:
        return dense(keys[0])
    top, order = _sorted(keys[0] >> np.uint64(max(size - WORD, 0)))
    new = _differs(top)
    group = np.cumsum(new) - 1
    apart = np.any([_differs(key[order]) for key in keys], axis=0)
    unsettled = np.zeros(int(group[-1]) + 1, dtype=bool)
    unsettled[group[apart & ~new]] = True  # equal as far as they were sorted, yet not the same
    if unsettled.any():
        rows = np.flatnonzero(unsettled[group])
        places = order[rows]
        order[rows] = places[np.lexsort([*(key[places] for key in keys[::-1]), group[rows]])]
        apart = np.any([_differs(key[order]) for key in keys], axis=0)
    return _numbered(order, apart)


def _keys(words: Words) -> list[Words]:
    """The same order in fewer words: only the bits that tell values apart, in their order.

    Most bits of an id are the same in all of them (a prefix, the upper half of a digit), and what
    never differs decides no comparison.
    """
    keys: list[list[tuple[int, int]]] = [[]]
    room = WORD
    for w, mask in enumerate(_telling(words)):
        while mask:
            part = _upper(mask, room)
            keys[-1].append((w, part))
            room -= part.bit_count()
            mask ^= part
            if room == 0:
                keys.append([])
                room = WORD
    return [_joined(words, parts) for parts in keys if parts or parts is keys[0]]


def _upper(mask: int, most: int) -> int:
    """The highest bits of a mask, so many at most."""
    while mask.bit_count() > most:
        mask &= mask - 1
    return mask


def _telling(words: Words) -> list[int]:
    """The bits of each word that differ somewhere, without those that a bit above them settles."""
    masks = []
    for word in words:
        pieces = [word[at : at + PIECE] for at in range(0, len(word), PIECE)]
        mask = _varying(pieces)
        for step in (1, 2):  # the bit so far above is always the same one, or always the other
            if mask & (mask >> step):
                above = _varying(piece ^ (piece >> np.uint64(step)) for piece in pieces)
                mask &= above | ~(((1 << WORD) - 1) >> step)
        masks.append(mask)
    return masks


def _varying(pieces: Iterable[Words]) -> int:
    """The bits that are set in some value and not in another."""
    low, high = (1 << WORD) - 1, 0
    for piece in pieces:
        low &= int(np.bitwise_and.reduce(piece))
        high |= int(np.bitwise_or.reduce(piece))
    return low ^ high


def _joined(words: Words, parts: Sequence[tuple[int, int]]) -> Words:
    """These bits of these words, one after another; worked on in pieces that fit a cache."""
    key = np.zeros(words.shape[1], dtype=np.uint64)
    steps = [(w, mask, list(_moves(mask))) for w, mask in parts]
    for at in range(0, len(key), PIECE):
        total = key[at : at + PIECE]
        for w, mask, moves in steps:
            total <<= np.uint64(mask.bit_count())
            total |= _squeezed(words[w, at : at + PIECE], mask, moves)
    return key


def _squeezed(word: Words, mask: int, moves: Sequence[tuple[int, int]]) -> Words:
    """The bits of the mask, moved together at the low end."""
    found: Words = word & np.uint64(mask)
    for moving, step in moves:
        part = found & np.uint64(moving)
        found ^= part
        part >>= np.uint64(step)
        found |= part
    return found


def _moves(mask: int) -> Iterator[tuple[int, int]]:
    """Which bits move down by 1, 2, 4 … so that those of the mask stand together in the end.

    Warren, Hacker's Delight, 7-4: a bit moves by as many places as there are zeros below it, and
    each step moves those with that power of two in their count.
    """
    everything = (1 << WORD) - 1
    zeros = (~mask << 1) & everything
    for power in range(6):
        odd = zeros
        for shift in (1, 2, 4, 8, 16, 32):
            odd ^= (odd << shift) & everything
        moving = odd & mask
        if moving:
            yield moving, 1 << power
        mask = (mask ^ moving) | (moving >> (1 << power))
        zeros &= ~odd
