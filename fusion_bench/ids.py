"""Many ids in one array: their UTF-8 bytes as big-endian 64-bit words, padded with zeros.

Words compare as the bytes do, so ids are sorted, compared and counted as integers, and no string
is made until somebody looks at one. Padding cannot be told from a null byte, so an id that has one
is not packed, nor is one longer than :data:`WIDEST`; such ids stay strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.order import IntArray, freeze

__all__ = ["WIDEST", "Ids", "Words", "concatenate", "dense", "pack", "union"]

#: Longest id that is packed, in bytes.
WIDEST = 64
#: Bytes of a word.
BYTES = 8

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
        return Ids(np.ascontiguousarray(self.words[:, index]))

    def changes(self) -> NDArray[np.bool_]:
        """(n,): whether each id differs from the one before; the first does."""
        new = np.ones(len(self), dtype=bool)
        if len(self) > 1:
            np.not_equal(self.words[:, 1:], self.words[:, :-1]).any(axis=0, out=new[1:])
        return new

    def factorize(self) -> tuple[IntArray, Ids]:
        """Codes that sort as the ids do by bytes, and the distinct ids in that order."""
        codes, first = dense(self.words[0])
        for word in self.words[1:]:
            more, distinct = dense(word)
            if len(distinct) > 1:
                codes, first = dense(codes * len(distinct) + more)
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


def dense(
    values: NDArray[np.generic], kind: Literal["quicksort", "stable"] = "quicksort"
) -> tuple[IntArray, IntArray]:
    """Codes 0, 1, 2 … in the order of the values, and where some instance of each stands."""
    if len(values) == 0 or (values[0] == values).all():
        return np.zeros(len(values), dtype=np.int64), np.zeros(min(len(values), 1), dtype=np.int64)
    order = np.argsort(values, kind=kind)
    ordered = values[order]
    new = np.ones(len(values), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.cumsum(new) - 1
    return codes, order[new]


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
    together = concatenate(tables)
    if len(together.words) == 1:  # sorted pieces, which a stable sort only merges
        codes, first = dense(together.words[0], "stable")
        distinct = together.take(first)
    else:
        codes, distinct = together.factorize()
    ends = np.cumsum([len(ids) for ids in tables])
    return distinct, np.split(codes, ends[:-1])
