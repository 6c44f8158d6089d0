"""Many ids in one array: their UTF-8 bytes as big-endian 64-bit words, padded with zeros.

Words compare as the bytes do, so ids are sorted, compared and counted as integers, and no string
is made until somebody looks at one. Padding cannot be told from a null byte, so an id that has one
is not packed, nor is one longer than :data:`WIDEST`; such ids stay strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.order import IntArray, freeze

__all__ = ["WIDEST", "Ids", "Words", "concatenate", "dense", "pack", "union"]

#: Longest id that is packed, in bytes.
WIDEST = 64
#: Bytes and bits of a word.
BYTES, WORD = 8, 64
#: Ids worked on at a time.
PIECE = 1 << 15

Words = NDArray[np.uint64]


class Ids(Sequence[str]):
    """A sequence of ids, each packed into W words.

    Attributes:
        words: Shape (W, n): word w of each id; read-only.
    """

    def __init__(self, words: Words) -> None:
        freeze(words)
        self.words = words

    def __len__(self) -> int:
        return int(self.words.shape[1])

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> str | Ids:
        if isinstance(index, slice):
            return Ids(np.ascontiguousarray(self.words[:, index]))
        return str(self._bytes[index].decode())

    def __iter__(self) -> Iterator[str]:
        return iter([name.decode() for name in self._bytes.tolist()])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ids | tuple | list):
            return tuple(self) == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ids({list(self)!r})"

    @cached_property
    def _bytes(self) -> NDArray[np.bytes_]:
        """(n,): each id's bytes; numpy takes the padding off."""
        size = BYTES * len(self.words)
        return np.ascontiguousarray(self.words.T).astype(">u8").view(f"S{size}").ravel()

    def take(self, index: IntArray | NDArray[np.bool_]) -> Ids:
        """The ids at these places."""
        places = np.flatnonzero(index) if index.dtype == bool else index
        return Ids(self.words.take(places, axis=1))

    def changes(self) -> NDArray[np.bool_]:
        """(n,): whether each id differs from the one before; the first does."""
        new = np.ones(len(self), dtype=bool)
        if len(self) > 1:
            np.not_equal(self.words[:, 1:], self.words[:, :-1]).any(axis=0, out=new[1:])
        return new

    def factorize(self) -> tuple[IntArray, Ids]:
        """Codes that sort as the ids do by bytes, and the distinct ids in that order."""
        codes, first = _codes(_keys(self.words))
        return codes, self.take(first)

    def joined(self) -> bytes:
        r"""What ``"\0".join(ids).encode()`` gives."""
        size = BYTES * len(self.words)
        table = np.zeros((len(self), size + 1), dtype=np.uint8)
        table[:, :size] = self._bytes.view(np.uint8).reshape(len(self), size)
        kept = table != 0
        lengths = kept.sum(axis=1)
        kept[np.arange(len(self)), lengths] = True  # the null byte between two
        return bytes(table[kept][:-1].tobytes())


def dense(values: NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Codes 0, 1, 2 … in the order of the values, and where some instance of each stands.

    Args:
        values: Shape (n,): integers.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values), dtype=np.int64), np.zeros(1, dtype=np.int64)
    if (int(high) - int(low)).bit_length() + (len(values) - 1).bit_length() <= WORD:
        ordered, order = _sorted((values - low).astype(np.uint64, copy=False))
    else:
        order = np.argsort(values)
        ordered = values[order]
    return _numbered(order, _differs(ordered))


def _sorted(values: Words) -> tuple[Words, IntArray]:
    """The values in order, and where each stood.

    The place rides in the low bits, so that plain integers are sorted: several times as fast as
    sorting indices. Both have to fit one word.
    """
    places = np.uint64((len(values) - 1).bit_length())
    packed = values << places
    packed |= np.arange(len(values), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << places) - np.uint64(1))).view(np.int64)
    packed >>= places
    return packed, order


