"""Many ids in one array: their UTF-8 bytes as big-endian 64-bit words, padded with zeros.

Words compare as the bytes do, so ids are sorted, compared and counted as integers, and no string
is made until somebody looks at one. Padding cannot be told from a null byte, so an id that has one
is not packed, nor is one longer than :data:`WIDEST`; such ids stay strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.integer_codes import Words, rank_rows
from fusion_bench.data.ordering import IntArray, freeze

__all__ = [
    "BYTES",
    "WIDEST",
    "Coded",
    "Ids",
    "Part",
    "Repeated",
    "code_together",
    "concatenate",
    "pack",
    "union",
]

#: Longest id that is packed, in bytes.
WIDEST = 64
#: Bytes of a word.
BYTES = 8


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
        codes, first = rank_rows(self.words)
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


class Part(Ids):
    """Some of the ids of a sorted table, in its order.

    Tables that are parts of one are joined without comparing an id.

    Attributes:
        whole: That table.
        places: Shape (n,): where each stands in it, ascending.
    """

    def __init__(self, whole: Ids, places: IntArray) -> None:
        freeze(places)
        self.whole, self.places = whole, places

    @cached_property
    def words(self) -> Words:  # type: ignore[override]
        """Shape (W, n): word w of each id; read-only; made when first looked at."""
        return self.whole.take(self.places).words

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> str | Ids:
        return (
            self.whole.take(self.places[index])
            if isinstance(index, slice)
            else super().__getitem__(index)
        )

    def take(self, index: IntArray | NDArray[np.bool_]) -> Ids:
        """The ids at these places."""
        return self.whole.take(self.places[index])


class Coded(Sequence[str]):
    """A sequence of ids as codes into a sorted table, which may have others beside them.

    Attributes:
        whole: The table.
        codes: Shape (n,).
    """

    def __init__(self, whole: Ids, codes: IntArray) -> None:
        freeze(codes)
        self.whole, self.codes = whole, codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Coded: ...
    def __getitem__(self, index: int | slice) -> str | Coded:
        if isinstance(index, slice):
            return Coded(self.whole, self.codes[index])
        return self.whole[int(self.codes[index])]

    def factorize(self) -> tuple[IntArray, Ids]:
        """As :meth:`Ids.factorize`: codes among the ids that are there."""
        there = np.zeros(len(self.whole), dtype=bool)
        there[self.codes] = True
        places = np.flatnonzero(there)
        own = np.empty(len(self.whole), dtype=np.int64)
        own[places] = np.arange(len(places))
        return own[self.codes], Part(self.whole, places)


class Repeated(Sequence[str]):
    """A sequence of ids in which most are the one before them: each kept once for all its rows.

    Attributes:
        heads: The H ids at which a new one begins.
        counts: Shape (H,): rows of each.
    """

    def __init__(self, heads: Ids, counts: IntArray) -> None:
        freeze(counts)
        self.heads, self.counts = heads, counts

    @classmethod
    def of(cls, ids: Ids) -> Repeated:
        """The same ids."""
        starts = np.flatnonzero(ids.changes())
        return cls(ids.take(starts), np.diff(starts, append=len(ids)))

    @classmethod
    def joined(cls, parts: Sequence[Repeated]) -> Repeated:
        """All ids, one part after another."""
        heads = concatenate([part.heads for part in parts])
        return cls(heads, np.concatenate([part.counts for part in parts]))

    def __len__(self) -> int:
        return int(self.counts.sum())

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> str | Ids:
        return self._every[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    @cached_property
    def _every(self) -> Ids:
        return self.heads.take(np.repeat(np.arange(len(self.counts)), self.counts))


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


def code_together(tables: Sequence[Ids]) -> list[Coded]:
    """The same sequences, coded by one table that all of them share."""
    codes, whole = concatenate(tables).factorize()
    ends = np.cumsum([len(ids) for ids in tables])
    return [Coded(whole, own) for own in np.split(codes, ends[:-1])]


def union(tables: Sequence[Ids]) -> tuple[Ids, list[IntArray]]:
    """The distinct ids of several sorted tables, sorted, and each table's codes among them."""
    parts = [table for table in tables if isinstance(table, Part)]
    if len(parts) == len(tables) and all(part.whole is parts[0].whole for part in parts):
        return _union_of_parts(parts[0].whole, parts)
    codes, distinct = concatenate(tables).factorize()
    ends = np.cumsum([len(ids) for ids in tables])
    return distinct, np.split(codes, ends[:-1])


def _union_of_parts(whole: Ids, parts: Sequence[Part]) -> tuple[Ids, list[IntArray]]:
    there = np.zeros(len(whole), dtype=bool)
    for part in parts:
        there[part.places] = True
    if there.all():
        return whole, [part.places for part in parts]
    codes = np.cumsum(there) - 1
    return Part(whole, np.flatnonzero(there)), [codes[part.places] for part in parts]