def _differs(ordered: NDArray[np.generic]) -> NDArray[np.bool_]:
    """(n,): whether each value differs from the one before; the first does."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _numbered(order: IntArray, new: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Codes by place, and some place of each, where ``new`` marks the first of equals in order."""
    numbers = np.cumsum(new)
    numbers -= 1
    codes = np.empty_like(numbers)
    codes[order] = numbers
    return codes, order[new]


def _codes(keys: Sequence[tuple[Words, int]]) -> tuple[IntArray, IntArray]:
    """As :func:`dense`, for values of several words, of which each has so many bits."""
    (top, bits), *rest = keys
    lost = max(bits + (len(top) - 1).bit_length() - WORD, 0)
    if not rest and not lost:
        return dense(top)
    ordered, order = _sorted(top >> np.uint64(lost))
    new = _differs(ordered)
    words = [key[order] for key, _ in keys]
    apart = _differs(words[0])
    for word in words[1:]:
        apart |= _differs(word)
    doubt = apart & ~new  # equal as far as they were sorted, and yet not the same
    if doubt.any():
        group = np.cumsum(new)
        rows = np.flatnonzero(np.isin(group, group[doubt]))
        again = np.lexsort([*(word[rows] for word in words[::-1]), group[rows]])
        order[rows] = order[rows[again]]
        apart[rows] = np.any([_differs(word[rows[again]]) for word in words], axis=0)
        apart |= new
    return _numbered(order, apart)


def _keys(words: Words) -> list[tuple[Words, int]]:
    """The same order in fewer words: only the bits that tell ids apart, and how many they are.

    Most bits of an id are the same in all of them (a prefix, the upper half of a digit), and what
    never differs decides no comparison.
    """
    kept = _telling(words)
    keys: list[tuple[list[int], int]] = [([], 0)]
    for w, mask in enumerate(kept):
        members, bits = keys[-1]
        if members and bits + mask.bit_count() > WORD:
            keys.append(([w], mask.bit_count()))
        elif mask or not members:
            keys[-1] = ([*members, w], bits + mask.bit_count())
    return [(_joined(words, kept, members), bits) for members, bits in keys]


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


def _joined(words: Words, kept: Sequence[int], members: Sequence[int]) -> Words:
    """The kept bits of these words, one after another; worked on in pieces that fit a cache."""
    key = np.empty(words.shape[1], dtype=np.uint64)
    moves = {w: list(_moves(kept[w])) for w in members}
    for at in range(0, len(key), PIECE):
        part = slice(at, at + PIECE)
        total = np.zeros_like(key[part])
        for w in members:
            total <<= np.uint64(kept[w].bit_count())
            total |= _squeezed(words[w, part], kept[w], moves[w])
        key[part] = total
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


def pack(names: Sequence[str]) -> Ids | None:
    """The ids as words; None if one of them cannot be packed."""
    if isinstance(names, Ids):
        return names
    data = [name.encode() for name in names]
    widest = max(map(len, data), default=0)
    if widest > WIDEST or any(b"\0" in name for name in data):
        return None
    count = max(-(-widest // BYTES), 1)
    padded = np.array(data, dtype=f"S{BYTES * count}")
    words = padded.view(">u8").reshape(len(data), count).T.astype(np.uint64)
    return Ids(np.ascontiguousarray(words))


def concatenate(tables: Sequence[Ids]) -> Ids:
    """All ids, one table after another."""
    count = max(len(ids.words) for ids in tables)
    words = np.zeros((count, sum(map(len, tables))), dtype=np.uint64)
    at = 0
    for ids in tables:
        words[: len(ids.words), at : at + len(ids)] = ids.words
        at += len(ids)
    return Ids(words)


def union(tables: Sequence[Ids]) -> tuple[Ids, list[IntArray]]:
    """The distinct ids of several sorted tables, sorted, and each table's codes among them."""
    codes, distinct = concatenate(tables).factorize()
    ends = np.cumsum([len(ids) for ids in tables])
    return distinct, np.split(codes, ends[:-1])
